"""What a group delivers to an application."""

from typing import NamedTuple, TypeAlias

from ordercast.core import Carrier, MessageId, Nanos, NodeId, Notice, Stamp, message_name
from ordercast.trace import KIND_OF, ORDERED


class Received(NamedTuple):
    """A message that was delivered."""

    message: MessageId
    """Its identity: what `send` returned to its sender."""
    payload: bytes
    sender: NodeId
    groups: tuple[str, ...]
    stamp: Stamp | None
    """Its place in the protocol's order."""
    config: int
    submitted_ns: Nanos
    """When it was sent, by the clock of its sender."""

    @property
    def name(self) -> str:
        """Its identity as people write it: ``3#17``."""
        return message_name(self.message)


class OutOfOrder(NamedTuple):
    """A message that came when its place in the order had passed, where a protocol delivers such messages at
    all. Others may have delivered it in its place, so it is no `Received`."""

    message: MessageId
    payload: bytes
    sender: NodeId
    groups: tuple[str, ...]
    stamp: Stamp | None
    config: int
    submitted_ns: Nanos

    @property
    def name(self) -> str:
        """Its identity as people write it: ``3#17``."""
        return message_name(self.message)


LiveMessage: TypeAlias = Received | OutOfOrder


def message_type(delivery: Carrier) -> type[LiveMessage]:
    """What the messages of a delivered bundle are to an application."""
    return Received if KIND_OF[type(delivery)] in ORDERED else OutOfOrder


LiveDelivery: TypeAlias = LiveMessage | Notice
"""What a group delivers: messages, in their places or too late for them, notice of messages that will not
come, and changes of configuration."""
