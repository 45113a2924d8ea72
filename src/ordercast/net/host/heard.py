"""What the listeners of a live host hear: packets of messages, drops and views."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ordercast.core import Delivered, Dropped, Nanos, OutOfOrder, View
from ordercast.core.bundle import Bundle


class Batch(NamedTuple):
    """The application messages of one packet, as they were delivered."""

    delivery: Delivered | OutOfOrder
    bundle: Bundle
    now: Nanos


Heard: TypeAlias = Batch | Dropped | View
Listener: TypeAlias = Callable[[Heard], None]
