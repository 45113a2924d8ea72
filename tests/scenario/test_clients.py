"""Closed-loop clients: how many messages are under way, and what comes of answers that do not come."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import MILLISECOND, Deployment, Groups, MessageId, Nanos, NodeId, message_id
from ordercast.scenario.clients import APART, ClientCalls, Clients
from ordercast.scenario.spec import WorkloadSpec
from ordercast.scenario.window import Budget, Window

TIMEOUT = 5 * MILLISECOND
ONE, OTHER = 3, 4
"""The senders; the receivers are 0 to 2."""


class Driver:
    """Clients with a clock and a notebook for a world."""

    def __init__(self, messages: int = 10, outstanding: int = 1, *, shared: bool = True) -> None:
        protocol = find_protocol("unordered")
        plan = protocol.deploy(Deployment.disjoint(1, 3, 2), protocol.options())
        assert tuple(plan.senders) == (ONE, OTHER)
        spec = WorkloadSpec(
            kind="closed", bytes=12, outstanding=outstanding, timeout_ms=TIMEOUT / MILLISECOND
        )
        self.now = 0
        self.down: set[NodeId] = set()
        self.submitted: list[tuple[Nanos, NodeId, MessageId, bytes]] = []
        self.completed: list[tuple[NodeId, MessageId, Nanos]] = []
        self._due: list[tuple[Nanos, int, Callable[..., None], tuple[Any, ...]]] = []
        self._events = 0
        pool = Budget(messages)
        budgets = {sender: pool if shared else Budget(messages) for sender in plan.senders}
        calls = ClientCalls(lambda: self.now, self.submit, self.after, self.complete)
        self.clients = Clients(spec, plan, 7, budgets, calls)
        self.clients.start()

    def submit(self, sender: NodeId, groups: Groups, payload: bytes, label: str | None) -> MessageId | None:
        if sender in self.down:
            return None
        message = message_id(sender, len(self.submitted))
        self.submitted.append((self.now, sender, message, payload))
        return message

    def after(self, delay: Nanos, action: Callable[..., None], *args: Any) -> None:
        self._events += 1
        heappush(self._due, (self.now + delay, self._events, action, args))

    def complete(self, sender: NodeId, message: MessageId, submitted: Nanos) -> None:
        self.completed.append((sender, message, submitted))

    def run(self, until: Nanos) -> None:
        while self._due and self._due[0][0] <= until:
            self.now, _, action, args = heappop(self._due)
            action(*args)
        self.now = until

    def answer(self, message: MessageId, *nodes: NodeId) -> None:
        for node in nodes or (0, 1, 2):
            self.clients.answer(node, message)

    def of(self, sender: NodeId) -> list[MessageId]:
        return [message for _, who, message, _ in self.submitted if who == sender]


def test_clients_begin_a_little_apart_with_full_windows() -> None:
    driver = Driver(outstanding=3)
    driver.run(APART)
    assert [len(driver.of(sender)) for sender in (ONE, OTHER)] == [3, 3]
    assert len({when for when, *_ in driver.submitted}) > 1


def test_the_next_message_waits_for_the_answers_of_all_receivers() -> None:
    driver = Driver()
    driver.run(APART)
    (first,) = driver.of(ONE)
    driver.now = 50_000
    driver.answer(first, 0, 1)
    driver.answer(first, 1)  # twice is once
    assert driver.of(ONE) == [first]
    assert driver.completed == []
    driver.answer(first, 2)
    assert len(driver.of(ONE)) == 2
    (when,) = [when for when, _, message, _ in driver.submitted if message == first]
    assert driver.completed == [(ONE, first, when)]


def test_a_message_without_answers_is_given_up_and_followed_by_another() -> None:
    driver = Driver()
    driver.run(APART)
    (first,) = driver.of(ONE)
    driver.run(APART + TIMEOUT)
    assert driver.clients.timed_out == 2
    assert len(driver.of(ONE)) == 2
    driver.answer(first)  # too late to count
    assert driver.completed == []
    assert len(driver.of(ONE)) == 2


def test_an_answer_in_time_needs_no_giving_up() -> None:
    driver = Driver(messages=2)
    driver.run(APART)
    for _, _, message, _ in list(driver.submitted):
        driver.answer(message)
    driver.run(10 * TIMEOUT)
    assert driver.clients.timed_out == 0
    assert len(driver.completed) == 2


def test_a_client_whose_sender_is_down_tries_once_a_timeout_and_its_messages_count() -> None:
    driver = Driver(messages=6, shared=False)
    driver.down.add(ONE)
    driver.run(APART + 3 * TIMEOUT)
    assert driver.of(ONE) == []
    driver.down.clear()
    driver.run(APART + 4 * TIMEOUT)
    assert len(driver.of(ONE)) == 1
    assert driver.submitted[-1][3][0] == 5  # four were lost
    assert len(driver.clients.awaited) == 2


@pytest.mark.parametrize(("shared", "wanted"), [(True, 7), (False, 14)])
def test_clients_share_a_budget_or_have_their_own(shared: bool, wanted: int) -> None:
    driver = Driver(messages=7, outstanding=2, shared=shared)
    driver.run(100 * TIMEOUT)
    assert len(driver.submitted) == wanted
    assert driver.clients.timed_out == wanted
    assert driver.clients.finished


def test_clients_have_not_finished_while_an_answer_is_awaited() -> None:
    driver = Driver(messages=2)
    driver.run(APART)
    one, other = (message for _, _, message, _ in driver.submitted)
    driver.answer(one)
    assert not driver.clients.finished
    driver.answer(other)
    assert driver.clients.finished


def test_messages_are_numbered_and_have_their_size() -> None:
    driver = Driver(messages=3, outstanding=2)
    driver.run(100 * TIMEOUT)
    assert [payload for *_, payload in driver.submitted] == [
        number.to_bytes(8, "little") + bytes(4) for number in (1, 2, 3)
    ]


def test_a_window_counts_what_is_under_way() -> None:
    window = Window(5)
    window.take(5)
    assert (window.room, window.ready) == (0, False)
    assert window.done(2) == window.room == 2
    window.lose()
    assert (window.room, window.under_way) == (5, 0)


def test_a_window_may_wait_until_it_is_worth_while() -> None:
    window = Window(10, refill=4)
    window.take(10)
    window.done(3)
    assert not window.ready
    window.done(1)
    assert window.ready


def test_a_budget_ends_and_goes_on_where_an_earlier_life_left_it() -> None:
    budget = Budget(5, taken=3)
    assert [budget.take() for _ in range(3)] == [4, 5, None]
    assert budget.remaining == 0
    assert Budget(5, taken=8).remaining == 0
