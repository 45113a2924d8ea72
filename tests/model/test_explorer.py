"""The explorer of all interleavings: it leaves nothing out, finds what is broken, and finds Hydra sound."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from ordercast.core import (
    Codec,
    Delivered,
    Env,
    Explanation,
    Guarantees,
    LocalError,
    Message,
    Node,
    NodeId,
    Plan,
    Process,
    View,
)
from ordercast.lab.model import explorer_hydra
from ordercast.lab.model.explorer import explore
from ordercast.lab.model.explorer_case import Case, Properties
from ordercast.lab.model.explorer_copy import clone, fingerprint
from ordercast.lab.model.explorer_hydra import BOTH, FIRST, case
from ordercast.lab.model.explorer_search import Search
from ordercast.lab.model.explorer_world import History, Jump, Packet, Timer
from ordercast.lab.model.result import HOLDS
from tests.deep import deep_after
from tests.model.explorer_mutants import MUTANTS, Mutant, addition, removal, resend


class Letter(Message, frozen=True, tag=1):
    text: str


CODEC = Codec((Letter,))


class Diary(Process):
    """Delivers each letter as it comes; a letter that starts with `>` is passed on to the other node."""

    def __init__(self, env: Env, other: NodeId) -> None:
        super().__init__(env)
        self.other = other
        self.read: list[str] = []

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        self.env.set_timer("bell", 7)

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Letter)
        if message.text == "poison":
            raise ValueError("spilt ink")
        self._note(message.text)
        if message.text.startswith(">"):
            self.env.send(self.other, Letter(message.text[1:]))

    def on_timer(self, name: str) -> None:
        self._note(f"{name} at {self.env.now}")

    def explain(self) -> Explanation:
        return Explanation({})

    def _note(self, text: str) -> None:
        self.read.append(text)
        self.env.deliver(Delivered(text.encode(), (0,), self.other))


class Anything(Properties):
    """Nothing is required, except that some text is never read, alone, by both, or missing at the end."""

    def __init__(self, alone: bytes = b"", together: bytes = b"", due: bytes = b"") -> None:
        self._alone, self._together, self._due = alone, together, due

    def alone(self, node: NodeId, history: History) -> str | None:
        return "it was read" if self._alone in texts(history) else None

    def together(self, one: NodeId, first: History, other: NodeId, second: History) -> str | None:
        both = self._together in texts(first) and self._together in texts(second)
        return "both have read it" if both else None

    def unsettled(self, histories: Mapping[NodeId, History], traffic: Sequence[Packet]) -> str | None:
        missing = self._due and not any(self._due in texts(history) for history in histories.values())
        return "it was not read" if missing else None


def texts(history: History) -> list[bytes]:
    return [delivery.payload for delivery in history if isinstance(delivery, Delivered)]


def diaries(*letters: tuple[NodeId, str], properties: Properties | None = None, **more: Any) -> Case:
    nodes = tuple(Node(node, "diary", node, partial(Diary, other=1 - node)) for node in (0, 1))
    plan = Plan("diaries", Guarantees(), nodes, {0: (0, 1)}, (), CODEC)
    packets = tuple(Packet(1 - to, to, Letter(text)) for to, text in letters)
    plain = Case("diaries", "", plan, properties or Anything(), packets)
    return replace(plain, **more)


def reached(search: Search) -> set[tuple[tuple[bytes, ...], ...]]:
    """What both nodes have read, in each state that was found."""
    return {tuple(tuple(texts(history)) for history in pair) for pair in search.reached()}


def test_all_orders_of_arrival_are_explored() -> None:
    search = Search(diaries((0, "a"), (0, "b"), (1, "c")))
    outcome = search.run()
    orders = {(), (b"a",), (b"b",), (b"a", b"b"), (b"b", b"a")}
    assert reached(search) == {(order, other) for order in orders for other in ((), (b"c",))}
    assert outcome.fault is None
    assert outcome.states == 10
    # From each state as many as there are packets in flight.
    assert outcome.transitions == 3 + (2 + 2 + 2) + (1 + 1 + 1 + 1)


def test_a_step_is_executed_once_however_often_it_is_taken() -> None:
    outcome = Search(diaries((0, "a"), (0, "b"), (1, "c"), (1, "d"))).run()
    assert outcome.transitions == 40
    # Two starts, and at each node: either letter first, then the other.
    assert outcome.executed == 2 + 2 * 4


def test_what_is_sent_in_return_takes_its_time() -> None:
    search = Search(diaries((0, ">x"), (1, "c")))
    assert search.run().fault is None
    assert ((b">x",), (b"c", b"x")) in reached(search)
    assert ((b">x",), (b"x", b"c")) in reached(search)


def test_timers_go_off_as_often_as_they_may_and_move_the_clock() -> None:
    search = Search(diaries((0, "a"), timers={Timer(0, "bell"): 1}))
    assert search.run().states == 5
    assert ((b"bell at 7", b"a"), ()) in reached(search)
    assert ((b"a", b"bell at 7"), ()) in reached(search)


def test_a_clock_jumps_at_any_time() -> None:
    search = Search(diaries(timers={Timer(0, "bell"): 1}, jumps=(Jump(0, 50),)))
    search.run()
    assert {first for first, _ in reached(search)} == {(), (b"bell at 7",), (b"bell at 50",)}


def test_a_packet_may_come_twice() -> None:
    search = Search(diaries((0, "a"), copies=1))
    search.run()
    assert {first for first, _ in reached(search)} == {(), (b"a",), (b"a", b"a")}


def test_a_fault_of_one_node_comes_with_the_shortest_way_to_it() -> None:
    properties = Anything(alone=b"b")
    outcome = Search(diaries((0, "a"), (0, ">b"), (1, "c"), properties=properties)).run()
    assert outcome.fault == "it was read"
    assert outcome.steps == (
        "diary 0 gets Letter(text='>b') from diary 1; delivers >b",
        "diary 1 gets Letter(text='b') from diary 0",
    )


def test_a_fault_between_two_nodes_is_found() -> None:
    outcome = Search(diaries((0, "b"), (1, "b"), properties=Anything(together=b"b"))).run()
    assert outcome.fault == "both have read it"
    assert len(outcome.steps) == 2


def test_an_error_in_a_process_is_a_fault() -> None:
    outcome = Search(diaries((1, "poison"))).run()
    assert outcome.fault is not None
    assert "node 1: ValueError: spilt ink" in outcome.fault


def test_a_loss_that_is_never_made_good_is_found() -> None:
    properties = Anything(due=b"a")
    assert Search(diaries((0, "a"), properties=properties, losses=0)).run().fault is None
    outcome = Search(diaries((0, "a"), properties=properties, losses=1)).run()
    assert outcome.fault == "does not settle in 60 rounds: it was not read"
    assert outcome.steps == ("all packets in flight are lost, and time goes on",)


def test_a_search_that_reaches_its_limit_has_failed() -> None:
    outcome = Search(diaries((0, "a"), (0, "b"), (1, "c"), states_max=6)).run()
    assert not outcome.complete
    result = explore(diaries((0, "a"), (0, "b"), (1, "c"), states_max=6))
    assert not result.ok
    assert result.found == "more than 6 states: the exploration is not complete"
    assert result.detail.startswith("not all states")


def test_an_error_before_the_exploration_is_the_fault_of_the_case() -> None:
    with pytest.raises(LocalError, match="before the exploration, node 0: ValueError: spilt ink"):
        Search(diaries((0, "poison"), prompt=(0,))).run()


def test_nodes_that_never_settle_at_their_start_are_refused() -> None:
    class Chatter(Diary):
        def on_start(self, saved: Mapping[str, bytes]) -> None:
            self.env.send(self.other, Letter(">" * 2000))

    nodes = tuple(Node(node, "diary", node, partial(Chatter, other=1 - node)) for node in (0, 1))
    plan = Plan("diaries", Guarantees(), nodes, {0: (0, 1)}, (), CODEC)
    with pytest.raises(LocalError, match="do not settle"):
        Search(Case("chatter", "", plan, Anything(), ())).run()


class Part:
    __slots__ = ("items", "whole")

    def __init__(self, whole: "Whole") -> None:
        self.whole = whole
        self.items = deque([1, 2], maxlen=3)


class Whole:
    def __init__(self) -> None:
        self.part = Part(self)
        self.same = self.part.items
        self.append = self.same.append
        self.note = self.remember
        self.known: dict[int, list[int]] = {1: [2]}
        self.names = {"a", "b"}

    def remember(self, item: int) -> None:
        self.known[item] = []


def test_a_copy_shares_nothing_with_its_original_and_keeps_its_shape() -> None:
    whole = Whole()
    before = fingerprint(whole)
    copy = clone(whole, {})
    assert fingerprint(copy) == before
    copy.append(3)
    copy.note(5)
    copy.known[1].append(4)
    copy.names.add("c")
    assert copy.part.whole is copy
    assert copy.part.items is copy.same
    assert list(copy.part.items) == [1, 2, 3]
    assert copy.part.items.maxlen == 3
    assert copy.known == {1: [2, 4], 5: []}
    assert fingerprint(whole) == before
    assert fingerprint(copy) != before


def test_fingerprints_tell_what_is_shared_from_what_is_alike() -> None:
    part, twin = Part(Whole()), Part(Whole())
    assert fingerprint(part) == fingerprint(twin)
    assert fingerprint([part, part]) != fingerprint([part, twin])


QUICK = ("order-copies", "order-jump")
"""Those that are over soonest, the first of them by far; `ordercast model hydra` explores all."""
CASES = [next(c for c in explorer_hydra.quick() if c.name == name) for name in QUICK]


@pytest.mark.parametrize("chosen", deep_after(1, CASES), ids=lambda c: c.name)
def test_all_interleavings_of_hydra_keep_its_promises(chosen: Case) -> None:
    result = explore(chosen)
    assert result.found == HOLDS, result.detail
    assert result.ok
    assert result.detail.startswith("all states")
    assert result.states > 4000


def test_names_of_cases_are_different() -> None:
    names = [chosen.name for chosen in (*explorer_hydra.quick(), *explorer_hydra.deep())]
    assert len(set(names)) == len(names)
    assert set(names) >= set(QUICK)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_variant_of_hydra_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant.where, mutant.attribute, mutant.broken)
    result = explore(mutant.case())
    assert mutant.finds in result.found
    steps = result.detail.splitlines()[1:]
    assert 3 < len(steps) < 20
    assert all(line.startswith(f"{number}. ") for number, line in enumerate(steps, 1))


def test_a_kept_message_is_delivered_of_either_sequencer_and_never_of_both() -> None:
    search = Search(resend())
    outcome = search.run()
    assert (outcome.fault, outcome.complete) == (None, True)
    whole = {(first, second) for first, second, *_ in search.reached() if copies(first) and copies(second)}
    assert {(copies(first), copies(second)) for first, second in whole} == {((1,), (1,)), ((2,), (2,))}


def copies(history: History) -> tuple[int, ...]:
    """The sequencers of all messages."""
    return tuple(one.stamp.issuer for one in history if isinstance(one, Delivered) and one.stamp)


@pytest.mark.deep
def test_shortcuts_of_the_search_leave_no_history_out() -> None:
    """Prompt and leading nodes and fading packets spare states, and no combination of histories."""
    requests = ((1, BOTH), (2, BOTH))
    short = case("short", "", requests, removed=2, flush="periodic", flushes=FIRST, losses=0)
    long = replace(short, prompt=(), leading=(), properties=Tireless(short.properties))
    searches = [Search(chosen) for chosen in (short, long)]
    outcomes = [search.run() for search in searches]
    assert [outcome.fault for outcome in outcomes] == [None, None]
    assert outcomes[0].states < outcomes[1].states
    assert searches[0].reached() == searches[1].reached()


class Tireless(Properties):
    """The same properties, but no packet fades."""

    def __init__(self, properties: Properties) -> None:
        self._properties = properties

    def alone(self, node: NodeId, history: History) -> str | None:
        return self._properties.alone(node, history)

    def together(self, one: NodeId, first: History, other: NodeId, second: History) -> str | None:
        return self._properties.together(one, first, other, second)

    def unsettled(self, histories: Mapping[NodeId, History], traffic: Sequence[Packet]) -> str | None:
        return self._properties.unsettled(histories, traffic)


@pytest.mark.parametrize("changed", deep_after(0, [removal, addition]))
def test_changes_take_effect_amid_messages_and_not_only_at_the_end(changed: Callable[[], Case]) -> None:
    search = Search(changed())
    assert search.run().fault is None
    kinds = {tuple(type(delivery) for delivery in history) for pair in search.reached() for history in pair}
    assert (Delivered, View) in kinds
    assert (View, Delivered) in kinds
