"""The calls to a shard that wait for locks (`core/shard_machine.py`).

A call is *blocked* while one of its operations waits. It has no answer, and its duplicates have none, until
the shard has run that operation too. All of this is part of the replicated state.
"""

from collections.abc import Set
from typing import TypeAlias

from ordercast.components.execution.asks import Unfinished
from ordercast.components.execution.results import pack_results
from ordercast.core import GroupId, LocalError, Locked, MessageId, Notice, Released, ShardMachine, Stamp
from ordercast.core.bundle import Bundle

Packed: TypeAlias = dict[MessageId, Unfinished]


class Blocked:
    """All blocked calls of a replica."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls: Packed = {}
        """In the order of their places."""

    @classmethod
    def of(cls, calls: Packed, waiting: Set[MessageId]) -> "Blocked":
        """Those in a state of another replica; `LocalError` if they do not lack what waits in their shard."""
        lacking = [
            first + turn
            for first, call in calls.items()
            for turn, result in enumerate(call.results)
            if result is None
        ]
        if len(lacking) != len(waiting) or set(lacking) != waiting or not all(map(_is_whole, calls.values())):
            raise LocalError("the state of a shard has blocked calls that do not fit what waits for locks")
        blocked = cls()
        blocked.calls = calls
        return blocked

    def add(self, call: Bundle, stamp: Stamp, results: list[bytes], via: tuple[int, ...]) -> None:
        """A call has operations that wait; their results are empty."""
        place = (stamp.clock, stamp.issuer, stamp.numbers)
        self.calls[call.first] = Unfinished(place, list(call.times), [one or None for one in results], via)

    def fill(self, message: MessageId, result: bytes) -> tuple[MessageId, Unfinished] | None:
        """An operation that waited has a result: its call, if it is the last one, with all results."""
        first = next(one for one, call in self.calls.items() if 0 <= message - one < len(call.results))
        call = self.calls[first]
        call.results[message - first] = result
        if None in call.results:
            return None
        return first, self.calls.pop(first)


def _is_whole(call: Unfinished) -> bool:
    return len(call.times) == len(call.results) and None in call.results


def packed_results(first: MessageId, call: Unfinished) -> bytes:
    """The results of a call that has all of them."""
    done = [result for result in call.results if result is not None]
    return pack_results(Bundle(first, call.times, done), done)


def lock_notices(shard: ShardMachine, group: GroupId, stamp: Stamp) -> list[Notice]:
    """What became of locks since this was last asked, for the trace; the stamp is the last place."""
    changes, shard.changes = shard.changes, []
    return [
        Locked(group, transaction, stamp)
        if committed is None
        else Released(group, transaction, stamp, committed)
        for transaction, committed in changes
    ]
