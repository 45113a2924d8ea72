"""A replica of NOPaxos (section 5) over any `NetworkOrdering`.

Each replica appends what the network orders, and tells the client. The leader executes it first, and sends
the result. A client that has f+1 equal replies, that of the leader among them, knows that its call survives.
What else there is, is in parts: gap agreement, view changes, synchronisation, catching up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ordercast.components.execution import Executor
from ordercast.components.network_ordered.answers import Answers
from ordercast.components.network_ordered.catch_up import CATCH_UP, CatchUp, Target
from ordercast.components.network_ordered.explain import explain_replica
from ordercast.components.network_ordered.gaps import GAPS, GapAgreement
from ordercast.components.network_ordered.inbox import Inbox
from ordercast.components.network_ordered.ledger import Ledger
from ordercast.components.network_ordered.limits import check_claims
from ordercast.components.network_ordered.log import SlotLog
from ordercast.components.network_ordered.messages import Pledges, ReadRequest
from ordercast.components.network_ordered.options import ReplicaOptions
from ordercast.components.network_ordered.ordering import NetworkOrdering, OrderingOwner
from ordercast.components.network_ordered.place import LogEntry, LogPlace, Rank, Slot
from ordercast.components.network_ordered.storage import Store, has_state
from ordercast.components.network_ordered.supply import Supply
from ordercast.components.network_ordered.syncs import PART, Synchronisation
from ordercast.components.network_ordered.views import (
    CHANGING,
    NORMAL,
    RETURN,
    RETURNING,
    SILENCE,
    VIEW,
    Views,
)
from ordercast.core import (
    Checkpoint,
    Env,
    Explanation,
    GroupId,
    LocalError,
    Message,
    NodeId,
    Process,
    RemoteError,
    ServiceSpec,
    named,
)

SYNC = "sync"


class NetworkReplica(Process):
    """One replica of one group."""

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
    ) -> None:
        super().__init__(env)
        self.group = group
        self.options = options
        self._members = members
        self.others = tuple(node for node in members if node != env.me)
        self.support = len(members) // 2
        """The paper's f: so many others and this replica are a majority."""
        self.store = Store(env, durable=durable)
        self.log = SlotLog(options.keep)
        self.ledger = self._make_ledger(Executor(env, service))
        self.supply = Supply(self)
        self.answers = Answers(self)
        self.gaps = self._make_gaps()
        self.catch_up = CatchUp(self)
        self.syncs = Synchronisation(self)
        self.views = Views(self)
        self.inbox = Inbox(self)
        self.ordering = ordering(env, self)

    # What replicas of several groups do differently

    def _make_ledger(self, executor: Executor) -> Ledger:
        return Ledger(self.log, executor, self.options.checkpoint_every)

    def _make_gaps(self) -> GapAgreement:
        return GapAgreement(self)

    def pledges(self) -> Pledges:
        """What this replica has promised to somebody outside its group."""
        return ()

    def take_pledges(self, pledges: Pledges) -> None:
        """Have those of the view, and no others."""

    def may_lead(self) -> bool:
        """Whether a view may begin with the log, as far as its pledges go; called again by `Views.go_on`."""
        return True

    def on_certain(self, entry: LogEntry) -> None:
        """An entry is certain, executed and delivered."""

    @property
    def view(self) -> int:
        """The view that it is in, or changes to."""
        return self.views.view

    @property
    def tag(self) -> int:
        """The tag of the ordering."""
        return self.ordering.tag

    def leader_of(self, view: int) -> NodeId:
        """The leader of a view."""
        return self._members[view % len(self._members)]

    @property
    def leader(self) -> NodeId:
        """The leader of this view."""
        return self.leader_of(self.view)

    @property
    def leads(self) -> bool:
        """Whether that is this replica."""
        return self.leader == self.env.me

    @property
    def is_normal(self) -> bool:
        """Whether the view has begun here."""
        return self.views.status is NORMAL

    @property
    def executes_all(self) -> bool:
        """Whether this replica executes what is not certain yet: only the leader does."""
        return self.is_normal and self.leads

    # Its life

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin, go on where an earlier life was, or return without memory."""
        self.views.life = self.env.now
        if self.store.is_durable and has_state(saved):
            self._restore(saved)
        elif self.env.forgot or saved:
            self.views.status = RETURNING
            self.store.clear(saved)
            self.ordering.holds = True
            self.ordering.lose_memory()
        else:
            self.store.begin()
            self.views.save()
            self.ordering.begin()
        self.env.set_timer(SYNC, self.options.sync_ns)
        self.env.set_timer(SILENCE, self.options.silence_ns)
        self.ordering.advance()

    def _restore(self, saved: Mapping[str, bytes]) -> None:
        found, views = self.store.restore(saved), self.views
        views.view, views.normal = found.view, found.normal
        if found.state is not None:
            self.ledger.restore(found.base, found.state)
        for entry in found.entries:
            self.log.append(entry)
        self.log.noops = set(found.noops)
        self.log.synced = self.log.index_of(found.synced)
        self.syncs.muted = found.muted
        self.ordering.restore(found.ordering)
        self.ordering.reset(self.log.end, (), self.log.noops)
        self.ledger.execute(self.log.synced)
        if self.leads and views.view == views.normal:
            views.change(views.view + 1)  # what it had proposed to give up may not be agreed on yet
        elif views.view != views.normal:
            views.enter_change()

    def stop(self) -> None:
        """The view ends here: do nothing more in it, and undo what is not certain."""
        self.ordering.holds = True
        self.gaps.clear()
        self.catch_up.stop()
        self.syncs.clear()
        self.ledger.roll_back(self.log.synced)

    def on_nodes(self, roles: Mapping[NodeId, str]) -> None:
        """Other sequencers may be there now."""
        self.ordering.on_nodes(roles)

    def on_timer(self, name: str) -> None:
        """Synchronise, watch the leader, or repeat something."""
        if name == SYNC:
            self.env.set_timer(SYNC, self.options.sync_ns)
            self.syncs.propose()
        elif name == PART:
            self.syncs.go_on()
        elif name == SILENCE:
            self.views.watch()
        elif name == GAPS:
            self.gaps.on_timer()
        elif name == CATCH_UP:
            self.catch_up.on_timer()
        elif name == VIEW:
            self.views.on_timer()
        elif name == RETURN:
            self.views.ask_to_return()
        else:
            self.ordering.on_timer(name)
        self.ordering.advance()

    # What comes

    def on_message(self, source: NodeId, message: Message) -> None:
        """Take a message of a replica, of a client, or of the network."""
        if self.ordering.handles(message):
            self.ordering.on_message(source, message)
        elif isinstance(message, ReadRequest):
            self.answers.on_read(source, message)
        elif source not in self._members:
            raise RemoteError(f"node {source} sent {named(message)}, but is no replica")
        else:
            check_claims(source, message, self)
            self.inbox.on_message(source, message)
        self.ordering.advance()

    # The normal case

    def ordered(self, entry: LogEntry) -> None:
        """Append the next call; the leader executes it."""
        self.log.append(entry)
        self.store.save_entry(entry)
        self.execute_all()
        self.answers.reply(len(self.log.entries) - 1)

    def execute_all(self) -> None:
        """As the leader, execute what is not certain yet."""
        self.ledger.execute(len(self.log.entries) if self.executes_all else 0)

    def missing(self, slots: list[Slot]) -> None:
        """Slots are missing."""
        if self.is_normal:
            self.gaps.missing(slots)

    # The log

    def find(self, slot: Slot) -> LogEntry | None:
        """An entry in the log, or on its way there."""
        return self.log.find(slot) or self.ordering.find(slot)

    def give_up(self, source: NodeId, slots: Iterable[Slot]) -> None:
        """Slots are given up by the leader: their entries do not count, if they are here."""
        # A lane that does not count any more has nothing left to give up.
        known = [slot for slot in slots if self.ordering.begun(slot[0]) is not None]
        for slot in known:
            if self.log.is_certain(slot):
                raise RemoteError(f"node {source} gives up slot {slot}, which is certain")
        for slot in known:
            self.log.give_up(slot)
        self._drop(known)
        for slot in known:
            self.ordering.settle(slot)
        self.save_noops()

    def _drop(self, slots: Iterable[Slot]) -> None:
        for entry in self.log.remove(slots):
            self.store.drop_entry(entry)

    def save_noops(self) -> None:
        """Keep the slots that were given up, if this replica is durable."""
        self.store.save_noops(self.log.noops)

    def take_state(self, base: LogPlace, state: bytes) -> None:
        """Go on from the state of another replica: what it is made of is certain."""
        try:
            gone = self.ledger.restore(base, state)
        except LocalError as error:
            raise RemoteError(f"another replica sent a state that cannot be taken: {error}") from error
        for entry in gone:
            self.store.drop_entry(entry)
        self.store.save_base(base, state)
        self.save_noops()
        self.store.save_synced(self.log.synced_rank, self.syncs.muted)
        stamp = self.ledger.executor.place
        if stamp is not None:
            self.env.deliver(Checkpoint(self.group, stamp, *self.ledger.executor.digest(), restored=True))
        self.ordering.reset(self.log.end, (), self.log.noops)
        self.execute_all()

    def install(self, target: Target, entries: list[LogEntry]) -> None:
        """Have the log of another replica behind what is certain; what lies beyond comes again."""
        log = self.log
        self.ledger.roll_back(log.synced)
        before = log.entries[log.synced :]
        beyond = log.replace_tail(entries, target.noops)
        for entry in before:
            self.store.drop_entry(entry)
        for entry in log.entries[log.synced :]:
            self.store.save_entry(entry)
        self.save_noops()
        self.syncs.verify(target.place.rank)
        self.ordering.reset(log.end, beyond, log.noops)

    # The sequencers change

    def reconfigured(self, is_void: Callable[[LogEntry], bool], beyond: Rank | None) -> None:
        """Take out what does not count any more, and reply anew with the new tag."""
        log = self.log
        open_ = log.entries[log.synced :]
        void = [entry for entry in open_ if is_void(entry)]
        again = [] if beyond is None else [entry for entry in open_ if entry.rank > beyond]
        if void or again:
            self.ledger.roll_back(log.synced)
            self._drop([entry.slot for entry in (*void, *again)])
            self.ordering.reset(log.end, [entry for entry in again if not is_void(entry)], log.noops)
            self.gaps.doubt_again()
        self.gaps.ask_anew()
        self.syncs.clear()
        self.catch_up.stop()
        if self.views.status is CHANGING:
            self.views.vote_anew()
        elif self.is_normal:
            self.execute_all()
            self.answers.reply_anew()

    def new_session(self) -> None:
        """The order goes on only after a view change, with the same leader if it is alive."""
        if self.is_normal:
            self.views.change(self.view + len(self._members))

    def revived(self) -> None:
        """Nothing that an earlier life told the ordering counts any more: ask for a view."""
        self.views.ask_to_return()

    def save_ordering(self) -> None:
        """Keep the state of the ordering, if this replica is durable."""
        if self.views.status is not RETURNING:
            self.store.save_ordering(self.ordering.state)

    def explain(self) -> Explanation:
        """What is missing here, and what this replica waits for."""
        return explain_replica(self)
