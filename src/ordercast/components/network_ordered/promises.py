"""What replicas promise that get their order from the network."""

import msgspec

from ordercast.components.execution.promises import PROMISES
from ordercast.core import Fault, Guarantees

GUARANTEES = msgspec.structs.replace(
    PROMISES,
    tolerates=(
        Fault.LOSS,
        Fault.DUPLICATION,
        Fault.REORDERING,
        Fault.PARTITION,
        Fault.CRASH,
        Fault.AMNESIA,
        Fault.PAUSE,
        Fault.CLOCK,
        Fault.DISK,
    ),
)
"""What is promised if replicas keep everything in memory."""


def guarantees(*, durable: bool) -> Guarantees:
    """Durable replicas may restart."""
    if not durable:
        return GUARANTEES
    return msgspec.structs.replace(GUARANTEES, tolerates=(*GUARANTEES.tolerates, Fault.RESTART))
