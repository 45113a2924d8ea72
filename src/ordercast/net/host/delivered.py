"""What a live host tells its listeners: bundles of messages and of answers, drops and views."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ordercast.core import Carrier, Nanos, Notice, Replied
from ordercast.core.bundle import Bundle


class DeliveredBundle(NamedTuple):
    """A bundle of application messages that was delivered, and when."""

    delivery: Carrier
    bundle: Bundle
    now: Nanos


class RepliedBundle(NamedTuple):
    """A client was answered: the results of some operations, and when."""

    replied: Replied
    bundle: Bundle
    now: Nanos


BundleOrNotice: TypeAlias = DeliveredBundle | Notice
Listener: TypeAlias = Callable[[BundleOrNotice], None]
AnswerListener: TypeAlias = Callable[[RepliedBundle], None]
