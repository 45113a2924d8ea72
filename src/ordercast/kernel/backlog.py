"""The backlog: messages that an application has submitted and the protocol has not taken yet.

A message gets its identity when it is submitted. Messages to the same groups that pile up while a host is
busy go into one bundle, until it is full. A single message makes a bundle too.

Some operations of a service lock keys until their client has the answer and gives the locks up. Such an
operation is alone in its bundle: a bundle is answered as a whole, and the others might wait for just these
locks.
"""

import sys
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate

from ordercast.core import Caller, Groups, LocalError, Member, MessageId, Nanos
from ordercast.core.bundle import BUNDLE_MESSAGES_MAX, HEAD_BYTES, bundle_size, pack_bundle

ALONE = 0
"""A bundle size with which each message gets its own bundle."""

_EACH = bundle_size(0)


class OpenBundle:
    """Messages that will leave together."""

    __slots__ = ("alone", "first", "groups", "payloads", "read", "room", "times")

    def __init__(
        self,
        groups: Groups,
        first: MessageId,
        room: int,
        times: list[Nanos],
        payloads: list[bytes],
        read: bool = False,
        alone: bool = False,
    ) -> None:
        self.groups = groups
        self.first = first
        self.read = read
        """Whether these are reads of a service; they share no bundle with other messages."""
        self.alone = alone
        """Whether nothing may be added."""
        self.room = room
        self.times = times
        self.payloads = payloads


class Backlog:
    """The bundles of one sender."""

    __slots__ = (
        "_bundle_bytes",
        "_bytes_max",
        "_locks",
        "_messages_max",
        "bundles",
        "messages",
        "next_message",
        "waiting",
    )

    def __init__(
        self,
        first: MessageId,
        bundle_bytes: int,
        *,
        bytes_max: int = sys.maxsize,
        messages_max: int = sys.maxsize,
        locks: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.next_message = first
        """The identity of the next message."""
        self._bundle_bytes = bundle_bytes - HEAD_BYTES
        self._bytes_max = bytes_max
        self._messages_max = messages_max
        self._locks = locks
        """Which operations are alone in their bundles; None if there are none."""
        self.bundles: deque[OpenBundle] = deque()
        self.messages = 0
        self.waiting = 0
        """Bytes that all messages here take in bundles."""

    @property
    def full(self) -> bool:
        """Whether a sender should wait before it submits more."""
        return self.waiting >= self._bytes_max or self.messages >= self._messages_max

    def add(self, groups: Groups, now: Nanos, payloads: Sequence[bytes], *, read: bool = False) -> MessageId:
        """Take messages for these groups; return the identity of the first."""
        first = self.next_message
        if self._locks is not None:
            for payload in payloads:
                self.add_one(groups, now, payload, read)
            return first
        ends = list(accumulate([_EACH + len(payload) for payload in payloads], initial=0))
        bundle = self.bundles[-1] if self.bundles else None
        if bundle is not None and (bundle.groups != groups or bundle.read != read):
            bundle = None
        taken = 0
        while taken < len(payloads):
            if bundle is None:
                bundle = OpenBundle(groups, first + taken, self._bundle_bytes, [], [], read)
                self.bundles.append(bundle)
            fit = bisect_right(ends, ends[taken] + bundle.room, taken + 1) - 1
            end = min(fit, taken + BUNDLE_MESSAGES_MAX - len(bundle.payloads))
            if not bundle.payloads:
                end = max(end, taken + 1)  # one that is larger than a bundle makes one nevertheless
            bundle.payloads += payloads[taken:end]
            bundle.times += [now] * (end - taken)
            bundle.room -= ends[end] - ends[taken]
            taken, bundle = end, None
        self.messages += taken
        self.waiting += ends[-1]
        self.next_message = first + taken
        return first

    def add_one(self, groups: Groups, now: Nanos, payload: bytes, read: bool = False) -> MessageId:
        """Take one message, faster than `add` does; return its identity."""
        message = self.next_message
        self.next_message = message + 1
        self.messages += 1
        cost = _EACH + len(payload)
        self.waiting += cost
        bundles, alone = self.bundles, self._locks is not None and self._locks(payload)
        if bundles and not alone:
            last = bundles[-1]
            fits = last.room >= cost and len(last.payloads) < BUNDLE_MESSAGES_MAX and not last.alone
            if fits and last.groups == groups and last.read == read:
                last.room -= cost
                last.times.append(now)
                last.payloads.append(payload)
                return message
        bundles.append(OpenBundle(groups, message, self._bundle_bytes - cost, [now], [payload], read, alone))
        return message

    def reserve(self) -> MessageId:
        """An identity for a message that is not kept here."""
        message = self.next_message
        self.next_message = message + 1
        return message

    def offer(self, member: Member) -> bytes | None:
        """Offer the first bundle to a protocol; return its bytes, or None if the window is full."""
        bundle = self.bundles.popleft()  # first: messages that are submitted meanwhile go into another bundle
        packed = pack_bundle(bundle.first, bundle.times, bundle.payloads)
        taken = (
            _caller(member).read(bundle.groups, packed)
            if bundle.read
            else member.submit(bundle.groups, packed)
        )
        if taken:
            self.messages -= len(bundle.payloads)
            self.waiting -= self._bundle_bytes - bundle.room
            return packed
        if taken is None:
            raise LocalError(f"submit() of {type(member).__name__} must return True or False, not None")
        self.bundles.appendleft(bundle)
        return None

    def withdraw(self, last: MessageId) -> tuple[Groups, bytes] | None:
        """Take out what the first bundle has of the messages up to this identity; None if it has none."""
        if not self.bundles or self.bundles[0].first > last:
            return None
        bundle = self.bundles.popleft()
        count = min(len(bundle.payloads), last + 1 - bundle.first)
        packed = pack_bundle(bundle.first, bundle.times[:count], bundle.payloads[:count])
        if count < len(bundle.payloads):
            rest = OpenBundle(
                bundle.groups,
                bundle.first + count,
                bundle.room + _cost(bundle.payloads[:count]),
                bundle.times[count:],
                bundle.payloads[count:],
                bundle.read,
            )
            self.bundles.appendleft(rest)
        self.messages -= count
        self.waiting -= _cost(bundle.payloads[:count])
        return bundle.groups, packed

    def clear(self) -> None:
        """Forget all messages; their identities are not used again."""
        self.bundles.clear()
        self.messages = self.waiting = 0


def _cost(payloads: list[bytes]) -> int:
    return sum(_EACH + len(payload) for payload in payloads)


def _caller(member: Member) -> Caller:
    if not isinstance(member, Caller):
        raise LocalError(f"{type(member).__name__} takes no reads: it is not a client of a service")
    return member
