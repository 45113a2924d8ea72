"""Names of things: nodes, hosts, groups and application messages, all small integers."""

from typing import TypeAlias

from ordercast.core.errors import LocalError

NodeId: TypeAlias = int
"""One process: one role at one host. Dense, from zero; the driver maps it to an address."""

HostId: TypeAlias = int
"""One machine. Its processes share a CPU and a network link."""

GroupId: TypeAlias = int
"""One group of receivers."""

Groups: TypeAlias = tuple[GroupId, ...]
"""Destination of a message: one group or several, ascending, without repetition."""

MessageId: TypeAlias = int
"""One application message: its sender and the sender's own number, packed in 63 bits."""

NUMBER_BITS = 40
NUMBER_MAX = (1 << NUMBER_BITS) - 1
NODE_MAX = (1 << 23) - 1


def message_id(sender: NodeId, number: int) -> MessageId:
    """Pack a sender and its own message number into one identity."""
    if not 0 <= sender <= NODE_MAX or not 0 <= number <= NUMBER_MAX:
        raise LocalError(
            f"sender {sender} and number {number} make no message identity:"
            f" the sender must be from 0 to {NODE_MAX} and the number from 0 to {NUMBER_MAX}"
        )
    return sender << NUMBER_BITS | number


def message_sender(message: MessageId) -> NodeId:
    """The node that submitted a message."""
    return message >> NUMBER_BITS


def message_number(message: MessageId) -> int:
    """The sender's own number of a message, from zero."""
    return message & NUMBER_MAX


def message_name(message: MessageId) -> str:
    """A message as people write it: ``4#17`` is the message 17 of node 4."""
    return f"{message_sender(message)}#{message_number(message)}"
