"""What must hold of replicas of a service, said of what replicas deliver and clients are told.

- *One log*: a replica delivers by rising places, nothing twice; of two replicas, one has delivered what the
other has, in the same order, and perhaps more. - *Answers are final*: a replica that has delivered anything
at or above the place that an answer names has delivered the answered call at that place. - *Progress*: when
faults end, all replicas have delivered the same calls, all answered ones among them.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ordercast.core import (
    Delivered,
    MessageId,
    NodeId,
    Plan,
    Replied,
    ServiceType,
    message_name,
    message_number,
)
from ordercast.core.bundle import bundle_span, unpack
from ordercast.lab.model.explorer_case import Properties
from ordercast.lab.model.explorer_world import History, Packet
from ordercast.services.built_in import Counter

ADD = ServiceType.of(Counter).find("add")
"""The operation that all calls make."""

Rank = tuple[int, int]
Told = tuple[Rank, MessageId]
"""A place, and the call there."""


class PaxosProperties(Properties):
    """The properties, for a plan with one group."""

    def __init__(self, plan: Plan) -> None:
        self._replicas = plan.groups[0]

    def alone(self, node: NodeId, history: History) -> str | None:
        """The log of one replica, or the answers of one client."""
        told = _told(history)
        calls = [call for _, call in told]
        if len(set(calls)) != len(calls):
            return f"node {node} has a call twice: {_text(told)}"
        if node in self._replicas and any(one[0] >= other[0] for one, other in pairwise(told)):
            return f"node {node} delivers places that do not rise: {_text(told)}"
        return None

    def together(self, one: NodeId, first: History, other: NodeId, second: History) -> str | None:
        """One log, and answers that are final."""
        both = (one in self._replicas, other in self._replicas)
        if both == (True, True):
            return self._one_log(one, _told(first), other, _told(second))
        if both == (True, False):
            return self._final(one, _told(first), second)
        return self._final(other, _told(second), first) if both == (False, True) else None

    def _one_log(self, one: NodeId, first: list[Told], other: NodeId, second: list[Told]) -> str | None:
        shorter = min(len(first), len(second))
        if first[:shorter] == second[:shorter]:
            return None
        return f"nodes {one} and {other} have different logs: {_text(first)} and {_text(second)}"

    def _final(self, replica: NodeId, log: list[Told], answers: History) -> str | None:
        for answer, told in zip(_told(answers), _results(answers), strict=True):
            if not log or log[-1][0] < answer[0]:
                continue
            if answer not in log:
                return f"the answer {_text([answer])} is not in the log of node {replica}: {_text(log)}"
            total = sum(message_number(call) for rank, call in log if rank <= answer[0])
            if told != total:
                what = f"the answer {_text([answer])} is {told}, but {total} by the log of node {replica}"
                return f"{what}: {_text(log)}"
        return None

    def unsettled(self, histories: Mapping[NodeId, History], traffic: Sequence[Packet]) -> str | None:
        """What some replica lacks that another has, or that a client was told."""
        logs = {node: _told(histories[node]) for node in self._replicas}
        told = [call for node, history in histories.items() if node not in logs for call in _told(history)]
        longest = max(logs.values(), key=len)
        for node, log in logs.items():
            if len(log) < len(longest) or any(call not in log for call in told):
                return f"node {node} has delivered {_text(log)}; there are {_text(sorted({*longest, *told}))}"
        return None


def _told(history: History) -> list[Told]:
    """The calls that a node delivered or was answered, with their places."""
    return [
        ((delivery.stamp.clock, delivery.stamp.issuer), bundle_span(delivery.payload)[0])
        for delivery in history
        if isinstance(delivery, Delivered | Replied) and delivery.stamp is not None
    ]


def _results(answers: History) -> list[object]:
    """The value of each answer."""
    return [
        ADD.unpack_result(unpack(delivery.payload)[0].payload)
        for delivery in answers
        if isinstance(delivery, Replied)
    ]


def _text(told: list[Told]) -> str:
    return ", ".join(f"{message_name(call)} at {rank}" for rank, call in told) or "nothing"
