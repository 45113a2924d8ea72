"""The calls that a client has under way: it keeps them, repeats them, and gives them up.

A protocol's client process owns one `Calls`. It hands over what its application submits, says what became of
a call, and is told when to send one (again). How a call is sent, and which answers count, is the protocol's.
"""

from collections.abc import Callable, Collection
from itertools import islice
from typing import ClassVar

from ordercast.components.execution.call import pack_call
from ordercast.components.execution.options import CallOptions
from ordercast.core import (
    Env,
    GroupId,
    Groups,
    LocalError,
    MessageId,
    Nanos,
    NodeId,
    RemoteError,
    Replied,
    Stamp,
    Unconfirmed,
    Wait,
    message_name,
)
from ordercast.core.bundle import bundle_span, unpack_bundle

BACK_OFF_MAX = 8
"""A client waits at most so many times as long for an answer as at first."""
SILENT_ATTEMPTS = 5
"""A service that has not answered so many attempts is silent. Calls to it are held, so that they do not stand
in the way of calls to other services."""
HELD_MAX = 4096
"""How many calls a client holds at most."""


class Pending:
    """A call without an answer."""

    __slots__ = ("attempts", "bundle", "count", "due", "first", "groups", "read", "since")

    def __init__(self, groups: Groups, bundle: bytes, now: Nanos, *, read: bool) -> None:
        self.first, self.count = bundle_span(bundle)
        self.groups = groups
        self.bundle = bundle
        self.read = read
        self.since = now
        self.attempts = 0
        """How many times it was sent."""
        self.due: Nanos = now
        """When it is sent again."""

    @property
    def group(self) -> int:
        """The group that it is for."""
        return self.groups[0]

    def packed(self, floor: MessageId) -> bytes:
        """The call as bytes."""
        return pack_call(floor, self.bundle, read=self.read)


class Calls:
    """All calls of one client that have no answer yet, oldest first."""

    TIMER: ClassVar[str] = "calls"
    """The name of its timer. The owner hands it over to `on_timer`."""

    def __init__(
        self,
        env: Env,
        groups: Collection[GroupId],
        options: CallOptions,
        send: Callable[[Pending], None],
        *,
        answers: bool,
    ) -> None:
        """`groups` are those that have replicas. `send` sends a call, for the first time or again. `answers`:
        the application wants the results."""
        self._env = env
        self._groups = groups
        self._options = options
        self._send = send
        self._answers = answers
        self._armed: Nanos | None = None
        self._services: dict[GroupId, dict[MessageId, Pending]] = {}
        """The calls to each service, oldest first. As many as the window has are under way."""
        self.pending: dict[MessageId, Pending] = {}
        self.unknown = 0
        """How many calls it has given up."""

    def take(self, groups: Groups, bundle: bytes, *, read: bool = False) -> bool:
        """Take a bundle and send it; False if too many calls are under way."""
        self.check(groups)
        held = self.full(groups[0])
        if held and not self._may_hold(groups[0]):
            return False
        call = Pending(groups, bundle, self._env.now, read=read)
        self.pending[call.first] = call
        self._services.setdefault(call.group, {})[call.first] = call
        if not held:
            self._attempt(call)
        self._arm(self._next(call))
        return True

    def check(self, groups: Groups) -> None:
        """Raise `LocalError` if no replicas can take a call to these groups."""
        if len(groups) != 1:
            raise LocalError(f"an operation goes to one group, not to {len(groups)}: {groups}")
        if groups[0] not in self._groups:
            raise LocalError(f"there are no replicas of group {groups[0]}")

    def full(self, group: GroupId) -> bool:
        """Whether as many calls to a service are under way as may be."""
        return len(self._services.get(group, ())) >= self._options.window

    def _may_hold(self, group: GroupId) -> bool:
        """Whether a call to a service whose window is full is taken, to be sent later."""
        oldest = next(iter(self._services[group].values()))
        silent = len(self._services) > 1 and oldest.attempts >= SILENT_ATTEMPTS
        return silent and len(self.pending) < HELD_MAX

    @property
    def floor(self) -> MessageId:
        """The name of the oldest call that waits; replicas may forget the answers to earlier ones."""
        return next(iter(self.pending), 0)

    @property
    def in_doubt(self) -> int:
        """How many operations have no answer yet."""
        return sum(call.count for call in self.pending.values())

    def settle(self, first: MessageId, results: bytes, stamp: Stamp | None, replica: NodeId) -> bool:
        """A call has its answer; False if nobody waits for it any more. `RemoteError` if it does not fit."""
        call = self.pending.get(first)
        if call is None:
            return False
        if bundle_span(results) != (first, call.count):
            raise RemoteError(f"node {replica} answers call {message_name(first)} with other results")
        if self._answers:
            unpack_bundle(results)
            self._env.deliver(Replied(call.group, results, stamp, replica, call.read))
        self._remove(call)
        return True

    def on_timer(self) -> None:
        """Give up what has waited too long, and repeat what is due."""
        self._armed = None
        now, deadline = self._env.now, self._options.deadline_ns
        for call in list(self.pending.values()):
            if deadline and now - call.since >= deadline:
                self._give_up(call)
            elif call.attempts and call.due <= now:
                self._attempt(call)
        if self.pending:
            self._arm(min(map(self._next, self.pending.values())))

    def waits(self, blocker: str, on: tuple[NodeId, ...] = ()) -> list[Wait]:
        """What waits here, for an explanation."""
        return [self.wait_of(call, blocker, on) for call in self.pending.values()]

    def wait_of(self, call: Pending, blocker: str, on: tuple[NodeId, ...]) -> Wait:
        """That a call waits."""
        what = f"call {message_name(call.first)} of {call.count} operations, sent {call.attempts} times"
        return Wait(what, blocker, call.since, payload=call.bundle, groups=call.groups, on=on)

    def _attempt(self, call: Pending) -> None:
        wait = self._options.retry_ns * min(1 << call.attempts, BACK_OFF_MAX)
        call.attempts += 1
        call.due = self._env.now + wait
        self._send(call)

    def _remove(self, call: Pending) -> None:
        """Forget a call, and send the first one that its service held up."""
        del self.pending[call.first]
        service = self._services[call.group]
        del service[call.first]
        window = self._options.window
        if len(service) >= window:
            following = next(islice(service.values(), window - 1, None))
            if not following.attempts:
                self._attempt(following)

    def _give_up(self, call: Pending) -> None:
        self._remove(call)
        self.unknown += call.count
        self._env.deliver(Unconfirmed(call.group, call.groups, call.bundle))

    def _next(self, call: Pending) -> Nanos:
        """When something is to be done about a call."""
        deadline = self._options.deadline_ns
        due = call.due if call.attempts else self._env.now + self._options.retry_ns
        return min(due, call.since + deadline) if deadline else due

    def _arm(self, due: Nanos) -> None:
        """Set the timer, unless it goes off before that anyway."""
        if self._armed is None or due < self._armed:
            self._armed = due
            self._env.set_timer(self.TIMER, max(1, due - self._env.now))
