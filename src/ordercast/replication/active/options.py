"""Options of active replication."""

from typing import Annotated

import msgspec

from ordercast.components.execution import CallOptions
from ordercast.protocols.layer import LayerOptions


class ActiveOptions(LayerOptions, frozen=True):
    """The protocol below, and how clients call."""

    calls: CallOptions = CallOptions()
    """How clients call."""
    checkpoint_every: Annotated[int, msgspec.Meta(ge=0)] = 256
    """Replicas note the digest of their state after so many calls; 0: never."""
    snapshot_every: Annotated[int, msgspec.Meta(ge=1)] = 1024
    """Replicas save a snapshot instead of the calls before it after so many."""
