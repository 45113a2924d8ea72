"""The log of a replica: its durable journal, how far it is committed, and who the replicas are."""

from collections.abc import Callable
from dataclasses import dataclass

from ordercast.components.consensus.journal import NOOP, Journal
from ordercast.components.consensus.options import ConsensusOptions
from ordercast.core import CheckpointPace, Delivered, Env, LocalError, NodeId, RemoteError, Stamp

RARE = 8
"""A large snapshot is made at the latest when the log has grown by one part in so many of its limit."""


class Group:
    """The replicas of a log, in the order that numbers their ballots, and which of them is me."""

    __slots__ = ("index", "indices", "majority", "others", "peers")

    def __init__(self, me: NodeId, peers: tuple[NodeId, ...]) -> None:
        if me not in peers or len(set(peers)) != len(peers):
            raise LocalError(f"consensus: peers {peers} must differ, and node {me} must be one of them")
        self.peers = peers
        self.index = peers.index(me)
        self.indices = {peer: index for index, peer in enumerate(peers)}
        self.others = tuple(peer for peer in peers if peer != me)
        self.majority = len(peers) // 2 + 1

    def index_of(self, node: NodeId) -> int:
        """The place of a replica in that order; `RemoteError` if the node is none."""
        index = self.indices.get(node)
        if index is None:
            raise RemoteError(f"node {node} sent a message of a log of which it is no replica")
        return index

    def owner(self, ballot: int) -> NodeId:
        """The only replica that may lead in a ballot."""
        return self.peers[ballot % len(self.peers)]

    def ballot_above(self, ballot: int) -> int:
        """The lowest of my own ballots above another ballot."""
        return ballot + 1 + (self.index - ballot - 1) % len(self.peers)


@dataclass(frozen=True, slots=True)
class Owner:
    """The state machine above a log: its state as bytes, and how it is kept."""

    snapshot: Callable[[], bytes] | None = None
    """The state after the slot last delivered. Without it nothing is truncated."""
    restore: Callable[[bytes], None] | None = None
    """Takes a state back: at the start, and if `transfers`, at any time in place of slots that are missed."""
    transfers: bool = False
    """Snapshots go to replicas that lag behind. So the log is truncated when a majority has a snapshot."""
    durable: bool = True
    """Everything is saved. Otherwise a restart forgets all, and the replica recovers from the others."""

    def __post_init__(self) -> None:
        if self.transfers and (self.snapshot is None or self.restore is None):
            raise LocalError("consensus: give `snapshot` and `restore` if snapshots are to be transferred")
        if not (self.durable or self.transfers):
            raise LocalError("consensus: a log in memory needs `transfers`: replicas recover by snapshots")


class Log:
    """Slots in order: the journal, the committed prefix, and the owner's state after it."""

    __slots__ = ("_pace", "committed", "env", "group", "journal", "options", "owner")

    def __init__(
        self,
        env: Env,
        group: Group,
        options: ConsensusOptions,
        owner: Owner,
        journal: type[Journal] = Journal,
    ) -> None:
        self.env = env
        self.group = group
        self.options = options
        self.owner = owner
        self.journal = journal(env, len(group.peers), durable=owner.durable, keeps_state=owner.transfers)
        self._pace = CheckpointPace()
        self.committed = 0
        """Slots below are committed and delivered, or in the snapshot that was restored."""

    def deliver_next(self) -> None:
        """The next slot holds its chosen value: commit and deliver it, and take a snapshot if due."""
        slot, snapshot = self.committed, self.owner.snapshot
        value = self.journal.entries[slot][1]
        self.committed = slot + 1
        if value != NOOP:
            self.env.deliver(Delivered(value, (), self.env.me, Stamp(slot, 0)))
        self._pace.count(len(value))
        if snapshot and self._is_checkpoint():
            state = snapshot()
            self._pace.taken(len(state))
            self.journal.checkpoint(self.committed, state)

    def _is_checkpoint(self) -> bool:
        """Whether a snapshot is due. All replicas make them at the same slots."""
        since, options = self.committed - self.journal.stable, self.options
        rare = max(options.checkpoint, options.log_limit // RARE)
        return since >= options.checkpoint and (self._pace.is_worthwhile or since >= rare)

    def restore(self, state: bytes | None) -> None:
        """Begin with the snapshot of an earlier life."""
        self._take(self.journal.stable, state)

    def install(self, index: int, state: bytes) -> None:
        """Take a snapshot of another replica, in place of the slots below `index`; `RemoteError`, and nothing
        changes, if its owner cannot."""
        committed = self.committed
        try:
            self._take(index, state)
        except LocalError as error:
            self.committed = committed
            raise RemoteError(f"another replica sent a snapshot that cannot be taken: {error}") from error
        self.journal.install(index, state)

    def _take(self, committed: int, state: bytes | None) -> None:
        """Go on behind these slots, with the owner's state there; without one, with a fresh owner."""
        self.committed = committed
        if state is not None and self.owner.restore is not None:
            self.owner.restore(state)
        self._pace.taken(len(state or b""))

    @property
    def reach(self) -> int:
        """Slots below may be accepted; who is so far behind that they do not fit catches up first."""
        return self.committed + self.options.log_limit
