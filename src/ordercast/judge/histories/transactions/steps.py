"""The steps of a cycle, in words."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ordercast.judge.histories.operation import Value, shown
from ordercast.judge.histories.transactions.dependencies import Dependency, Edge, Why
from ordercast.judge.histories.transactions.transaction import Elements, Transaction


class Step(NamedTuple):
    """A transaction comes before another one, and why."""

    before: Transaction
    after: Transaction
    kind: str
    key: Value
    text: str


def steps_of(
    cycle: Sequence[Edge], transactions: Sequence[Transaction], orders: Mapping[Value, Elements]
) -> list[Step]:
    """The steps of a cycle of edges that begins at a transaction; links are left out."""
    steps: list[Step] = []
    first: Edge | None = None
    for edge in cycle:
        first = first or edge
        if edge.head < len(transactions):
            steps.append(_step(first, transactions[first.tail], transactions[edge.head], orders))
            first = None
    return steps


def _step(edge: Edge, before: Transaction, after: Transaction, orders: Mapping[Value, Elements]) -> Step:
    kind, why = edge.kind, edge.why
    if why is None:
        return Step(before, after, kind.name.lower(), None, _TIMES[kind])
    order = orders[why.key]
    element = order[why.place] if why.place < len(order) else after.appended_to(why.key)[0]
    return Step(before, after, kind.name.lower(), why.key, _text(kind, why, order, element))


_TIMES = {
    Dependency.CLIENT: "the client had its answer before it called the second",
    Dependency.TIME: "the first was answered before the second was invoked",
}


def _text(kind: Dependency, why: Why, order: Elements, element: Value) -> str:
    key = shown(why.key)
    if kind is Dependency.WR:
        return f"the second read {shown(element)} in {key}, which the first appended"
    if kind is Dependency.RW:
        return f"the first read {key} before the second appended {shown(element)}"
    return f"the second appended {shown(element)} to {key} after {shown(order[why.place - 1])} of the first"
