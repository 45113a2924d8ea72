"""The promises of LLFT, judged by what replicas and clients have delivered in a lab.

The service of the lab answers each call with all calls so far. So an answer shows everything before it, and
the state of a primary is the whole order of its group.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ordercast.core import (
    Checkpoint,
    Delivered,
    Delivery,
    GroupId,
    Joined,
    Left,
    NodeId,
    Replied,
    Undone,
    View,
)
from ordercast.core.bundle import unpack


class Item(NamedTuple):
    """A delivered call."""

    place: int
    text: str
    view: int
    """The number of the view in which it was performed."""


class Answer:
    """What a client was told about a call."""

    def __init__(self, place: int, primary: int, story: list[str]) -> None:
        self.place = place
        self.primary = primary
        """The precedence of the primary in whose view the call was performed."""
        self.story = story
        """The calls that the result shows, this one last."""
        self.undone = False


class Life:
    """What a replica has delivered since its start."""

    def __init__(self) -> None:
        self.stretches: list[list[Item]] = [[]]
        """Between two states that it took over."""
        self.views: list[View] = []
        self.checkpoints: list[Checkpoint] = []

    def texts(self) -> list[str]:
        """The calls that it has delivered."""
        return [one.text for part in self.stretches for one in part]

    def undo(self, place: int) -> None:
        """Take back what it has delivered after a place."""
        self.stretches = [[one for one in part if one.place <= place] for part in self.stretches]
        # a view begins after the place that its stamp names
        self.views = [one for one in self.views if one.stamp is None or one.stamp.clock < place]
        self.checkpoints = [one for one in self.checkpoints if one.stamp.clock <= place]


class History:
    """What was called, answered and delivered."""

    def __init__(self, groups: Sequence[Sequence[NodeId]], joiners: Sequence[NodeId] = ()) -> None:
        """Those who join later are dealt out to the groups."""
        self.groups = tuple(
            (*members, *joiners[group :: len(groups)]) for group, members in enumerate(groups)
        )
        self.home = {node: group for group, members in enumerate(self.groups) for node in members}
        self.called: dict[str, tuple[NodeId, GroupId]] = {}
        """By call: its client and its group."""
        self.answers: dict[str, Answer] = {}
        self.inside = {node: node not in joiners for node in self.home}
        """Whether a replica was told last that it is in its group."""
        self.notices: dict[NodeId, list[Joined | Left | View]] = {node: [] for node in self.home}
        """What each replica was told of itself and of views."""
        self.early: list[tuple[NodeId, Delivery]] = []
        """What replicas have delivered outside."""
        self.lives: dict[NodeId, Life] = {node: Life() for node in self.home}
        self.past: list[tuple[NodeId, Life]] = []
        """Lives that ended in a crash."""
        self.known: list[tuple[NodeId, Life]] = []
        """Those after which their nodes did not lose their disks."""
        self.undone: list[tuple[NodeId, Undone]] = []
        self.crashed: set[NodeId] = set()
        """Clients that have crashed: their calls may be lost."""

    def crash(self, node: NodeId) -> None:
        """A process has crashed."""
        if node in self.home:
            self.past.append((node, self.lives[node]))
            self.known.append(self.past[-1])
            self.lives[node] = Life()
        else:
            self.crashed.add(node)

    def forget(self, node: NodeId) -> None:
        """A replica has lost its disk: it may deliver again what it had delivered."""
        self.known = [(one, life) for one, life in self.known if one != node]

    def note(self, node: NodeId, delivery: Delivery) -> None:
        """A process has delivered something."""
        if node in self.home:
            self._note_of_replica(node, self.lives[node], delivery)
        else:
            self._note_of_client(node, delivery)

    def _note_of_replica(self, node: NodeId, life: Life, delivery: Delivery) -> None:
        if isinstance(delivery, Joined | Left | View):
            self.notices[node].append(delivery)
        if isinstance(delivery, Joined | Left):
            self.inside[node] = isinstance(delivery, Joined)
            life.stretches.append([])
        elif not self.inside[node]:
            self.early.append((node, delivery))
        match delivery:
            case Delivered(payload=payload, stamp=stamp, config=view) if stamp is not None:
                texts = [item.payload.decode() for item in unpack(payload)]
                life.stretches[-1] += [Item(stamp.clock, text, view or 0) for text in texts]
            case View():
                if delivery.begins_anew:
                    life.stretches.append([])
                else:
                    life.views.append(delivery)
            case Checkpoint():
                life.checkpoints.append(delivery)
            case Undone(stamp=stamp):
                self.undone.append((node, delivery))
                life.undo(stamp.clock)

    def _note_of_client(self, node: NodeId, delivery: Delivery) -> None:
        match delivery:
            case Replied(payload=payload, stamp=stamp, read=False) if stamp is not None:
                for item in unpack(payload):
                    story = item.payload[1:].decode().split()
                    text = story[-1] if story else "?"
                    assert text not in self.answers, f"{text} has two answers"
                    self.answers[text] = Answer(stamp.clock, stamp.issuer, story)
            case Undone(group=group, stamp=stamp):
                self.undone.append((node, delivery))
                for text, answer in self.answers.items():
                    if self.called.get(text) == (node, group) and answer.place > stamp.clock:
                        answer.undone = True

    # Judgement

    def broken(
        self, orders: Sequence[list[str]], *, majority: bool, uniform: bool = True
    ) -> Iterator[tuple[str, str]]:
        """The promises that are broken, each with what shows it.

        `orders`: the calls of each group, in its order, as its primary has them at the end. `uniform`: what
        crashed replicas had delivered counts, too.
        """
        for group, order in enumerate(orders):
            yield from self._bad_order(group, order)
            for node in self.groups[group]:
                yield from self._bad_life(node, self.lives[node], order)
        for node, life in self.past if uniform or majority else ():
            yield from self._bad_past(node, life, orders[self.home[node]])
        yield from self._bad_answers(orders, majority=majority)
        yield from self._bad_states()
        yield from self._bad_views()
        for node, delivery in self.early:
            yield "tenure", f"node {node} is in no group, and delivered {delivery}"
        if majority:
            yield from self._bad_certainties()

    def _bad_certainties(self) -> Iterator[tuple[str, str]]:
        """What cannot be if nothing is ever undone."""
        if self.undone:
            yield "certain", f"something is undone: {self.undone}"
        lives = [*self.past, *self.lives.items()]
        told = {text for _, life in lives for text in life.texts()}
        for text in self.answers.keys() - told:
            yield "told", f"{text} was answered, and no replica has delivered it"
        for node, life in self.lives.items():
            earlier = [text for one, other in self.known if one == node for text in other.texts()]
            twice = [text for text, count in Counter(earlier + life.texts()).items() if count > 1]
            if twice:
                yield "integrity", f"node {node} has delivered {twice} again"

    def _bad_order(self, group: GroupId, order: list[str]) -> Iterator[tuple[str, str]]:
        if len(set(order)) < len(order):
            yield "exactly-once", f"group {group} has performed {order}"
        for text in order:
            if self.called.get(text, (0, -1))[1] != group:
                yield "integrity", f"group {group} has performed {text}, which nobody has called there"

    def _bad_life(self, node: NodeId, life: Life, order: list[str]) -> Iterator[tuple[str, str]]:
        last = len(life.stretches) - 1
        for number, part in enumerate(life.stretches):
            if not part:
                continue
            yield from _bad_stretch(node, part, order)
            if number == last and [part[-1].text] != order[-1:]:
                yield "agreement", f"node {node} ends with {part[-1].text}, and its group has {order}"

    def _bad_past(self, node: NodeId, life: Life, order: list[str]) -> Iterator[tuple[str, str]]:
        for part in life.stretches:
            for _, detail in _bad_stretch(node, part, order) if part else ():
                yield "uniform", f"before its crash: {detail}"

    def _bad_answers(self, orders: Sequence[list[str]], *, majority: bool) -> Iterator[tuple[str, str]]:
        """Without a majority, only the client may know the order of what it was answered: it takes that along
        when it crashes."""
        for text, (client, group) in self.called.items():
            answer = self.answers.get(text)
            if answer is None:
                if client not in self.crashed:
                    yield "validity", f"{text} has no answer"
            elif not answer.undone and (majority or client not in self.crashed):
                order = orders[group]
                expected = order[: order.index(text) + 1] if text in order else []
                if answer.story != expected:
                    yield "answers", f"{text} was answered {answer.story}, and the order is {order}"

    def _bad_states(self) -> Iterator[tuple[str, str]]:
        states: dict[tuple[GroupId, int, int], tuple[int, NodeId]] = {}
        for node, life in self.lives.items():
            for one in life.checkpoints:
                if one.digest is None:  # of a state that goes on
                    continue
                place = (self.home[node], one.stamp.clock, one.stamp.issuer)
                digest, other = states.setdefault(place, (one.digest, node))
                if digest != one.digest:
                    yield "states", f"nodes {other} and {node} have different states at place {place[1]}"

    def _bad_views(self) -> Iterator[tuple[str, str]]:
        begun: dict[tuple[GroupId, int], tuple[object, NodeId]] = {}
        for node, life in self.lives.items():
            numbers = [view.config for view in life.views]
            if numbers != sorted(set(numbers)):
                yield "views", f"node {node} had views {numbers}"
            for view in life.views:
                told = (view.stamp, view.members)
                known, other = begun.setdefault((self.home[node], view.config), (told, node))
                if known != told:
                    yield "views", f"view {view.config} is {known} at node {other}, {told} at node {node}"


def _bad_stretch(node: NodeId, part: list[Item], order: list[str]) -> Iterator[tuple[str, str]]:
    """Whether what a replica has delivered is a consecutive part of the order of its group."""
    places, texts = [one.place for one in part], [one.text for one in part]
    if places != sorted(places):
        yield "stamp-order", f"node {node} delivered {part}"
    if texts[0] not in order:
        yield "agreement", f"node {node} delivered {texts}, and the order is {order}"
        return
    start = order.index(texts[0])
    if order[start : start + len(texts)] != texts:
        kind = "agreement" if set(texts) <= set(order) and _ascends(texts, order) else "total-order"
        yield kind, f"node {node} delivered {texts}, and the order is {order}"


def _ascends(texts: list[str], order: list[str]) -> bool:
    indexes = [order.index(text) for text in texts]
    return indexes == sorted(indexes)
