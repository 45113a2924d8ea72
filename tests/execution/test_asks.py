"""Operations that ask another service: their calls wait, survive a snapshot, and are answered once."""

from random import Random

import msgspec
import pytest

import ordercast
from ordercast.components.execution import Call, Executor, pack_call, unpack_call
from ordercast.components.execution.executor import Execution
from ordercast.core import (
    Answer,
    LocalError,
    Outcome,
    ServiceType,
    Stamp,
    message_id,
    outcome_of,
)
from ordercast.core.bundle import pack_bundle, unpack
from ordercast.services.rehearsal import rehearse
from ordercast.services.shop import PIECES, Shop, Stock
from ordercast.testing import RecordingEnv

SHOP, STOCK = ServiceType.of(Shop), ServiceType.of(Stock)
CLIENT, PRIMARY = 5, 0
OTHERS = {1: STOCK.fingerprint}


def executor(others: dict[int, str] | None = None) -> Executor:
    return Executor(RecordingEnv(), SHOP.spec(), OTHERS if others is None else others)


def call(number: int, *operations: bytes, floor: int | None = None) -> Call:
    first = message_id(CLIENT, number)
    bundle = pack_bundle(first, [10 * number] * len(operations), list(operations))
    lowest = message_id(CLIENT, number if floor is None else floor)
    return unpack_call(pack_call(lowest, bundle), CLIENT)


def buy(item: str, count: int) -> bytes:
    return SHOP.find("buy").pack((item, count), {})


def change(old: str, new: str) -> bytes:
    return SHOP.find("change").pack((old, new), {})


def stock_says(value: int) -> bytes:
    return bytes((Outcome.ANSWERED,)) + msgspec.msgpack.encode(value)


def begin(shop: Executor, number: int, *operations: bytes) -> None:
    done = shop.execute(call(number, *operations), Stamp(number, 0), via=(number,))
    assert done is not None and done.fresh and not done.finished


def send(shop: Executor, number: int) -> int:
    """Give the ask with this number an identity."""
    sent = shop.send(number, message_id(PRIMARY, number), 100)
    assert sent is not None
    return unpack_call(sent).first


def answer(shop: Executor, message: int, result: bytes) -> Execution | None:
    resumed = shop.resume(message, pack_bundle(message, [100], [result]))
    assert resumed is not None
    return resumed[1]


def values(execution: Execution | None) -> list[object]:
    assert execution is not None
    kind = SHOP.find("buy")
    return [kind.unpack_result(item.payload) for item in unpack(execution.results)]


def test_a_call_waits_for_the_answer_and_is_answered_where_it_was_executed_first() -> None:
    shop = executor()
    begin(shop, 1, buy("cup", 2))
    done = answer(shop, send(shop, 1), stock_says(48))
    assert values(done) == [2]
    assert done is not None and done.stamp == Stamp(1, 0) and done.via == (1,) and not done.fresh


def test_the_other_service_gets_the_operation_under_the_identity_and_time_that_were_given() -> None:
    shop, stock = executor(), Executor(RecordingEnv(), STOCK.spec())
    begin(shop, 1, buy("cup", 2))
    sent = shop.send(1, message_id(PRIMARY, 7), 123)
    assert sent is not None
    asked = unpack_call(sent, PRIMARY)
    done = stock.execute(asked, Stamp(1, 3))
    assert done is not None and asked.first == message_id(PRIMARY, 7)
    assert [item.submitted_ns for item in unpack(asked.bundle)] == [123]
    assert values(answer(shop, asked.first, unpack(done.results)[0].payload)) == [2]


def test_a_call_that_waits_is_neither_executed_nor_answered_again_and_its_last_way_counts() -> None:
    shop = executor()
    begin(shop, 1, buy("cup", 2))
    assert shop.execute(call(1, buy("cup", 2)), Stamp(2, 0), via=(9,)) is None
    assert shop.asks is not None and len(shop.asks.waiting) == 1 and shop.executed == 1
    done = answer(shop, send(shop, 1), stock_says(48))
    assert done is not None and done.via == (9,)
    again = shop.execute(call(1, buy("cup", 2)), Stamp(3, 0))
    assert again is not None and not again.fresh and again.results == done.results


def test_operations_of_one_call_wait_each_for_their_own_answers() -> None:
    shop = executor()
    begin(shop, 1, buy("cup", 1), SHOP.find("change").pack(("pan", "pot"), {}), buy("jug", 1))
    first, second = send(shop, 1), send(shop, 2)
    assert answer(shop, second, stock_says(49)) is None
    done = answer(shop, first, stock_says(49))
    assert done is not None
    results = [item.payload for item in unpack(done.results)]
    assert [outcome_of(one) for one in results] == [Outcome.ANSWERED, Outcome.REFUSED, Outcome.ANSWERED]


def test_a_continuation_may_ask_again() -> None:
    shop = executor()
    begin(shop, 1, buy("cup", 1))
    answer(shop, send(shop, 1), stock_says(49))
    begin(shop, 2, change("cup", "pan"))
    assert answer(shop, send(shop, 2), stock_says(49)) is None
    assert values(answer(shop, send(shop, 3), stock_says(50))) == [1]


def test_a_refusal_of_the_other_service_is_an_answer() -> None:
    shop = executor()
    begin(shop, 1, buy("cup", 99))
    done = answer(shop, send(shop, 1), bytes((Outcome.REFUSED,)) + b"too many")
    with pytest.raises(ordercast.Refused, match="too many"):
        values(done)


def test_a_snapshot_holds_what_is_unfinished() -> None:
    shop, other = executor(), executor()
    begin(shop, 1, buy("cup", 1), buy("pan", 1))
    first = send(shop, 1)
    other.restore(shop.snapshot())
    assert other.snapshot() == shop.snapshot() and other.digest() == shop.digest()
    for one in (shop, other):
        assert answer(one, first, stock_says(49)) is None
        assert values(answer(one, send(one, 2), stock_says(49))) == [1, 1]
    assert other.snapshot() == shop.snapshot()


def test_an_ask_keeps_its_identity_when_it_is_sent_again() -> None:
    shop = executor()
    begin(shop, 1, buy("cup", 1))
    first = shop.send(1, message_id(PRIMARY, 1), 100)
    again = shop.send(1, message_id(PRIMARY, 2), 200)
    assert first is not None and again is not None and first == again
    answer(shop, unpack_call(first).first, stock_says(49))
    assert shop.send(1, message_id(PRIMARY, 3), 300) is None


def test_the_floor_of_an_ask_is_the_oldest_of_its_sender_that_waits() -> None:
    shop = executor()
    begin(shop, 1, buy("cup", 1), buy("pan", 1))
    first, _ = send(shop, 1), send(shop, 2)
    begin(shop, 2, buy("jug", 1))
    sent = shop.send(3, message_id(PRIMARY, 3), 0)
    assert sent is not None and unpack_call(sent).floor == first
    answer(shop, first, stock_says(49))
    sent = shop.send(3, 0, 0)
    assert sent is not None and unpack_call(sent).floor == message_id(PRIMARY, 2)


def test_an_answer_that_nobody_waits_for_is_nothing() -> None:
    shop = executor()
    assert shop.resume(message_id(PRIMARY, 1), b"") is None
    begin(shop, 1, buy("cup", 1))
    first = send(shop, 1)
    answer(shop, first, stock_says(49))
    assert shop.resume(first, pack_bundle(first, [0], [stock_says(1)])) is None


def test_a_malformed_answer_fails_the_operation_alone() -> None:
    shop = executor()
    begin(shop, 1, buy("cup", 1))
    resumed = shop.resume(send(shop, 1), b"nonsense")
    assert resumed is not None
    with pytest.raises(ordercast.ServiceFailed, match="malformed answer"):
        values(resumed[1])


@pytest.mark.parametrize(
    ("others", "text"),
    [
        ({}, "no other group replicates Stock"),
        ({1: STOCK.fingerprint, 2: STOCK.fingerprint}, "the groups 1, 2 replicate Stock: say with group="),
    ],
)
def test_an_operation_fails_if_it_asks_whom_nobody_knows(others: dict[int, str], text: str) -> None:
    shop = executor(others)
    done = shop.execute(call(1, buy("cup", 1)), Stamp(1, 0))
    assert done is not None and done.finished
    with pytest.raises(ordercast.ServiceFailed, match=text):
        values(done)


def test_who_no_longer_waits_gets_no_result_kept() -> None:
    shop = executor()
    begin(shop, 1, buy("cup", 1))
    first = send(shop, 1)
    shop.execute(call(2, SHOP.find("change").pack(("pan", "pot"), {})), Stamp(2, 0))
    answer(shop, first, stock_says(49))
    assert shop.find(message_id(CLIENT, 1), CLIENT) is None
    assert not shop.knows(message_id(CLIENT, 1), CLIENT)


# What a user may write


class Wrong(ordercast.Service):
    """Asks what cannot be asked."""

    @ordercast.operation
    def no_continuation(self) -> int:
        """Go on with a method that is none."""
        return ordercast.ask(Stock.left, "cup", then=self.plain)

    @ordercast.operation
    def no_operation(self) -> int:
        """Ask something that is no operation."""
        return ordercast.ask(len, "cup", then=self.done)

    @ordercast.operation
    def wrong_argument(self) -> int:
        """Ask with a wrong argument."""
        return ordercast.ask(Stock.left, 5, then=self.done)

    @ordercast.operation
    def wrong_keep(self) -> int:
        """Keep what does not fit."""
        return ordercast.ask(Stock.left, "cup", then=self.done, keep=(1,))

    def plain(self, answer: Answer[int]) -> int:
        """Not marked."""
        return answer.result()

    @ordercast.continuation
    def done(self, answer: Answer[int]) -> int:
        """Give the answer."""
        return answer.result()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no_continuation", "Wrong.plain is not a continuation: decorate it with @continuation"),
        ("no_operation", "is not an operation of a service"),
        ("wrong_argument", "wrong arguments for left"),
        ("wrong_keep", "wrong values kept for done"),
    ],
)
def test_a_wrong_ask_fails_with_a_text_that_says_what_is_wrong(name: str, text: str) -> None:
    kinds = ServiceType.of(Wrong)
    wrong = Executor(RecordingEnv(), kinds.spec(), OTHERS)
    done = wrong.execute(call(1, kinds.find(name).pack((), {})), Stamp(1, 0))
    assert done is not None
    with pytest.raises(ordercast.ServiceFailed, match=text):
        kinds.find(name).unpack_result(unpack(done.results)[0].payload)


def test_a_continuation_begins_with_an_answer() -> None:
    class Bad(ordercast.Service):
        @ordercast.operation
        def run(self) -> None:
            """Do nothing."""

        @ordercast.continuation
        def done(self, item: str) -> None:
            """Take no answer."""

    with pytest.raises(LocalError, match="first parameter must be an Answer"):
        ServiceType.of(Bad)


def test_the_random_numbers_of_a_continuation_are_its_own() -> None:
    class Dice(ordercast.Service):
        def __init__(self) -> None:
            self.rolled: list[int] = []

        def roll(self) -> None:
            """Roll the dice once."""
            self.rolled.append(self.context.rng.randrange(1 << 30))

        @ordercast.operation
        def run(self) -> int:
            """Roll, and ask."""
            self.roll()
            return ordercast.ask(Stock.left, "cup", then=self.done)

        @ordercast.continuation
        def done(self, answer: Answer[int]) -> int:
            """Roll again."""
            self.roll()
            return 0

    kinds = ServiceType.of(Dice)
    dice = [Executor(RecordingEnv(), kinds.spec(), OTHERS) for _ in range(2)]
    for one in dice:
        begin(one, 1, kinds.find("run").pack((), {}))
        answer(one, send(one, 1), stock_says(1))
    assert dice[0].snapshot() == dice[1].snapshot()
    state = dice[0]._machine
    assert state is not None
    first, second = msgspec.msgpack.decode(state.snapshot())["rolled"]
    assert first != second


def test_a_protocol_that_carries_no_asks_refuses_the_service() -> None:
    from ordercast.catalogue import find_protocol
    from ordercast.core import Deployment

    protocol = find_protocol("multi_paxos")
    with pytest.raises(LocalError, match="multi_paxos cannot replicate Shop, whose operations ask other"):
        protocol.deploy(Deployment(((0, 1, 2),), 1, service=SHOP.spec()), protocol.options())


def test_a_rehearsal_answers_what_an_operation_asks() -> None:
    deeds = list(rehearse("ordercast.services.shop:Shop", None, 1, 200, restoring=True))
    assert deeds == list(rehearse("ordercast.services.shop:Shop", None, 1, 200))
    bought = [deed.result for deed in deeds if deed.operation.startswith("buy('cup'")]
    assert bought[0] == "1" and len(bought) < PIECES
    assert not any("Failed" in deed.result for deed in deeds)


def test_generated_operations_fit() -> None:
    rng = Random(1)
    for number in range(100):
        for kinds in (SHOP, STOCK):
            name, arguments = kinds.service.generate(rng, number, number % 3 == 0, 8)  # type: ignore[attr-defined]
            kinds.find(name).pack(arguments, {})
