"""A replica of one of several groups that have messages in common (Hydra section 6; Eris sections 6 and 7).

It is a replica of its group in all that concerns the group alone. What the whole group has lost, the failure
coordinator decides on. For that, this replica shows what it has, and promises not to take what it does not
have. A message that it has promised not to take is put *aside* when it comes, and the order waits for the
decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

import msgspec

from ordercast.components.cross_shard import marks
from ordercast.components.cross_shard.claims import check_rulings
from ordercast.components.cross_shard.gaps import ShardGaps
from ordercast.components.cross_shard.ledger import ShardLedger
from ordercast.components.cross_shard.marks import Lost, Mark, marks_of
from ordercast.components.cross_shard.messages import (
    MARKS_MAX,
    MESSAGES,
    Certain,
    FindMessages,
    Floors,
    FoundMessages,
    Gone,
    Late,
    LateAnswer,
    Promised,
    Question,
    Shown,
)
from ordercast.components.cross_shard.ordering import ShardOrdering
from ordercast.components.execution import Executor
from ordercast.components.network_ordered import LogEntry, NetworkOrdering, NetworkReplica, ReplicaOptions
from ordercast.components.network_ordered.catch_up import Target
from ordercast.components.network_ordered.gaps import GAPS
from ordercast.components.network_ordered.messages import Pledge, Pledges
from ordercast.components.network_ordered.ordering import OrderingOwner
from ordercast.components.network_ordered.place import Rank, Slot
from ordercast.components.network_ordered.replica import SYNC
from ordercast.components.network_ordered.views import RETURNING, VIEW
from ordercast.core import (
    Env,
    Explanation,
    GroupId,
    Message,
    MessageId,
    Nanos,
    NodeId,
    RemoteError,
    ServiceSpec,
    Wait,
    message_sender,
    named,
)

CERTAIN = "certain"
PLEDGES = "pledges"
_FOREIGN = frozenset(MESSAGES)
_pledges = msgspec.msgpack.Decoder(list[Pledge])


class ShardReplica(NetworkReplica):
    """One replica of one of several groups."""

    ledger: ShardLedger
    gaps: ShardGaps
    ordering: ShardOrdering

    def __init__(
        self,
        env: Env,
        group: GroupId,
        members: tuple[NodeId, ...],
        service: ServiceSpec | None,
        ordering: Callable[[Env, OrderingOwner], NetworkOrdering],
        options: ReplicaOptions,
        *,
        durable: bool,
        coordinators: tuple[NodeId, ...],
        certain_ns: Nanos,
        lock_ns: Nanos,
    ) -> None:
        self.coordinators = coordinators
        self._certain_ns = certain_ns
        self._lock_ns = lock_ns
        self._locked: dict[MessageId, Nanos] = {}
        """Since when this leader knows of a transaction that is not concluded."""
        self.book: dict[Mark, Pledge] = {}
        """By mark: what this view has promised not to take, or is never to take."""
        self._aside: dict[Slot, LogEntry] = {}
        self._void: set[Slot] = set()
        """Slots whose messages were found, and do not count because their sequencer was removed before."""
        super().__init__(env, group, members, service, ordering, options, durable=durable)

    def _make_ledger(self, executor: Executor) -> ShardLedger:
        every, enders = self.options.checkpoint_every, self.coordinators
        return ShardLedger(self.log, executor, every, self.group, enders)

    def _make_gaps(self) -> ShardGaps:
        return ShardGaps(self)

    # Its life

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin, with what an earlier life has promised."""
        if self.store.is_durable and PLEDGES in saved:
            self.book = {_mark(pledge): pledge for pledge in _pledges.decode(saved[PLEDGES])}
        super().on_start(saved)
        self.env.set_timer(CERTAIN, self._certain_ns)

    def on_timer(self, name: str) -> None:
        """Tell how far the group is certain, and what waits here for a decision."""
        if name == CERTAIN:
            self.env.set_timer(CERTAIN, self._certain_ns)
            self._tell_certain()
            self._end_late()
        else:
            if name in (GAPS, VIEW, SYNC):
                self._show_aside()
            super().on_timer(name)
            if name == VIEW:
                self.views.go_on()

    def _tell_certain(self) -> None:
        clock = self.log.synced_rank[0] - 1  # another message with the same clock may follow
        if self.is_normal and self.leads and clock > 0:
            self.env.multicast(self.coordinators, Certain(clock))

    def _show_aside(self) -> None:
        """Ask again about what must not be taken now."""
        self.missing(list(self.aside))
        for entry in self._aside.values():
            self._show(entry)

    def _show(self, entry: LogEntry) -> None:
        self.env.multicast(self.coordinators, Shown(marks.told(entry, self.group)))

    # What it promises

    @property
    def aside(self) -> Mapping[Slot, LogEntry]:
        """What came although it must not be taken now."""
        self._forget_aside()
        return self._aside

    @property
    def has_promised(self) -> bool:
        """Whether there is any message that it must not take."""
        return bool(self.book)

    @property
    def taken(self) -> Iterable[LogEntry]:
        """What is in its log, and what it keeps of before."""
        return chain(self.ledger.kept, self.log.entries)

    def is_promised(self, entry: LogEntry) -> bool:
        """Whether an entry must not be taken now."""
        return any(mark in self.book for mark in marks_of(entry, self.group))

    def withhold(self, entry: LogEntry) -> bool:
        """Put an entry aside if it must not be taken now; whether that is so."""
        if entry.slot in self.log.noops or not self.is_promised(entry):
            return False  # what is given up already does not wait for anybody
        if entry.slot not in self._aside and not self.log.is_behind(entry.slot):
            self._aside[entry.slot] = entry
            self.missing([entry.slot])
            self._show(entry)
        return True

    def pledges(self) -> Pledges:
        """What binds this view."""
        return tuple(pledge for _, pledge in sorted(self.book.items()))

    def take_pledges(self, pledges: Pledges) -> None:
        """Have the pledges of a view, and no others: those that it does not know, no majority has made."""
        self.book = {_mark(pledge): pledge for pledge in pledges}
        self._save_book()
        self._release()
        self.ordering.sift()

    def _save_book(self) -> None:
        if self.store.is_durable:
            self.env.save(PLEDGES, msgspec.msgpack.encode(list(self.book.values())))

    def _release(self) -> None:
        """Take what was put aside and may be taken now."""
        for slot, entry in list(self.aside.items()):
            if not self.is_promised(entry):
                del self._aside[slot]
                self.ordering.believe(slot)
                self.ordering.offer(entry)

    def install(self, target: Target, entries: list[LogEntry]) -> None:
        """Have the log of another replica. What a leader has in its log, it has not promised away; so what
        this one promised is no part of a majority."""
        held = [mark for entry in entries for mark in marks_of(entry, self.group)]
        moot = [mark for mark in held if mark in self.book and not self.book[mark].is_final]
        for mark in moot:
            self.book.pop(mark, None)
        if moot:
            self._save_book()
        super().install(target, entries)
        self._release()
        self.ordering.sift()

    def _forget_aside(self) -> None:
        """What is in the log, or before it, or given up, waits no more."""
        log = self.log
        for slot in (*self._aside, *sorted(self._void)):
            if slot in log.slots or slot in log.noops or log.is_behind(slot):
                self._aside.pop(slot, None)
                self._void.discard(slot)

    def may_lead(self) -> bool:
        """Take out what is gone. A log with a message that somebody has promised not to take must wait: the
        coordinator may have decided either way."""
        log, open_ = self.log, []
        promised = [entry for entry in log.entries[log.synced :] if self.is_promised(entry)]
        for entry in promised:
            own = marks_of(entry, self.group)
            if any(mark in self.book and self.book[mark].is_final for mark in own):
                log.give_up(entry.slot)
                self._drop([entry.slot])
            else:
                open_.append(entry)
        if len(open_) < len(promised):
            self.save_noops()
            self.ordering.reset(log.end, (), log.noops)
            self.ordering.sift()
        for entry in open_:
            self._show(entry)
        return not open_

    # Locks

    def on_certain(self, entry: LogEntry) -> None:
        """Tell what became of locks, and answer the calls that had waited for them."""
        effects = self.ledger.effects.pop(entry.slot, None)
        if effects is None:
            return
        for notice in effects.notices:
            self.env.deliver(notice)
        if self.leads:
            for done in effects.released:
                place = done.stamp.clock, done.stamp.issuer, done.stamp.numbers
                self.env.send(message_sender(done.first), LateAnswer(done.first, done.results, place))

    def _end_late(self) -> None:
        """As the leader, have transactions ended in all of their shards that hold locks for too long."""
        shard = self.ledger.executor.shard
        if shard is None or not (self.is_normal and self.leads):
            self._locked.clear()
            return
        pending, now = shard.pending, self.env.now
        self._locked = {one: self._locked.get(one, now) for one in pending}
        late = [(one, pending[one]) for one, since in self._locked.items() if now - since >= self._lock_ns]
        if late:
            self.env.multicast(self.coordinators, Late(tuple(late[:MARKS_MAX])))

    # What comes

    def on_message(self, source: NodeId, message: Message) -> None:
        """Take a message of the coordinator, or any other."""
        if type(message) not in _FOREIGN:
            super().on_message(source, message)
            return
        if source not in self.coordinators:
            raise RemoteError(f"node {source} sent {named(message)}, but is no coordinator")
        check_rulings(source, message, self.env.now)
        if self.views.status is not RETURNING:
            self._on_coordinator(source, message)
        self.ordering.advance()

    def _on_coordinator(self, source: NodeId, message: Message) -> None:
        match message:
            case Question():
                self._on_question(source, message)
            case FoundMessages():
                for entry in message.entries:
                    self._on_found(entry)
                self._release()
                self.views.go_on()
            case Gone():
                self._on_gone(message)
            case Floors():
                self._on_floors(message)

    def _on_question(self, source: NodeId, question: Question) -> None:
        """Show what is here, and promise not to take the rest."""
        if not self.is_normal:
            return
        promised = []
        for loss in question.losses:
            entry = self._find_mark(loss.mark)
            if entry is not None:
                self.env.send(source, Shown(marks.told(entry, self.group)))
            elif self._may_promise(loss):
                promised.append(loss.mark)
                self.book.setdefault(loss.mark, Pledge(*loss.mark, loss.bound))
        if promised:
            self._save_book()
            self.env.send(source, Promised(self.view, self.tag, tuple(promised)))

    def _find_mark(self, mark: Mark) -> LogEntry | None:
        """The message with a mark, if it is here in any way."""
        kept, aside = self.ledger.kept, self._aside.values()
        return marks.find(chain(self.log.entries, kept, aside, self.ordering.waiting()), mark, self.group)

    def _may_promise(self, loss: Lost) -> bool:
        """What is before the base was taken or given up, and is not to be decided anew."""
        sequencer, group, number = loss.mark
        return group != self.group or not self.log.is_behind((sequencer, number))

    def _on_found(self, found: LogEntry) -> None:
        """A message counts: take it."""
        found_marks = marks.marks_of(found, self.group)
        if any(self.book.pop(mark, None) for mark in found_marks):
            self._save_book()
        entry = marks.taken(found, self.group)
        if entry is not None:
            self.ordering.check(entry)
            self._aside.pop(entry.slot, None)
            if self.ordering.is_void(entry):
                self._void.add(entry.slot)
                self.gaps.on_ruling()
            elif entry.slot not in self.log.slots and entry.slot not in self.log.noops:
                self.ordering.believe(entry.slot)
                self.ordering.offer(entry)
                self.ordering.advance()  # a full buffer has room for the next number only

    def _on_gone(self, gone: Gone) -> None:
        """Messages never count: note it, and take out of what waits whatever it concerns."""
        for loss in gone.losses:
            self.book[loss.mark] = Pledge(*loss.mark, loss.bound, is_final=True)
        self._save_book()
        self.ordering.sift()
        self.gaps.on_ruling()
        self.views.go_on()

    def _on_floors(self, floors: Floors) -> None:
        """Forget what nobody asks for any more."""
        self.ledger.prune(floors.clocks)
        lowest = min(floors.clocks)
        stale = [mark for mark, pledge in self.book.items() if pledge.bound <= lowest]
        for mark in stale:
            del self.book[mark]
        if stale:
            self._save_book()
            self._release()

    def counts_nowhere(self, slot: Slot) -> bool:
        """Whether the message in a slot of this group is decided to be gone, or does not count."""
        pledge = self.book.get((slot[0], self.group, slot[1]))
        return slot in self._void or (pledge is not None and pledge.is_final)

    def search(self, slots: Iterable[Slot]) -> None:
        """Ask the coordinator for messages that nobody in this group has."""
        losses = []
        for slot in slots:
            bound = self.ordering.bound(slot)
            if slot not in self._aside and bound is not None:
                losses.append(Lost((slot[0], self.group, slot[1]), bound))
        for start in range(0, len(losses), MARKS_MAX):
            part = tuple(losses[start : start + MARKS_MAX])
            self.env.multicast(self.coordinators, FindMessages(part))

    def reconfigured(self, is_void: Callable[[LogEntry], bool], beyond: Rank | None) -> None:
        """What was put aside may not count any more."""
        self.gaps.give_up_passed(is_void)
        super().reconfigured(is_void, beyond)
        self.ordering.sift()

    def explain(self) -> Explanation:
        """What waits for the coordinator too."""
        found = super().explain()
        state = dict(found.state) | {"messages not to take": len(self.book)}
        waits = [
            Wait(
                f"the message in slot {slot}",
                "a decision of the coordinator",
                self.env.now,
                on=self.coordinators,
            )
            for slot in self._aside
        ]
        return Explanation(state, (*found.waits, *waits), found.behind)


def _mark(pledge: Pledge) -> Mark:
    return pledge.sequencer, pledge.group, pledge.number
