"""The judgement on a history of transactions: is there an order that explains all reads?

*Serializable*: some order of all committed transactions, which keeps the order of each client, gives the same
reads. *Strict serializable*: and whoever was answered comes before all that were invoked later. There is such
an order if the dependencies have no cycle. The kinds of cycles have the names of Adya and of Elle:

- `G0`: only ww. `G1c`: ww and wr. `G-single`: one rw. `G2`: several rw.
- `lost-update`: the `G-single` of two transactions that read a list alike, and both append to it.
- with `-process` if the cycle needs the order of a client, and `-realtime` if it needs real time.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ordercast.judge.histories.transactions.components import short_cycle, shortest_way, strong_parts
from ordercast.judge.histories.transactions.dependencies import (
    Dependency,
    Edge,
    Graph,
    add_order,
    add_values,
    span_of,
)
from ordercast.judge.histories.transactions.lists import Lists
from ordercast.judge.histories.transactions.steps import Step, steps_of
from ordercast.judge.histories.transactions.transaction import Transaction, writers_of

ANOMALIES_MAX = 20
"""How many anomalies a judgement keeps."""
STEPS_MAX = 2_000_000
"""How far cycles with a single rw are searched in one part of a graph."""

_LINKED = (Dependency.LINK,)
_WW = (Dependency.WW,)
_READ = (*_WW, Dependency.WR)
_VALUES = (*_READ, Dependency.RW)
_LEVELS = tuple(
    (*values, *order, *_LINKED)
    for order in ((), (Dependency.CLIENT,), (Dependency.TIME,))
    for values in (_WW, _READ, _VALUES)
)
"""The kinds of edges of a cycle, the worst first."""
_SUFFIX = {Dependency.CLIENT: "-process", Dependency.TIME: "-realtime"}


class Anomaly(NamedTuple):
    """What no order explains: a cycle, or a read that is wrong by itself."""

    kind: str
    text: str
    transactions: tuple[Transaction, ...]
    steps: tuple[Step, ...] = ()

    @property
    def of_time(self) -> bool:
        """Whether the transactions have an order if real time is left aside."""
        return self.kind.endswith(_SUFFIX[Dependency.TIME])


class TransactionJudgement(NamedTuple):
    """What was found."""

    anomalies: tuple[Anomaly, ...]
    more: int = 0
    """How many more there are."""

    @property
    def strict_serializable(self) -> bool:
        """Whether there is an order that explains all reads and all times."""
        return not self.anomalies

    @property
    def serializable(self) -> bool:
        """Whether there is an order that explains all reads and keeps that of each client."""
        return all(anomaly.of_time for anomaly in self.anomalies)


def judge_transactions(transactions: Sequence[Transaction]) -> TransactionJudgement:
    """Judge a history; a `LocalError` if an element is appended twice."""
    lists = Lists(transactions, writers_of(transactions))
    found = [
        Anomaly(kind, text, tuple(transactions[number] for number in numbers))
        for kind, _, numbers, text in lists.flaws
    ]
    found += _cycles(transactions, lists)
    found.sort(key=lambda anomaly: anomaly.of_time)
    return TransactionJudgement(tuple(found[:ANOMALIES_MAX]), max(0, len(found) - ANOMALIES_MAX))


def _cycles(transactions: Sequence[Transaction], lists: Lists) -> Iterator[Anomaly]:
    """One cycle of each strongly connected part, the worst.

    A client's order is looked at only where there is a cycle: it is part of the order of real time.
    """
    graph = Graph(len(transactions))
    add_values(graph, lists)
    everything = [number for number, took in enumerate(lists.committed) if took]
    add_order(graph, (span_of(n, transactions[n]) for n in everything), Dependency.TIME)
    orders = {one.key: one.order for one in lists}
    for part in map(sorted, strong_parts(graph)):
        inside = [transactions[vertex] for vertex in part if vertex < len(transactions)]
        smaller = graph.within(part)
        _add_clients(smaller, inside)
        steps = tuple(steps_of(_worst_cycle(smaller), inside, orders))
        text = f"no order has these {len(steps)} transactions"
        yield Anomaly(_kind(steps), text, tuple(step.before for step in steps), steps)


def _add_clients(graph: Graph, transactions: Sequence[Transaction]) -> None:
    clients: dict[int, list[int]] = {}
    for number, transaction in enumerate(transactions):
        clients.setdefault(transaction.client, []).append(number)
    for mine in clients.values():
        add_order(graph, (span_of(n, transactions[n]) for n in mine), Dependency.CLIENT)


def _worst_cycle(graph: Graph) -> list[Edge]:
    """A cycle with as few kinds of edges as there is one with."""
    for kinds in _LEVELS:
        parts = strong_parts(graph, kinds)
        if parts:
            return _single(graph, parts[0], kinds) or short_cycle(graph, parts[0], kinds)
    raise AssertionError("a strongly connected part has a cycle")


def _single(graph: Graph, part: list[int], kinds: Collection[Dependency]) -> list[Edge] | None:
    """A cycle with one rw, as far as it is searched."""
    inside, others, budget = frozenset(part), frozenset(kinds) - {Dependency.RW}, [STEPS_MAX]

    def allowed(edge: Edge) -> bool:
        return edge.kind in others and edge.head in inside

    for vertex in sorted(part):
        for edge in graph.after[vertex]:
            if edge.kind is Dependency.RW and edge.head in inside and Dependency.RW in kinds:
                way = shortest_way(graph, edge.head, vertex, allowed, budget)
                if way is not None:
                    return [edge, *way]
    return None


def _kind(steps: Sequence[Step]) -> str:
    """The name of a cycle."""
    kinds = [step.kind for step in steps]
    reads, keys = kinds.count("rw"), {step.key for step in steps}
    if sorted(kinds) == ["rw", "ww"] and len(keys) == 1:
        return "lost-update"
    name = ("G1c" if "wr" in kinds else "G0") if not reads else "G-single" if reads == 1 else "G2"
    return name + "".join(_SUFFIX[one] for one in _SUFFIX if one.name.lower() in kinds)
