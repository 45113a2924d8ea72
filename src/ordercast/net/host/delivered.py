"""What a live host tells its listeners: bundles of messages, drops and views."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ordercast.core import Carrier, Nanos, Notice
from ordercast.core.bundle import Bundle


class DeliveredBundle(NamedTuple):
    """A bundle of application messages that was delivered, and when."""

    delivery: Carrier
    bundle: Bundle
    now: Nanos


BundleOrNotice: TypeAlias = DeliveredBundle | Notice
Listener: TypeAlias = Callable[[BundleOrNotice], None]
