"""The promises of sequencing atoms, judged by what subscribers have delivered in a lab."""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from ordercast.core import GroupId, NodeId


class Item(NamedTuple):
    """A delivered message."""

    group: GroupId
    place: int
    text: str


class Tenure:
    """A time of a subscriber in a group, between two places."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.stop: int | None = None

    def has(self, place: int) -> bool:
        """Whether it gets the message of a place."""
        return self.start < place and (self.stop is None or place <= self.stop)


class History:
    """What was submitted and delivered."""

    def __init__(self, groups: tuple[tuple[NodeId, ...], ...], *, causal: bool = False) -> None:
        self.causal = causal
        self.submitted: dict[str, tuple[NodeId, GroupId]] = {}
        """By message: its publisher and its group."""
        self.crashed: set[NodeId] = set()
        """Publishers that have crashed: what they have sent may be lost."""
        self.delivered: dict[NodeId, list[Item]] = {}
        self.tenures: dict[tuple[NodeId, GroupId], list[Tenure]] = {}
        self.numbers: dict[tuple[int, int, int], set[tuple[GroupId, bytes | None]]] = {}
        """By epoch, atom and number: the messages with it that somebody has seen."""
        for group, members in enumerate(groups):
            for node in members:
                self.delivered.setdefault(node, [])
                self.tenures[node, group] = [Tenure(-1)]

    def deliver(self, node: NodeId, group: GroupId, place: int, text: str) -> None:
        """A subscriber delivers a message."""
        self.delivered.setdefault(node, []).append(Item(group, place, text))

    def join(self, node: NodeId, group: GroupId, place: int) -> None:
        """A subscriber is told that it has joined."""
        self.delivered.setdefault(node, [])
        self.tenures.setdefault((node, group), []).append(Tenure(place))

    def leave(self, node: NodeId, group: GroupId, place: int) -> None:
        """A subscriber is told that it has left."""
        self.tenures[node, group][-1].stop = place

    def is_in(self, node: NodeId, group: GroupId) -> bool:
        """Whether a subscriber is in a group, as far as it was told."""
        tenures = self.tenures.get((node, group), [])
        return bool(tenures) and tenures[-1].stop is None

    def order(self) -> dict[tuple[GroupId, int], str]:
        """The message of each place that somebody has delivered."""
        return {(one.group, one.place): one.text for items in self.delivered.values() for one in items}

    def broken(self) -> set[str]:
        """The names of the promises that are broken."""
        return set(self._findings())

    def _findings(self) -> Iterator[str]:
        order = self.order()
        for node, items in self.delivered.items():
            if any(order[one.group, one.place] != one.text for one in items):
                yield "total-order"
            if len({one.text for one in items}) < len(items):
                yield "integrity"
            if any(self.submitted.get(one.text, (0, -1))[1] != one.group for one in items):
                yield "integrity"
            if not all(self._is_inside(node, one) for one in items):
                yield "tenure"
            if any(self._goes_back(items)):
                yield "stamp-order"
            if self.causal and any(self._overtakes(items)):
                yield "causal"
        for one, other in combinations(self.delivered.values(), 2):
            both = {item.text for item in one} & {item.text for item in other}
            if [i.text for i in one if i.text in both] != [i.text for i in other if i.text in both]:
                yield "pair-order"
        if any(len(messages) > 1 for messages in self.numbers.values()):
            yield "number"
        yield from self._lacking(order)

    def _is_inside(self, node: NodeId, item: Item) -> bool:
        return any(tenure.has(item.place) for tenure in self.tenures.get((node, item.group), ()))

    def _goes_back(self, items: list[Item]) -> Iterator[bool]:
        last: dict[GroupId, int] = {}
        for item in items:
            yield item.place <= last.get(item.group, -1)
            last[item.group] = item.place

    def _overtakes(self, items: list[Item]) -> Iterator[bool]:
        """Whether a message comes before one that its publisher submitted earlier, to any group."""
        submitted = {text: number for number, text in enumerate(self.submitted)}
        last: dict[NodeId, int] = {}
        for item in items:
            publisher, number = self.submitted[item.text][0], submitted[item.text]
            yield number < last.get(publisher, 0)
            last[publisher] = max(number, last.get(publisher, 0))

    def _lacking(self, order: dict[tuple[GroupId, int], str]) -> Iterator[str]:
        for (node, group), tenures in self.tenures.items():
            has = {one.place for one in self.delivered[node] if one.group == group}
            owed = {at for (of, at) in order if of == group and any(one.has(at) for one in tenures)}
            if not owed <= has:
                yield "agreement"
        # A message to a group that had no member for a time may be for nobody.
        there = set(order.values())
        always = {one: tenures[0] for one, tenures in self.tenures.items() if tenures[0].start < 0}
        steady = {group for (_, group), tenure in always.items() if tenure.stop is None}
        for text, (publisher, group) in self.submitted.items():
            if group in steady and publisher not in self.crashed and text not in there:
                yield "validity"
