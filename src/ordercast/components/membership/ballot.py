"""Ballots: each belongs to one node, and a higher round beats every lower one."""

from ordercast.core import NodeId
from ordercast.core.ids import NODE_MAX

NODE_BITS = NODE_MAX.bit_length()


def ballot_above(ballot: int, node: NodeId) -> int:
    """The ballot of a node in the round after that of another ballot."""
    return (ballot >> NODE_BITS) + 1 << NODE_BITS | node


def ballot_owner(ballot: int) -> NodeId:
    """The node to which a ballot belongs."""
    return ballot & NODE_MAX
