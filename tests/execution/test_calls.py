"""The calls of a client: window, retries, deadline, floor, and services that are silent."""

from itertools import pairwise

import pytest

from ordercast.components.execution import CallOptions, Calls, Pending
from ordercast.components.execution import calls as calls_module
from ordercast.core import LocalError, MessageId, RemoteError, Replied, Stamp, Unconfirmed, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.testing import RecordingEnv

CLIENT = 5


def bundle(number: int, count: int = 1) -> bytes:
    return pack_bundle(message_id(CLIENT, number), [0] * count, [b"x"] * count)


class Client:
    """The owner of some calls."""

    def __init__(self, **options: int) -> None:
        self.env = RecordingEnv(CLIENT)
        self.sent: list[MessageId] = []
        self.calls = Calls(self.env, (0, 1), CallOptions(**options), self.send, answers=True)

    def send(self, call: Pending) -> None:
        self.sent.append(call.first)

    def take(self, number: int, group: int = 0, count: int = 1) -> bool:
        return self.calls.take((group,), bundle(number, count))

    def settle(self, number: int) -> bool:
        first = message_id(CLIENT, number)
        results = pack_bundle(first, [0], [b"\0"])
        return self.calls.settle(first, results, Stamp(1, 0), 2)

    def wait(self) -> None:
        self.env.now = self.env.timers.pop(Calls.TIMER)
        self.calls.on_timer()

    def numbers(self) -> list[int]:
        return [first - message_id(CLIENT, 0) for first in self.sent]


def test_a_call_is_repeated_ever_more_slowly_until_it_is_settled() -> None:
    client = Client(retry_ns=100)
    client.take(1)
    times = [client.env.now]
    for _ in range(6):
        client.wait()
        times.append(client.env.now)
    assert [b - a for a, b in pairwise(times)] == [100, 200, 400, 800, 800, 800]
    assert client.settle(1) and not client.settle(1)
    assert isinstance(client.env.delivered[-1], Replied)
    client.wait()
    assert client.numbers() == [1] * 7 and Calls.TIMER not in client.env.timers


def test_the_window_is_of_one_service() -> None:
    client = Client(window=2)
    assert client.take(1) and client.take(2) and not client.take(3)
    assert client.take(3, group=1)
    client.settle(1)
    assert client.take(4)


def test_calls_to_a_silent_service_are_held_and_sent_when_it_answers() -> None:
    client = Client(window=1, retry_ns=10)
    client.take(1, group=0)
    client.take(2, group=1)
    while client.calls.pending[message_id(CLIENT, 1)].attempts < calls_module.SILENT_ATTEMPTS:
        assert not client.take(3, group=0)
        client.wait()
    client.settle(2)
    assert client.take(3, group=0)  # held
    assert client.take(4, group=1)  # and it does not stand in the way
    assert 3 not in client.numbers() and 4 in client.numbers()
    client.settle(1)
    assert client.numbers()[-1] == 3


def test_a_lonely_service_that_is_silent_holds_nothing() -> None:
    client = Client(window=1, retry_ns=10)
    client.take(1)
    for _ in range(8):
        client.wait()
    assert not client.take(2)


def test_the_floor_is_the_oldest_call_without_an_answer() -> None:
    client = Client()
    assert client.calls.floor == 0
    for number in (1, 2, 3):
        client.take(number)
    client.settle(2)
    assert client.calls.floor == message_id(CLIENT, 1)
    client.settle(1)
    assert client.calls.floor == message_id(CLIENT, 3)


def test_a_call_without_an_outcome_is_given_back_at_its_deadline() -> None:
    client = Client(retry_ns=100, deadline_ns=250)
    client.take(1, count=3)
    while client.calls.pending:
        client.wait()
    assert client.env.now == 250 and client.calls.unknown == 3
    (told,) = client.env.delivered
    assert isinstance(told, Unconfirmed) and told.payload == bundle(1, 3)
    assert not client.settle(1)


def test_results_that_do_not_fit_are_refused() -> None:
    client = Client()
    client.take(1, count=2)
    with pytest.raises(RemoteError, match="answers call 5#1 with other results"):
        client.settle(1)
    assert client.calls.pending


def test_an_operation_goes_to_one_group() -> None:
    with pytest.raises(LocalError, match="an operation goes to one group, not to 2"):
        Client().calls.take((0, 1), bundle(1))


def test_a_call_to_a_group_without_replicas_is_refused() -> None:
    with pytest.raises(LocalError, match="there are no replicas of group 7"):
        Client().take(1, group=7)


def test_a_deadline_is_not_before_the_first_retry() -> None:
    with pytest.raises(LocalError, match="deadline_ns must be 0 or at least retry_ns"):
        CallOptions(retry_ns=100, deadline_ns=50)


def test_what_waits_is_explained() -> None:
    client = Client()
    client.take(1, count=2)
    (wait,) = client.calls.waits("the answer of the server", (3,))
    assert wait.subject == "call 5#1 of 2 operations, sent 1 times" and wait.on == (3,)
