"""The log of a replica: its durable journal, how far it is committed, and who the replicas are."""

from collections.abc import Callable

from ordercast.components.consensus.journal import NOOP, Journal
from ordercast.components.consensus.options import ConsensusOptions
from ordercast.core import Delivered, Env, LocalError, NodeId, Stamp


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

    def owner(self, ballot: int) -> NodeId:
        """The only replica that may lead in a ballot."""
        return self.peers[ballot % len(self.peers)]

    def ballot_above(self, ballot: int) -> int:
        """The lowest of my own ballots above another ballot."""
        return ballot + 1 + (self.index - ballot - 1) % len(self.peers)


class Log:
    """Slots in order: the journal, the committed prefix, and the owner's state after it."""

    __slots__ = ("_snapshot", "committed", "env", "group", "journal", "options")

    def __init__(
        self,
        env: Env,
        group: Group,
        options: ConsensusOptions,
        snapshot: Callable[[], bytes] | None,
    ) -> None:
        self.env = env
        self.group = group
        self.options = options
        self.journal = Journal(env)
        self.committed = 0
        """Slots below are committed and delivered."""
        self._snapshot = snapshot

    def deliver_next(self) -> None:
        """The next slot holds its chosen value: commit and deliver it, and take a snapshot if due."""
        slot = self.committed
        value = self.journal.entries[slot][1]
        self.committed = slot + 1
        if value != NOOP:
            self.env.deliver(Delivered(value, (), self.env.me, Stamp(slot, 0)))
        if self._snapshot and self.committed - self.journal.stable >= self.options.checkpoint:
            self.journal.checkpoint(self.committed, self._snapshot())
