"""Conditions of the network: loss, duplication and reordering of packets."""

from typing import Annotated

import msgspec

from ordercast.core import LocalError

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Conditions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may happen to each packet, independently of the others."""

    loss: Probability = 0.0
    duplication: Probability = 0.0
    reordering: Probability = 0.0
    """Share of packets that get an extra delay, so that later packets overtake them."""
    reorder_us: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 1000.0
    """The largest extra delay, in microseconds."""

    def __post_init__(self) -> None:
        for name in ("loss", "duplication", "reordering"):
            if not 0 <= getattr(self, name) <= 1:
                raise LocalError(f"{name} must be a probability from 0 to 1, not {getattr(self, name)}")

    @property
    def calm(self) -> bool:
        """Whether no packet is lost, duplicated or delayed."""
        return not (self.loss or self.duplication or self.reordering)
