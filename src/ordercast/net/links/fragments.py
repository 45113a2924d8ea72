"""Protocol messages larger than a datagram, put together from their fragments in bounded memory.

Among many datagrams one is easily lost, and the whole message with it. So if a host has a part of a message
and nothing new of it comes for a while, the host asks the sender for the missing places (`repair.py`): first
for the gaps between the fragments that came, then also for those after them, which may only be late.
"""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice

from ordercast.core import MILLISECOND, SECOND, Nanos, RemoteError
from ordercast.core.message import MESSAGE_DATA_MAX
from ordercast.net.links.datagram import PLACES_MAX, Fragment, Missing

UNFINISHED_BYTES_MAX = 2 * MESSAGE_DATA_MAX
"""Bytes of unfinished messages of one peer; beyond them the oldest unfinished message is given up."""
UNFINISHED_NS: Nanos = 2 * SECOND
"""A message is given up if nothing new of it came for this long."""
UNFINISHED_MAX = 256
DONE_MAX = 4096
"""How many finished or given up messages are remembered, so that their late fragments are ignored."""
QUIET_NS: Nanos = 5 * MILLISECOND
"""Fragments count as lost if nothing new of their message came for this long."""
ASK_AGAIN_NS: Nanos = 20 * MILLISECOND
"""How long to wait for the answer to the first request; for each later one twice as long."""
ASKS_MAX = 6
"""After this many requests in a row without an answer, no more are made."""
ASKED_MAX = 16
"""Messages of one peer for which fragments are requested at a time."""


class _Assembly:
    __slots__ = ("asks", "complete_to", "count", "due", "highest", "latest", "parts", "size")

    def __init__(self, count: int, now: Nanos) -> None:
        self.count = count
        self.parts: dict[int, bytes] = {}
        self.size = 0
        self.complete_to = 0
        """All places before this one came, so the search begins here."""
        self.highest = -1
        self.progress(now)

    def progress(self, now: Nanos) -> None:
        """A new fragment came: begin to count requests anew."""
        self.latest = now
        self.due = now + QUIET_NS
        self.asks = 0

    def missing(self) -> tuple[int, ...]:
        """The places to ask for now."""
        while self.complete_to in self.parts:
            self.complete_to += 1
        end = self.count if self.asks else self.highest
        absent = (place for place in range(self.complete_to, end) if place not in self.parts)
        return tuple(islice(absent, PLACES_MAX))


class Fragments:
    """The fragments of the unfinished messages of one peer's session."""

    __slots__ = ("_assemblies", "_done", "_size", "given_up")

    def __init__(self) -> None:
        self._assemblies: OrderedDict[int, _Assembly] = OrderedDict()
        self._done: OrderedDict[int, None] = OrderedDict()
        self._size = 0
        self.given_up = 0

    def add(self, fragment: Fragment, now: Nanos) -> bytes | None:
        """Take a fragment; returns the whole message if it was the last one missing."""
        assembly = self._assemblies.get(fragment.message)
        if assembly is None:
            if fragment.message in self._done:
                return None
            self._make_room(now)
            assembly = self._assemblies[fragment.message] = _Assembly(fragment.parts, now)
        if fragment.parts != assembly.count:
            raise RemoteError(
                f"fragment belongs to {fragment.parts} fragments; earlier ones belong to {assembly.count}"
            )
        if fragment.place in assembly.parts:
            return None
        part = bytes(fragment.part)
        assembly.parts[fragment.place] = part
        assembly.highest = max(assembly.highest, fragment.place)
        assembly.progress(now)
        assembly.size += len(part)
        self._size += len(part)
        if assembly.size > MESSAGE_DATA_MAX:
            self._drop(fragment.message)
            raise RemoteError(f"the fragments of a message have more than {MESSAGE_DATA_MAX} bytes")
        if len(assembly.parts) < assembly.count:
            while self._size > UNFINISHED_BYTES_MAX:
                self._drop(next(iter(self._assemblies)))
            return None
        self._drop(fragment.message)
        self.given_up -= 1
        return b"".join(assembly.parts[index] for index in range(assembly.count))

    @property
    def unfinished(self) -> int:
        """The number of messages of which some fragments came, and not all."""
        return len(self._assemblies)

    def missing(self, now: Nanos) -> Iterator[Missing]:
        """What to ask the peer for now. Messages of which nothing came for long are given up."""
        if not self._assemblies:
            return
        self._give_up_silent(now)
        due = [(message, assembly) for message, assembly in self._assemblies.items() if assembly.due <= now]
        for message, assembly in due[:ASKED_MAX]:
            places = assembly.missing()
            if assembly.asks < ASKS_MAX:
                assembly.due = now + (ASK_AGAIN_NS << assembly.asks)
            else:
                assembly.due = assembly.latest + UNFINISHED_NS
                continue
            assembly.asks += 1
            if places:
                yield Missing(message, places)

    def _make_room(self, now: Nanos) -> None:
        self._give_up_silent(now)
        while len(self._assemblies) >= UNFINISHED_MAX:
            self._drop(next(iter(self._assemblies)))

    def _give_up_silent(self, now: Nanos) -> None:
        silent = [
            message
            for message, assembly in self._assemblies.items()
            if now - assembly.latest >= UNFINISHED_NS
        ]
        for message in silent:
            self._drop(message)

    def _drop(self, message: int) -> None:
        """Forget a message that is finished or given up; its later fragments are ignored."""
        self._size -= self._assemblies.pop(message).size
        self.given_up += 1
        self._done[message] = None
        if len(self._done) > DONE_MAX:
            self._done.popitem(last=False)
