"""Synchronisation (NOPaxos section 5.5): a prefix of the log becomes certain when a majority has it.

The leader proposes the end of its log, with the slots that were given up before it. Others agree when they
have the same prefix, with the same tag. A certain prefix is never undone. Only then is it executed by others
than the leader, and delivered. The proposal is also the leader's sign of life, and the answer that of others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.components.network_ordered.catch_up import Target
from ordercast.components.network_ordered.messages import SyncCommit, SyncPrepare, SyncReply
from ordercast.core import Checkpoint, Delivered

if TYPE_CHECKING:
    from ordercast.components.network_ordered.place import LogPlace, Rank
    from ordercast.components.network_ordered.replica import NetworkReplica
    from ordercast.core import NodeId

PART = "part"
"""The timer of the replica to execute more of what is certain."""


class Synchronisation:
    """The part of one replica in it."""

    def __init__(self, replica: NetworkReplica) -> None:
        self._replica = replica
        self._place: LogPlace | None = None
        """What the leader proposes, or what this replica was last asked to agree to."""
        self._acks: set[NodeId] = set()
        self._verified: Rank = (0, 0)
        """Up to here the log is that of the leader of this view."""
        self._certain: Rank = (0, 0)
        """Up to here the log is known to be certain, also what is not executed yet."""
        self._part = 0
        """How many entries are executed at a time."""
        self.muted: Rank = (0, 0)
        """Up to here an earlier life may have delivered."""

    def clear(self) -> None:
        """The view or the tag has changed: what was agreed on before counts no more."""
        self._place = None
        self._acks.clear()
        self._verified = self._certain = (0, 0)

    def verify(self, rank: Rank) -> None:
        """Note that the log is that of the leader up to a place."""
        self._verified = max(self._verified, rank)

    def _is_verified(self, rank: Rank) -> bool:
        """Whether the log is that of the leader up to a place."""
        return rank <= max(self._verified, self._replica.log.synced_rank)

    def propose(self) -> None:
        """As the leader, propose to make the log certain; tell the view to those that do not have it."""
        replica, log = self._replica, self._replica.log
        if not replica.executes_all:
            return
        if self._place is None or self._place.rank <= log.synced_rank:
            self._place = log.end
            self._acks.clear()
        noops = tuple(sorted(log.noops))
        is_certain = self._place.rank <= log.synced_rank
        prepare = SyncPrepare(replica.view, replica.tag, log.base, self._place, noops, is_certain)
        for node in replica.others:
            if replica.views.has_view(node):
                replica.env.send(node, prepare)
            else:
                replica.views.tell(node)
        self._try_to_commit()

    def on_prepare(self, source: NodeId, message: SyncPrepare) -> None:
        """Agree with the leader's log up to a place; catch up if this replica stays behind it."""
        replica = self._replica
        if source != replica.leader:
            return
        # All of them: one that the leader passed before the place may be above its last number there.
        replica.give_up(source, message.noops)
        # NO-OPs before the leader's base are not told any more: a call here may be one of them.
        if self._is_verified(message.base.rank) and replica.log.rank >= message.place.rank:
            self._agree(message)
        elif replica.catch_up.target is None and self._place == message.place:
            noops = frozenset(message.noops) | replica.log.noops
            target = Target(message.base, message.place, noops, source, source)
            replica.catch_up.begin(target, lambda: self._agree(message))
        else:
            self._place = message.place

    def _agree(self, message: SyncPrepare) -> None:
        """Say so each time, also when nothing is new: a leader that hears nobody gives way."""
        replica, rank = self._replica, message.place.rank
        self._place = message.place
        self.verify(rank)
        replica.env.send(replica.leader, SyncReply(replica.view, replica.tag, *rank))
        if message.is_certain:
            self._commit(rank)

    def on_reply(self, source: NodeId, message: SyncReply) -> None:
        """Another replica has the same prefix."""
        place = self._place
        replica = self._replica
        if replica.leads and place is not None and (message.clock, message.sequencer) == place.rank:
            self._acks.add(source)
            self._try_to_commit()

    def _try_to_commit(self) -> None:
        """Make the log certain if f others agree."""
        replica, place = self._replica, self._place
        if place is None or place.rank <= replica.log.synced_rank:
            return
        if len(self._acks) >= replica.support:
            self._make_certain(replica.log.index_of(place.rank))
            replica.env.multicast(replica.others, SyncCommit(replica.view, replica.tag, *place.rank))

    def on_commit(self, source: NodeId, message: SyncCommit) -> None:
        """A prefix that this replica has as the leader has it is certain."""
        if source == self._replica.leader:
            self._commit((message.clock, message.sequencer))

    def _commit(self, rank: Rank) -> None:
        log, store, options = self._replica.log, self._replica.store, self._replica.options
        if log.synced_rank < rank <= log.rank and self._is_verified(rank):
            self._certain = rank
            parts = 1 if store.is_durable else options.spread
            self._part = -(-(log.index_of(rank) - log.synced) // parts)
            self.go_on()

    def go_on(self) -> None:
        """Execute the next part of what is certain: as if the leader had proposed only that."""
        replica, log = self._replica, self._replica.log
        stop = log.index_of(self._certain)
        if stop > log.synced:
            self._make_certain(min(stop, max(log.synced + self._part, log.index_of(self.muted))))
        if self._certain > log.synced_rank:
            replica.env.set_timer(PART, replica.options.sync_ns // (2 * replica.options.spread))

    def _make_certain(self, stop: int) -> None:
        """Execute, deliver and keep the state, up to this many entries."""
        replica, log, ledger = self._replica, self._replica.log, self._replica.ledger
        ledger.execute(stop)
        start, log.synced = log.synced, stop
        replica.store.save_synced(log.synced_rank, self.muted)
        middle = min(max(start, log.index_of(self.muted)), stop)
        if start < middle:
            self._note_restored(middle)
        own = (replica.group,)
        for index in range(middle, stop):
            call, done = ledger.outcomes[index]
            if done is not None and done.fresh and call is not None:
                groups = log.entries[index].groups or own
                replica.env.deliver(Delivered(call.bundle, groups, call.client, done.stamp))
            replica.on_certain(log.entries[index])
        self._take_checkpoints()
        if log.synced_rank >= self._certain:
            replica.ordering.forget(log.place_at(log.synced), log.entries)

    def _note_restored(self, middle: int) -> None:
        """What is before counts as restored: an earlier life may have delivered it, and nothing beyond."""
        replica, ledger = self._replica, self._replica.ledger
        ahead = ledger.executed
        ledger.roll_back(middle)
        stamp = replica.log.entries[middle - 1].stamp
        digest = ledger.executor.digest()
        replica.env.deliver(Checkpoint(replica.group, stamp, *digest, restored=True))
        ledger.execute(ahead)

    def _take_checkpoints(self) -> None:
        """Forget the log before the last state that has become certain."""
        replica, log, ledger = self._replica, self._replica.log, self._replica.ledger
        while (taken := ledger.next_checkpoint()) is not None:
            if taken.place.rank > self.muted:
                stamp = log.entries[log.index_of(taken.place.rank) - 1].stamp
                replica.env.deliver(Checkpoint(replica.group, stamp, *taken.digest))
            if replica.supply.holds_base:
                continue
            for entry in ledger.rebase(taken.place, taken.state):
                replica.store.drop_entry(entry)
            replica.store.save_base(taken.place, taken.state)
            replica.save_noops()
