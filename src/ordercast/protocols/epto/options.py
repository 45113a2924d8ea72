"""EpTO's options."""

from math import isfinite
from typing import Annotated, Literal

import msgspec

from ordercast.core import LocalError, Nanos, Options
from ordercast.protocols.epto.clocks import Clock
from ordercast.protocols.epto.messages import TTL_MAX
from ordercast.protocols.epto.views import Sampling

Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 20)]


class EptoOptions(Options, frozen=True):
    """Options of EpTO. Fan-out and TTL come from the paper's lemmas unless they are given."""

    clock: Clock = "logical"
    """Stamp events by a logical clock (Algorithm 4), or by clocks taken for a global one (Algorithm 3)."""
    round_ns: Nanos = 1_000_000
    """How long a round lasts. Lemma 6 asks for more than the latency between peers that behave well."""
    fanout: Count = 0
    """To how many peers a ball goes (K); 0: by Lemma 7."""
    ttl: Count = 0
    """How many rounds an event is relayed and aged (TTL); 0: by Lemmas 3 to 6."""
    loss: float = 0.01
    """The expected share of lost messages, for the lemmas, like the options down to `target`."""
    churn: float = 0.0
    """The expected share of peers that leave in a round; as many join."""
    drift: float = 0.01
    """The expected share by which rounds of peers are longer or shorter than `round_ns`."""
    target: float = 1e-6
    """The accepted probability that an event is missing at any peer."""
    jitter: float = 0.01
    """Each round is randomly longer or shorter, or earlier or later, by at most this share."""
    rounds: Literal["apart", "together"] = "apart"
    """Begin rounds at a random time, so that peers are not in step; or at the multiples of `round_ns` on the
    clock, together with all others, as in the simulator of the paper."""
    sampling: Sampling = "uniform"
    """Choose peers from a list of all, or from a small view that Cyclon keeps fresh, in our sizes or as in
    the simulator of the paper."""
    contacts: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 3
    """For `cyclon`: how many peers a peer knows when it starts; everybody knows peers 0, 1, 2, ..."""
    late: Literal["drop", "tag"] = "drop"
    """Events whose place has passed: drop them, or deliver them tagged as out of order (section 8.2)."""
    memory: Annotated[int, msgspec.Meta(ge=16, le=1 << 24)] = 1 << 16
    """How many delivered events are remembered, so that late ones are delivered once."""
    window: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 1024
    """How many of its own events a peer may have under way."""
    relay_bytes: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)] = 0
    """About how many bytes of events a peer relays in a round. While the events that it knows have more, it
    takes new events only if none of its own is under way. 0: no limit."""
    events: Annotated[int, msgspec.Meta(ge=16, le=1 << 24)] = 1 << 18
    """About how many undelivered events a peer keeps; more are refused, as if they had been lost."""
    ahead_ns: Nanos = 10_000_000_000
    """With a global clock, events stamped further in the future than this are not believed."""
    peers_per_host: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 1
    """How many peers share a host, which is one operating system process in a live run."""
    durable: bool = False
    """Whether a peer keeps its place in the order over a restart."""

    def __post_init__(self) -> None:
        if not 1_000 <= self.round_ns <= 3_600_000_000_000:
            raise LocalError(f"round_ns must be between 1 microsecond and 1 hour, got {self.round_ns} ns")
        if self.ttl == 1:
            raise LocalError("ttl must be at least 2; with 1 only the broadcaster delivers")
        if self.ttl > TTL_MAX:
            raise LocalError(f"ttl must be at most {TTL_MAX}, got {self.ttl}")
        if not (isfinite(self.jitter) and 0 <= self.jitter <= 0.5):
            raise LocalError(f"jitter must be between 0 and 0.5, got {self.jitter}")
        if self.ahead_ns < 0:
            raise LocalError(f"ahead_ns must not be negative, got {self.ahead_ns}")
