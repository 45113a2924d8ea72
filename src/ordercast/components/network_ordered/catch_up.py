"""Catching up: a replica gets all that it lacks of another replica's log.

The log is known by its end and its NO-OPs, so a replica knows which slots it needs. It asks for those in
chunks. If the other log begins behind what is certain here, it first takes the state at that base. Entries
are the same wherever they come from, and a state is certain, so what was fetched stays useful if the target
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from ordercast.components.network_ordered.limits import SLOTS_AHEAD_MAX
from ordercast.components.network_ordered.messages import BaseChunk, BaseRequest, FetchEntries
from ordercast.components.network_ordered.place import LogEntry, LogPlace, Slot
from ordercast.core import NodeId, RemoteError

if TYPE_CHECKING:
    from ordercast.components.network_ordered.replica import NetworkReplica

CATCH_UP = "catch-up"
"""The timer of the replica to ask again."""
SLOTS_MAX = 512
"""How many slots are asked for at once."""
UNANSWERED_MAX = 8
"""So many times in a row who has given a part of a state is asked in vain for the next."""


class Target(msgspec.Struct, frozen=True):
    """A log to have."""

    base: LogPlace
    place: LogPlace
    noops: frozenset[Slot]
    base_source: NodeId
    """Who has a state at the base."""
    source: NodeId
    """Who has the entries."""


class ArrivingState(msgspec.Struct):
    """A state that comes in parts."""

    base: LogPlace
    source: NodeId
    total: int
    got: bytearray


class CatchUp:
    """What a replica fetches from others.

    It asks for more only when all that it asked for has come, or after a while: if every answer led to a
    question, a network that doubles packets would multiply them without end.
    """

    def __init__(self, replica: NetworkReplica) -> None:
        self._replica = replica
        self.target: Target | None = None
        self._done: Callable[[], None] | None = None
        self._found: dict[Slot, LogEntry] = {}
        self._awaited: set[Slot] = set()
        """The slots that were asked for last, and have not come."""
        self._trusts_own = True
        """Whether the own entries are taken too."""
        self._transfer: ArrivingState | None = None
        self._asked: NodeId | None = None
        """Who was last asked for a state."""
        self._donor: NodeId | None = None
        """Who has offered a state without being asked."""
        self._unanswered = 0
        """Questions for a state since its last part has come."""
        self._distrusted: NodeId | None = None
        """Whose last state could not be taken: the next replica is asked, unless that is silent."""

    def begin(self, target: Target, done: Callable[[], None]) -> None:
        """Get a log, then call `done`; both may happen at once."""
        self.target, self._done = target, done
        self._trusts_own = True
        self._awaited.clear()
        self.go_on()

    def stop(self) -> None:
        """Nobody needs it any more."""
        self.target = self._done = None
        self._found.clear()

    def go_on(self) -> None:
        """Ask for what is lacking, or finish."""
        target, replica = self.target, self._replica
        if target is None:
            return
        if replica.log.synced_rank < target.base.rank:
            self._ask_for_state(self._giver(target))
            return
        if not replica.ordering.may_take(target.place):
            self._arm()  # until the change of the sequencers is decided
            return
        spans = self._spans(target)
        if spans is None or sum(map(len, spans.values())) > SLOTS_AHEAD_MAX:
            self.stop()  # there is no such log: its base was not true, or a sequencer of it is unknown
            return
        needed = self._needed(spans, target.noops)
        lacking = [slot for slot, entry in needed.items() if entry is None]
        entries = sorted((entry for entry in needed.values() if entry), key=lambda entry: entry.rank)
        if lacking:
            self._awaited = set(lacking[:SLOTS_MAX])
            replica.env.send(target.source, FetchEntries(tuple(lacking[:SLOTS_MAX])))
            self._arm()
        elif not self._fit(target, entries):
            self._found.clear()
            self._trusts_own = False  # another replica, or the network, told a lie: fetch all of them
            self._arm()
        elif not replica.ordering.may_have(entries):
            self._arm()  # until the change of the sequencers is decided
        else:
            self._finish(target, entries)

    def _giver(self, target: Target) -> NodeId:
        """Who has the state for a target: who has given a part of one that will do, as long as it answers.

        A new leader would begin another one."""
        transfer = self._transfer
        is_given = transfer is not None and transfer.base.rank >= target.base.rank
        if transfer is not None and is_given and self._unanswered < UNANSWERED_MAX:
            return transfer.source
        source = target.base_source
        return self._next_of(source) if self._distrusts(source) else source

    def _distrusts(self, source: NodeId) -> bool:
        return source == self._distrusted and self._unanswered < UNANSWERED_MAX

    def _next_of(self, source: NodeId) -> NodeId:
        others = self._replica.others
        return others[(others.index(source) + 1) % len(others)]

    def _finish(self, target: Target, entries: list[LogEntry]) -> None:
        done = self._done
        self.stop()
        self._replica.install(target, entries)
        if done is not None:
            done()

    def _spans(self, target: Target) -> dict[int, range] | None:
        """By sequencer: its numbers between what is certain here and the target. None if it is not known
        where one of them begins: a log without its entries would have a hole."""
        replica = self._replica
        certain = dict(replica.log.place_at(replica.log.synced).numbers)
        spans = {}
        for sequencer, last in target.place.numbers:
            first = certain.get(sequencer, replica.ordering.begun(sequencer))
            if first is None:
                return None
            spans[sequencer] = range(first + 1, last + 1)
        return spans

    def _needed(self, spans: dict[int, range], noops: frozenset[Slot]) -> dict[Slot, LogEntry | None]:
        """The slots in the spans, with the entries that are here."""
        needed: dict[Slot, LogEntry | None] = {}
        for sequencer, numbers in spans.items():
            for slot in ((sequencer, number) for number in numbers):
                if slot not in noops:
                    own = self._replica.find(slot) if self._trusts_own else None
                    needed[slot] = self._found.get(slot) or own
        return needed

    def _fit(self, target: Target, entries: list[LogEntry]) -> bool:
        """Whether sorted entries can stand between what is certain here and the target."""
        ranks = [entry.rank for entry in entries]
        ends = (self._replica.log.synced_rank, target.place.rank)
        ascending = all(one < two for one, two in pairwise(ranks))
        return not ranks or (ascending and ends[0] < ranks[0] and ranks[-1] <= ends[1])

    def on_entries(self, entries: tuple[LogEntry, ...]) -> None:
        """Entries have come."""
        if self.target is not None:
            self._found.update((entry.slot, entry) for entry in entries)
            self._awaited.difference_update(entry.slot for entry in entries)
            if not self._awaited:
                self.go_on()

    def on_timer(self) -> None:
        """Ask again."""
        if self.target is not None:
            self.go_on()
        elif self._donor is not None:
            self._ask_for_state(self._donor)

    def on_chunk(self, source: NodeId, chunk: BaseChunk) -> None:
        """A part of a state has come, or is offered."""
        replica = self._replica
        if chunk.base.rank <= replica.log.synced_rank:
            self._donor = None
            return
        if self._distrusts(source):
            return
        if self.target is None:
            self._donor = source
        transfer = self._transfer_for(source, chunk)
        if transfer.base != chunk.base or chunk.offset != len(transfer.got):
            return  # a copy, or late
        if chunk.total != transfer.total:
            raise RemoteError(f"a state of {transfer.total} bytes goes on as one of {chunk.total} bytes")
        transfer.got += chunk.data
        self._unanswered = 0
        if len(transfer.got) < chunk.total:
            self._ask_for_state(source)
        elif replica.ordering.may_take(chunk.base):
            self._transfer = self._donor = None
            self._take_state(source, transfer)
            self.go_on()
        else:
            self._arm()

    def _take_state(self, source: NodeId, transfer: ArrivingState) -> None:
        """All parts of a state are here: have it, or ask another replica for one."""
        self._distrusted = source
        if self.target is None:
            self._donor = self._next_of(source)
        try:
            self._replica.take_state(transfer.base, bytes(transfer.got))
        except RemoteError:
            self._arm()
            raise
        self._distrusted = self._donor = None

    def _transfer_for(self, source: NodeId, chunk: BaseChunk) -> ArrivingState:
        """The state under way; a later one takes its place, and so does one of another replica if that was
        asked."""
        known = self._transfer
        if known is not None and chunk.base != known.base:
            asked_another = source == self._asked and source != known.source
            if chunk.base.rank > known.base.rank or asked_another:
                known = None
        if known is None:
            known = self._transfer = ArrivingState(chunk.base, source, chunk.total, bytearray())
        return known

    def _ask_for_state(self, source: NodeId) -> None:
        transfer = self._transfer
        rank, offset = (transfer.base.rank, len(transfer.got)) if transfer else ((0, 0), 0)
        self._asked = source
        self._unanswered += 1
        self._replica.env.send(source, BaseRequest(*rank, offset))
        self._arm()

    def _arm(self) -> None:
        self._replica.env.set_timer(CATCH_UP, 4 * self._replica.options.gap_ns)
