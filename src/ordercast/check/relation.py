"""The relation "some receiver delivered a before b" over some scope, and counterexamples from it.

Each receiver adds one edge a delivery, from the message that it delivered last: the chain says the
same as all pairs do. A receiver that missed messages adds an edge that skips them, which
contradicts nobody. That is why no position, smallest or other, is compared: positions shift with
every loss, precedence does not.
"""

from ordercast.check.precedence import Edge, Precedence
from ordercast.check.violation import message_at
from ordercast.core import MessageId, Nanos, NodeId, message_name


class Lane:
    """What one receiver delivered within the scope, in order."""

    __slots__ = ("messages", "node", "times_ns")

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.messages: list[MessageId] = []
        self.times_ns: list[Nanos] = []

    def clear(self) -> None:
        """The receiver lost its state, and begins again as a new one."""
        self.messages.clear()
        self.times_ns.clear()


class Relation:
    """The deliveries of one scope: a group, or everything."""

    __slots__ = ("lanes", "precedence")

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.precedence = Precedence()

    def lane(self, node: NodeId) -> Lane:
        """A lane for one more receiver."""
        lane = Lane(node)
        self.lanes.append(lane)
        return lane

    def deliver(self, lane: Lane, message: MessageId, time_ns: Nanos) -> list[Edge] | None:
        """The receiver's next delivery; a cycle, as short as it can be told, if it closes one."""
        messages = lane.messages
        times_ns = lane.times_ns
        if messages:
            last, last_ns = messages[-1], times_ns[-1]
            path = self.precedence.add(last, message, lane.node, last_ns, time_ns)
        else:
            self.precedence.add_vertex(message)
            last = last_ns = 0
            path = None
        messages.append(message)
        times_ns.append(time_ns)
        if path is None:
            return None
        closing = Edge(last, message, lane.node, last_ns, time_ns)
        return self._inversion(lane) or merged([*path, closing])

    def _inversion(self, lane: Lane) -> list[Edge] | None:
        """Another receiver that delivered a lane's newest message before an older one of it."""
        message, time_ns = lane.messages[-1], lane.times_ns[-1]
        older = dict(zip(lane.messages[:-1], lane.times_ns, strict=False))
        for other in self.lanes:
            if other is lane or message not in other.messages:
                continue
            place = other.messages.index(message)
            for later in range(place + 1, len(other.messages)):
                found = other.messages[later]
                if found in older:
                    place_ns, later_ns = other.times_ns[place], other.times_ns[later]
                    return [
                        Edge(message, found, other.node, place_ns, later_ns),
                        Edge(found, message, lane.node, older[found], time_ns),
                    ]
        return None


def merged(cycle: list[Edge]) -> list[Edge]:
    """The same cycle with each run of edges of one node told as one, around the seam too."""
    start = next((i for i in range(len(cycle)) if cycle[i - 1].node != cycle[i].node), 0)
    short: list[Edge] = []
    for edge in cycle[start:] + cycle[:start]:
        if short and short[-1].node == edge.node and short[-1].before != edge.after:
            edge = edge._replace(before=short[-1].before, before_ns=short.pop().before_ns)
        short.append(edge)
    return short


def told(cycle: list[Edge]) -> str:
    """A cycle in words: who delivered what before what."""
    return "; ".join(
        f"node {edge.node} delivered {message_at(edge.before, edge.before_ns)} before"
        f" {message_at(edge.after, edge.after_ns)}"
        for edge in cycle
    )


def named(cycle: list[Edge]) -> str:
    """A cycle's messages in its order: ``a < b < a``."""
    names = [message_name(edge.before) for edge in cycle]
    return " < ".join([*names, names[0]])
