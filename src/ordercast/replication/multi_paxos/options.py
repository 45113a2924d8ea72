"""Options of Multi-Paxos."""

from typing import Annotated

import msgspec

from ordercast.components.logged_service import LogOptions
from ordercast.components.logged_service.messages import BATCH_MAX


class MultiPaxosOptions(LogOptions, frozen=True):
    """How clients call, how calls are put into the log, and how the log is kept."""

    batch: Annotated[int, msgspec.Meta(ge=1, le=BATCH_MAX)] = 16
    """How many calls one slot of the log holds at most."""
    in_flight: Annotated[int, msgspec.Meta(ge=1)] = 64
    """How many slots are in flight before calls wait for each other and share slots."""
