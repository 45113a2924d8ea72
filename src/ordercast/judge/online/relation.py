"""The relation "some receiver delivered a before b" over some scope, and counterexamples from it.

Each receiver adds one edge per delivery, from the message that it delivered before: the chain says the same
as all pairs. A receiver that missed messages adds an edge that skips them, which contradicts no other
receiver. That is why no positions are compared: positions shift with every loss, precedence does not.

An oracle that has enough findings sets `counting`. From then on, no cycles are searched or reported. Only
direct contradictions are counted: a receiver delivers two messages in a row that another delivered the other
way round. So the count is a lower bound.
"""

from itertools import islice

from ordercast.core import MessageId, Nanos, NodeId, message_name
from ordercast.judge.finding import message_at
from ordercast.judge.online.oracle import Oracle
from ordercast.judge.online.precedence import Edge, Precedence


class Line:
    """What one receiver delivered within the scope, in order."""

    __slots__ = ("_places", "messages", "node", "times_ns")

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.messages: list[MessageId] = []
        self.times_ns: list[Nanos] = []
        self._places: dict[MessageId, int] = {}

    def place(self, message: MessageId) -> int:
        """The place of a message, or -1. The index is built on the first call: most runs never need it."""
        places, messages = self._places, self.messages
        for place in range(len(places), len(messages)):
            places[messages[place]] = place
        return places.get(message, -1)

    def clear(self) -> None:
        """Begin again: the receiver lost its state, and counts as a new one."""
        self.messages.clear()
        self.times_ns.clear()
        self._places.clear()


class Relation:
    """The deliveries of one scope: a group, or everything."""

    __slots__ = ("counting", "lines", "precedence")

    def __init__(self) -> None:
        self.counting = False
        """Cycles are only counted: no search is made, and the cycles returned are empty."""
        self.lines: list[Line] = []
        self.precedence = Precedence()

    def line(self, node: NodeId) -> Line:
        """A line for one more receiver."""
        line = Line(node)
        self.lines.append(line)
        return line

    def deliver(self, line: Line, message: MessageId, time_ns: Nanos) -> list[Edge] | None:
        """Add the receiver's next delivery; return a short cycle if it closes one."""
        messages = line.messages
        times_ns = line.times_ns
        if self.counting:
            messages.append(message)
            times_ns.append(time_ns)
            return [] if self._contradicted(line) else None
        if messages:
            last, last_ns = messages[-1], times_ns[-1]
            path = self.precedence.add(last, message, line.node, last_ns, time_ns)
        else:
            self.precedence.add_vertex(message)
            last = last_ns = 0
            path = None
        messages.append(message)
        times_ns.append(time_ns)
        if path is None:
            return None
        closing = Edge(last, message, line.node, last_ns, time_ns)
        return self._inversion(line) or merged([*path, closing])

    def _contradicted(self, line: Line) -> bool:
        """Whether another receiver delivered a line's newest two messages the other way round."""
        message = line.messages[-1]
        self.precedence.add_vertex(message)
        if len(line.messages) < 2 or self.precedence.in_order(line.messages[-2], message):
            return False
        last = line.messages[-2]
        return any(
            other is not line and -1 < other.place(message) < other.place(last) for other in self.lines
        )

    def _inversion(self, line: Line) -> list[Edge] | None:
        """Another receiver that delivered a line's newest message before an older one of it."""
        message, last = line.messages[-1], line.messages[-2]
        others = [other for other in self.lines if other is not line and other.place(message) >= 0]
        for other in others:
            if other.place(last) > other.place(message):
                return self._opposites(line, other, last)
        for other in others:
            for found in islice(other.messages, other.place(message) + 1, None):
                if line.place(found) >= 0:
                    return self._opposites(line, other, found)
        return None

    @staticmethod
    def _opposites(line: Line, other: Line, older: MessageId) -> list[Edge]:
        """The two edges between a line's newest message and an older one that another line has after it."""
        message, time_ns = line.messages[-1], line.times_ns[-1]
        first_ns, second_ns = other.times_ns[other.place(message)], other.times_ns[other.place(older)]
        return [
            Edge(message, older, other.node, first_ns, second_ns),
            Edge(older, message, line.node, line.times_ns[line.place(older)], time_ns),
        ]


def merged(cycle: list[Edge]) -> list[Edge]:
    """The same cycle, with consecutive edges of one node merged into one, also where the cycle closes."""
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


def report_cycle(oracle: Oracle, cycle: list[Edge]) -> None:
    """Report a cycle as a finding of an oracle, or count it."""
    if oracle.full:
        oracle.suppressed += 1
        return
    oracle.report(
        tuple(dict.fromkeys(edge.node for edge in cycle)),
        tuple(dict.fromkeys(edge.before for edge in cycle)),
        tuple(time_ns for edge in cycle for time_ns in (edge.before_ns, edge.after_ns)),
        f"{told(cycle)}: this is the cycle {named(cycle)}",
    )
