"""Options of Hydra, with defaults for one data centre."""

from typing import Literal, TypeAlias

from ordercast.components.consensus import ConsensusOptions
from ordercast.core import MICROSECOND, MILLISECOND, LocalError, Nanos, Options, Pace

FlushPolicy: TypeAlias = Literal["periodic", "solicited", "adaptive", "aggregated", "nudged"]

SEQUENCERS_MAX = 1024
ACK_BYTES = 1 << 20
"""Receipts and acknowledgements of so many bytes do not wait for `ack_ns`: a sender keeps only `keep_bytes`,
and would stand still."""


class HydraOptions(Options, frozen=True):
    """The number and kind of sequencers, how receivers get flushes, and all timeouts and limits."""

    sequencers: int = 2
    """Number of sequencers in the first configuration."""
    spares: int = 0
    """Number of further nodes that can become sequencers."""
    target: int = 0
    """The service adds sequencers that ask to join up to this number; 0: all of them."""
    kind: Literal["host", "switch"] = "host"
    """What a sequencer runs on; it only names the role, for which a scenario can set costs."""
    pipelines: int = 1
    """Sequencers per switch, one per pipeline."""
    compact: bool = False
    """Whether sequencers and replicas of the configuration service run on the hosts of receivers instead of
    on hosts of their own; spare sequencers never do. A sender beside a sequencer sends to that one."""
    flush: FlushPolicy = "adaptive"
    """Section 4.6. *periodic* (GEN): sequencers flush every `flush_ns`. *solicited* (SOL): a receiver asks
    when a message has waited for `flush_ns`. *adaptive* (ADP): it asks at once, unless traffic is so dense
    that the wait should end by itself sooner than an answer comes, and within `flush_ns`. *aggregated* (AGG):
    sequencers flush every `flush_ns` to aggregators, and a receiver asks its aggregator. *nudged*, not in the
    paper: a sequencer that stamps nudges the others, which flush unless they have just stamped too; a
    receiver asks only when a message has waited for `flush_ns` all the same."""
    flush_ns: Nanos = 100 * MICROSECOND
    nudge_ns: Nanos = 100 * MICROSECOND
    """The shortest time between two nudges of a sequencer."""
    lead_ns: Nanos = 5 * MILLISECOND
    """If a nudged sequencer has stamped nothing for this long, it puts its clock ahead by the same time: it
    promises to stamp nothing earlier, and need not be nudged again until then."""
    rack: int = 0
    """Receivers per aggregator; 0: one aggregator for all."""
    route: Literal["random", "hash", "congestion", "sticky"] = "random"
    """How senders choose a sequencer: at random, by a hash of sender and groups (ECMP), at random among those
    with a short round trip, or at random and then the same one for `stick_ns`, so that others may rest."""
    stick_ns: Nanos = 20 * MILLISECOND
    quorum: Literal["majority", "all"] = "majority"
    """The quorum of each group that agrees on a step. *all* makes drop detection uniform (Appendix B)."""
    durable: bool = False
    """Whether receivers save their place at every delivery, and may restart."""
    virtual_groups: int = 0
    """Number of groups without receivers, after the real ones, to load sequencers (section 7.1.3)."""
    replicas: int = 3
    """Replicas of the configuration service."""
    heartbeat_ns: Nanos = 5 * MILLISECOND
    """The longest time between two flushes of a sequencer, under every policy."""
    suspect_ns: Nanos = 30 * MILLISECOND
    """A receiver suspects a sequencer from which nothing came for this long."""
    patience_ns: Nanos = 100 * MICROSECOND
    """How long a drop notification is held back after a message needs it, so that a packet that was only
    overtaken still counts. It delays the messages behind a real drop by this time."""
    hold_ns: Nanos = 10 * MILLISECOND
    """How long a drop notification is held back if no message needs it."""
    repair: bool = True
    """Whether a receiver asks for missing packets before it notifies of them, and waits as long as packets
    have been late before. The paper's receivers notify at once."""
    keep_bytes: int = 8 << 20
    """For `repair`: how many bytes of packets a sequencer or a receiver keeps. For `resend`: how many bytes a
    sender keeps; beyond, it takes no more messages."""
    keep_ns: Nanos = 1000 * MILLISECOND
    """For `repair`: how long it keeps a packet, at most."""
    resend: bool = False
    """Whether a sender keeps what it sends until it is known to be stamped, repeats it, and sends it to
    another sequencer if the first is removed and had not stamped it. The paper's senders forget it at once.
    In a live cluster it is on by default."""
    ack_ns: Nanos = 1 * MILLISECOND
    """For `resend`: how often a sequencer acknowledges what it has stamped; after a mebibyte it does so at
    once. A sender repeats what is not acknowledged after four times that."""
    retry_ns: Nanos = 1 * MILLISECOND
    """Time before an unanswered solicitation is first repeated; it doubles up to 16 times that."""
    announce_ns: Nanos = 20 * MILLISECOND
    """How often the configuration service announces its state."""
    addition_ns: Nanos = 100 * MILLISECOND
    """An addition that takes longer is given up. A sequencer that is asked for a clock so far ahead of its
    own puts its own forward; for less, it waits until it is there."""
    join_ns: Nanos = 20 * MILLISECOND
    """How often a sequencer asks to join; after a removal it waits this long, doubling each time."""
    probe_ns: Nanos = 1 * MILLISECOND
    """How often a sender that avoids congestion measures round trips."""
    buffer: int = 65_536
    """How many packets a receiver holds; more are dropped like packets that the network lost."""
    strangers: int = 1024
    """How many packets a receiver keeps of sequencers that are not added yet, and a sequencer until it has
    its number; the oldest are dropped first."""
    window: int = 4096
    """How many numbers of each sender a sequencer remembers, to recognise copies."""
    history: int = 4096
    """How many steps the service keeps; a receiver that misses more cannot catch up."""
    consensus: ConsensusOptions = ConsensusOptions()
    """Options of the configuration service's log."""

    @property
    def detection_ns(self) -> Nanos:
        """A sequencer is suspected, or the leader of the configuration service is missed."""
        return max(self.suspect_ns, self.consensus.detection_ns)

    def pace(self, delay: Nanos) -> Pace:
        """A message waits for flushes and drop notifications; recovery takes a new leader of the service, and
        a step for each sequencer that is gone or comes back."""
        waits = self.flush_ns + self.heartbeat_ns + self.patience_ns + self.hold_ns + (self.retry_ns << 4)
        if self.repair:
            waits += 2 * self.suspect_ns
        steps = self.sequencers + self.spares + 1
        step = self.announce_ns + self.join_ns + 20 * delay
        if self.resend:  # a sequencer may be deaf; then receivers are asked
            waits += 3 * self.suspect_ns + 10 * self.ack_ns
        recovery = self.suspect_ns + self.consensus.recovery_ns + self.addition_ns + steps * step
        return Pace(2 * waits + 10 * delay, recovery + 2 * waits)

    def __post_init__(self) -> None:
        if not 1 <= self.sequencers + self.spares <= SEQUENCERS_MAX or min(self.sequencers, self.spares) < 0:
            raise LocalError(f"hydra: sequencers and spares together must be 1 to {SEQUENCERS_MAX}")
        limits = (
            self.pipelines, self.replicas, self.buffer, self.strangers, self.window, self.history,
            self.keep_bytes,
        )  # fmt: skip
        times = (
            self.heartbeat_ns, self.suspect_ns, self.hold_ns, self.retry_ns, self.announce_ns,
            self.addition_ns, self.join_ns, self.probe_ns, self.nudge_ns, self.stick_ns, self.keep_ns,
            self.ack_ns,
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
        if self.compact and self.kind == "switch":
            raise LocalError("hydra: a switch runs no receivers; compact needs sequencers of kind 'host'")
        if self.replicas % 2 == 0:
            raise LocalError(
                "hydra: replicas must be an odd number; one more replica would not survive more failures"
            )
        if self.suspect_ns <= self.heartbeat_ns:
            raise LocalError(
                "hydra: suspect_ns must be longer than heartbeat_ns; otherwise every sequencer is suspected"
            )
