"""The setup of a run of the engine: EpTO as the paper's section 6 simulates it, in whole ticks."""

from typing import Annotated, Literal, get_type_hints

import msgspec

from ordercast.core import LocalError
from ordercast.protocols.epto.messages import TTL_MAX
from ordercast.protocols.epto.views import Sampling

Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run of the engine. A tick is the unit of the latencies (a millisecond in the paper)."""

    processes: Annotated[int, msgspec.Meta(ge=1, le=1 << 22)]
    fanout: Annotated[int, msgspec.Meta(ge=1, le=1024)]
    ttl: Annotated[int, msgspec.Meta(ge=1, le=TTL_MAX)]
    """At most so many that a block of events fits its turns into a byte; the engine says so if not."""
    clock: Literal["global", "logical"] = "global"
    round_ticks: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)] = 125
    drift: Share = 0.01
    """Each round is longer or shorter by at most this share; in step, earlier or later."""
    rate: Share = 0.05
    """The probability that a process broadcasts in a round."""
    rounds: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 20
    """Number of rounds with broadcasts; the run goes on until everything is delivered."""
    loss: Share = 0.0
    churn: Share = 0.0
    """The share of processes that leave in the time of a round; as many join."""
    sampling: Sampling = "uniform"
    in_step: bool = False
    """All processes begin their rounds at once, and drift does not add up: round k is at k times its length,
    a little earlier or later. So do the authors' processes in section 6. Without drift it is the synchronous
    model of section 4."""
    tracked: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Follow only this many first events; 0: all. Other events do not make any event late."""
    seed: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] = 0

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(Setup, include_extras=True).items():
            try:
                msgspec.convert(getattr(self, name), kind)
            except msgspec.ValidationError as error:  # arrays would go wrong without a word
                raise LocalError(
                    f"{name} {getattr(self, name)}: {str(error)[0].lower()}{str(error)[1:]}"
                ) from None
        if self.in_step and self.drift >= 0.5:
            raise LocalError(
                f"drift {self.drift}: in step it must be below 0.5, so that rounds do not overtake each other"
            )

    @property
    def drift_ticks(self) -> int:
        """How much longer or shorter a round may be."""
        return int(self.round_ticks * self.drift)

    @property
    def leavers(self) -> int:
        """How many processes leave at once, every round's time."""
        return round(self.processes * self.churn)
