"""Calls that wait for answers of other services, and what they asked (`core/asking.py`).

An operation that asks has no result until it has its answer, so its call is *unfinished*. What it asked is an
`Ask`: first it is only wanted; it is sent once it has an identity, by which the other service knows it, and a
time. All of this is part of the replicated state, so that a replica that takes over asks again what has no
answer, under the same identities.
"""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import Asking, GroupId, LocalError, MessageId, Nanos, Stamp, message_sender
from ordercast.core.bundle import Bundle

ASKS_MAX = 1 << 16
"""So many asks of a replica may wait; operations that would ask more fail."""


Time: TypeAlias = Annotated[Nanos, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Ask(msgspec.Struct, array_like=True):
    """What an operation has asked, and has no answer to."""

    number: int
    """Asks of a group are counted."""
    call: MessageId
    """The call that waits."""
    turn: int
    """Which of its operations."""
    answers: int
    """How many answers the operation has had before."""
    group: GroupId
    """Who is asked."""
    operation: bytes
    read: bool
    token: bytes
    message: MessageId | None = None
    """The identity under which it is sent; None until then."""
    time_ns: Nanos = 0
    """When it was sent first."""
    via: tuple[int, ...] = ()
    """Which way it was sent; empty if it is to be sent, for the first time or again."""


class Unfinished(msgspec.Struct, array_like=True):
    """A call with operations that have no results."""

    stamp: tuple[int, int, tuple[int, ...]]
    """Where it was executed first."""
    times: list[Time]
    results: list[bytes | None]
    via: tuple[int, ...]
    """Which way its answer goes."""
    groups: tuple[int, ...] = ()
    """Those that run it, if these are several."""

    def place(self) -> Stamp:
        """The stamp as such."""
        return Stamp(*self.stamp)


Packed: TypeAlias = tuple[int, list[Ask], dict[MessageId, Unfinished]]


class Asks:
    """All unfinished calls of a replica, and what they asked."""

    __slots__ = ("_count", "_others", "calls", "unsent", "waiting")

    def __init__(self, others: Mapping[GroupId, str]) -> None:
        """`others` has the fingerprint of the service that each other group replicates."""
        self._others = others
        self._count = 0
        self.calls: dict[MessageId, Unfinished] = {}
        self.waiting: dict[int, Ask] = {}
        """Asks without an answer, by number, the oldest first."""
        self.unsent: dict[int, None] = {}
        """The numbers of those that are to be sent."""

    def add(self, call: MessageId, turn: int, answers: int, asking: Asking) -> None:
        """An operation of a call asks; `LocalError` if nobody can be asked."""
        if len(self.waiting) >= ASKS_MAX:
            raise LocalError(f"{ASKS_MAX} operations wait for answers of other services already")
        group = self._group(asking)
        self._count += 1
        self.unsent[self._count] = None
        self.waiting[self._count] = Ask(
            self._count, call, turn, answers, group, asking.operation, asking.read, asking.token
        )

    def _group(self, asking: Asking) -> GroupId:
        name = asking.service.partition(";")[0]
        if asking.group is not None:
            if asking.group not in self._others:
                raise LocalError(f"there is no other group {asking.group} that could be asked")
            return asking.group
        found = [group for group, service in self._others.items() if service == asking.service]
        if not found:
            raise LocalError(f"no other group replicates {name}")
        if len(found) > 1:
            groups = ", ".join(map(str, found))
            raise LocalError(f"the groups {groups} replicate {name}: say with group= which is asked")
        return found[0]

    def begin(self, call: Bundle, stamp: Stamp, results: list[bytes | None], via: tuple[int, ...]) -> None:
        """A call has operations without results."""
        place = (stamp.clock, stamp.issuer, stamp.numbers)
        self.calls[call.first] = Unfinished(place, list(call.times), results, via)

    def recall(self, via: tuple[int, ...]) -> None:
        """What was sent this way, and has no answer, is to be sent again."""
        for ask in self.waiting.values():
            if ask.via == via:
                ask.via = ()
                self.unsent[ask.number] = None

    def find(self, message: MessageId) -> Ask | None:
        """The ask that was sent under an identity, if it waits."""
        return next((ask for ask in self.waiting.values() if ask.message == message), None)

    def floor(self, message: MessageId) -> MessageId:
        """The lowest identity of the sender of this one among asks that wait."""
        sent = [one.message for one in self.waiting.values() if one.message is not None]
        return min(one for one in sent if message_sender(one) == message_sender(message))

    def pack(self) -> Packed:
        """All of it as plain data; equal states give equal data."""
        return self._count, list(self.waiting.values()), dict(sorted(self.calls.items()))

    def unpack(self, packed: Packed) -> None:
        """Take over such data."""
        self._count, waiting, self.calls = packed
        self.waiting = {ask.number: ask for ask in waiting}
        self.unsent = {ask.number: None for ask in waiting if not ask.via}
