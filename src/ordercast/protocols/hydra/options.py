"""Options of Hydra, with defaults for one data centre."""

from typing import Literal, TypeAlias

from ordercast.components.consensus import ConsensusOptions
from ordercast.core import MICROSECOND, MILLISECOND, LocalError, Nanos, Options

FlushPolicy: TypeAlias = Literal["periodic", "solicited", "adaptive", "aggregated", "nudged"]

SEQUENCERS_MAX = 1024


class HydraOptions(Options, frozen=True):
    """How many sequencers of which kind, how receivers come by their flushes, and all timeouts."""

    sequencers: int = 2
    """Of the first configuration."""
    spares: int = 0
    """Further nodes that can be sequencers."""
    target: int = 0
    """The service adds sequencers that offer themselves up to this many; 0: all of them."""
    kind: Literal["host", "switch"] = "host"
    """What a sequencer runs on; it only names the role, and so the costs that a scenario gives it."""
    pipelines: int = 1
    """Sequencers on each switch, one a pipeline."""
    flush: FlushPolicy = "adaptive"
    """Section 4.6. *periodic* (GEN): sequencers flush every `flush_ns`. *solicited* (SOL): a receiver asks
    when a message has waited for `flush_ns`. *adaptive* (ADP): it asks at once, unless traffic is so dense
    that the wait should end by itself sooner than an answer comes, and within `flush_ns`. *aggregated* (AGG):
    sequencers flush every `flush_ns` to aggregators, and a receiver asks its aggregator. *nudged*, not in the
    paper: a sequencer that stamps nudges the others, which flush unless they have just stamped too; a
    receiver asks only when a message has waited for `flush_ns` all the same."""
    flush_ns: Nanos = 100 * MICROSECOND
    nudge_ns: Nanos = 100 * MICROSECOND
    """A sequencer nudges at most so often."""
    lead_ns: Nanos = 5 * MILLISECOND
    """A sequencer that is nudged and has stamped nothing for so long puts its clock so far ahead: it promises
    to stamp nothing before, and need not be nudged again until then."""
    rack: int = 0
    """Receivers of an aggregator; 0: one for all."""
    route: Literal["random", "hash", "congestion", "sticky"] = "random"
    """How senders choose a sequencer: at random, by a hash of sender and groups (ECMP), at random among those
    with a short round trip, or at random and then the same one for `stick_ns`, so that others may rest."""
    stick_ns: Nanos = 20 * MILLISECOND
    quorum: Literal["majority", "all"] = "majority"
    """Of each group, to agree on a step. *all* makes drop detection uniform (Appendix B)."""
    durable: bool = False
    """Receivers save their place at every delivery, and may restart."""
    virtual_groups: int = 0
    """Groups without receivers, after the real ones, to load sequencers (section 7.1.3)."""
    replicas: int = 3
    """Of the configuration service."""
    heartbeat_ns: Nanos = 5 * MILLISECOND
    """A sequencer flushes at least so often, whatever the policy."""
    suspect_ns: Nanos = 30 * MILLISECOND
    """A receiver that hears nothing of a sequencer for so long suspects it."""
    patience_ns: Nanos = 100 * MICROSECOND
    """How long a drop notification is held back after something needs it: a packet that was only overtaken
    still counts. It delays what is behind a real drop for so long."""
    hold_ns: Nanos = 10 * MILLISECOND
    """How long it is held back when nothing needs it."""
    retry_ns: Nanos = 1 * MILLISECOND
    """After which an unanswered solicitation is repeated, at first; it doubles up to 16 times that."""
    announce_ns: Nanos = 20 * MILLISECOND
    """How often the configuration service says where it stands."""
    addition_ns: Nanos = 100 * MILLISECOND
    """An addition that takes longer is given up."""
    join_ns: Nanos = 20 * MILLISECOND
    """How often a sequencer asks to join; after a removal it waits for so long, doubling each time."""
    probe_ns: Nanos = 1 * MILLISECOND
    """How often a sender that avoids congestion measures round trips."""
    buffer: int = 65_536
    """Packets that a receiver holds; more are dropped as if the network had, and are notified of."""
    strangers: int = 1024
    """Packets that a receiver keeps of sequencers not added yet, and a sequencer until it has its number; the
    oldest go first."""
    window: int = 4096
    """Numbers of each sender that a sequencer remembers, to recognise copies."""
    history: int = 4096
    """Steps that the service keeps; a receiver that misses more cannot catch up."""
    consensus: ConsensusOptions = ConsensusOptions()
    """Of the configuration service."""

    def __post_init__(self) -> None:
        if not 1 <= self.sequencers + self.spares <= SEQUENCERS_MAX or min(self.sequencers, self.spares) < 0:
            raise LocalError(f"hydra: sequencers and spares together must be 1 to {SEQUENCERS_MAX}")
        limits = (self.pipelines, self.replicas, self.buffer, self.strangers, self.window, self.history)
        times = (
            self.heartbeat_ns, self.suspect_ns, self.hold_ns, self.retry_ns, self.announce_ns,
            self.addition_ns, self.join_ns, self.probe_ns, self.nudge_ns, self.stick_ns,
        )  # fmt: skip
        if min(*limits, *times) < 1:
            raise LocalError("hydra: limits and timeouts must be positive")
        counts = (self.target, self.rack, self.virtual_groups)
        if min(self.flush_ns, self.patience_ns, self.lead_ns, *counts) < 0:
            raise LocalError(
                "hydra: flush_ns, patience_ns, lead_ns, target, rack and virtual_groups must not be negative"
            )
        if self.flush in ("periodic", "aggregated") and self.flush_ns < 1:
            raise LocalError(f"hydra: the flush policy '{self.flush}' needs a period: set flush_ns")
        if self.replicas % 2 == 0:
            raise LocalError(
                "hydra: replicas must be an odd number; one more replica would not survive more failures"
            )
        if self.suspect_ns <= self.heartbeat_ns:
            raise LocalError(
                "hydra: suspect_ns must be longer than heartbeat_ns; otherwise every sequencer is suspected"
            )
