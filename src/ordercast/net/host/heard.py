"""What the listeners of a live host hear: packets of messages, drops and views."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ordercast.core import Carrier, Nanos, Notice
from ordercast.core.bundle import Bundle


class Batch(NamedTuple):
    """The application messages of one packet, as they were delivered."""

    delivery: Carrier
    bundle: Bundle
    now: Nanos


Heard: TypeAlias = Batch | Notice
Listener: TypeAlias = Callable[[Heard], None]
