"""Options of sequencing atoms, with defaults for one local network."""

from ordercast.components.consensus import ConsensusOptions
from ordercast.core import MILLISECOND, LocalError, Nanos, Options, Pace
from ordercast.protocols.atoms.sites import PLACEMENTS


class AtomsOptions(Options, frozen=True):
    """Sequencing nodes, the store, windows and timeouts."""

    nodes: int = 3
    """Sequencing nodes."""
    store: int = 3
    """Replicas of the store of groups and their members. They run on the hosts of the first sequencing nodes,
    as far as there are enough."""
    compact: bool = False
    """Sequencing nodes and replicas of the store run on the hosts of the first receivers."""
    copies: int = 2
    """On how many sequencing nodes a numbered message is before a subscriber gets it. If fewer are up, groups
    wait. If there are more than that, one may be gone for good."""
    grouping: str = "shared_member"
    """Which atoms share a sequencing node at the start: a name from `sequencing_graph.GROUPINGS`, or
    `subtrees`, with which the paths of many groups change their nodes least."""
    causal: bool = False
    """Promise causal order. Every group that shares one subscriber with another then has an atom with it, and
    a publisher waits until its last message has its place before it sends to another group."""
    window: int = 64
    """How many messages of a publisher to one group may be without a place; then `submit` returns False."""
    history: int = 16_384
    """How many messages of a group are kept for subscribers that have not delivered them. Beyond, publishers
    wait for those that are slow; those that do not answer are no longer subscribers, and are told so."""
    retry_ns: Nanos = 20 * MILLISECOND
    """Time before anything that is not answered is sent again; it doubles up to eight times that."""
    heartbeat_ns: Nanos = 5 * MILLISECOND
    """Time between two signs of life of a sequencing node."""
    suspect_ns: Nanos = 40 * MILLISECOND
    """After this time without a sign of life, the atoms of a sequencing node move to others."""
    consensus: ConsensusOptions = ConsensusOptions()
    """Options of the store's log."""

    @property
    def detection_ns(self) -> Nanos:
        """A sequencing node or the leader of the store is missed."""
        return max(self.suspect_ns + self.heartbeat_ns, self.consensus.detection_ns)

    def pace(self, delay: Nanos) -> Pace:
        """A message takes some round trips. Recovery takes a new leader of the store, the detection of nodes
        that are gone, and two changes, each of which repeats what was lost."""
        repeated = 8 * self.retry_ns
        delivery = 3 * repeated + 30 * delay
        recovery = self.consensus.recovery_ns + 2 * self.detection_ns + 8 * repeated + 100 * delay
        return Pace(delivery, recovery)

    def __post_init__(self) -> None:
        limits = (self.nodes, self.store, self.copies, self.window, self.history)
        times = (self.retry_ns, self.heartbeat_ns, self.suspect_ns)
        if min(*limits, *times) < 1:
            raise LocalError("atoms: numbers of nodes, limits and timeouts must be positive")
        if self.copies > self.nodes:
            raise LocalError(f"atoms: copies is {self.copies}, but there are only {self.nodes} nodes")
        if self.suspect_ns <= self.heartbeat_ns:
            raise LocalError("atoms: suspect_ns must be above heartbeat_ns")
        if self.grouping not in PLACEMENTS:
            names = ", ".join(PLACEMENTS)
            raise LocalError(f"atoms: there is no grouping '{self.grouping}'; there are: {names}")
