"""The search against the definition, on histories by hand and on hundreds of random ones."""

from collections import Counter
from collections.abc import Callable
from random import Random

import msgspec
import pytest

from ordercast.judge.histories import History, Model, Operation, Value, judge_history, search
from tests.deep import deep_after
from tests.histories.made import (
    BROKEN,
    REGISTER,
    TEXTS,
    Clients,
    Made,
    explained_by,
    has_order,
)

MODELS = (REGISTER, TEXTS)


def write(client: int, value: Value, invoked: int, answered: int | None) -> Operation:
    return Operation(client, "write", invoked, answered, (value,))


def read(client: int, value: Value, invoked: int, answered: int) -> Operation:
    return Operation(client, "read", invoked, answered, (), value)


def cas(client: int, old: Value, new: Value, swaps: bool, invoked: int, answered: int | None) -> Operation:
    return Operation(client, "cas", invoked, answered, (old, new), swaps)


HISTORIES: dict[str, tuple[bool, list[Operation]]] = {
    "nothing happened": (True, []),
    "a read before any write": (True, [read(0, None, 0, 1)]),
    "a read of what nobody wrote": (False, [read(0, 7, 0, 1)]),
    "a read of an overwritten value": (
        False,
        [write(0, 1, 0, 1), write(0, 2, 2, 3), read(1, 1, 4, 5)],
    ),
    "a read that overlaps with a write, before it": (True, [write(0, 1, 0, 9), read(1, None, 2, 3)]),
    "a read that overlaps with a write, after it": (True, [write(0, 1, 0, 9), read(1, 1, 2, 3)]),
    "a write that is seen, then unseen": (
        False,
        [write(0, 1, 0, 9), read(1, 1, 2, 3), read(2, None, 4, 5)],
    ),
    "two readers that see two writes in different orders": (
        False,
        [
            write(0, 1, 0, 9),
            write(1, 2, 0, 9),
            read(2, 1, 1, 2),
            read(2, 2, 3, 4),
            read(3, 2, 1, 2),
            read(3, 1, 3, 4),
        ],
    ),
    "an answer and an invocation at the same time overlap": (True, [write(0, 1, 0, 5), read(1, None, 5, 6)]),
    "an unknown write takes effect much later": (
        True,
        [write(0, 1, 0, None), read(1, None, 2, 3), read(1, 1, 9, 10)],
    ),
    "an unknown write never takes effect": (True, [write(0, 1, 0, None), read(1, None, 2, 3)]),
    "an unknown write takes effect once only": (
        False,
        [write(0, 1, 0, None), read(1, 1, 1, 2), write(2, 2, 3, 4), read(1, 1, 5, 6)],
    ),
    "two unknown writes of one value take effect twice": (
        True,
        [
            write(0, 1, 0, None),
            write(3, 1, 0, None),
            read(1, 1, 1, 2),
            write(2, 2, 3, 4),
            read(1, 1, 5, 6),
        ],
    ),
    "an unknown write has no effect before it is invoked": (
        False,
        [read(1, 1, 0, 1), write(0, 1, 2, None)],
    ),
    "two swaps of one value cannot both happen": (
        False,
        [write(0, 1, 0, 1), cas(1, 1, 2, True, 2, 5), cas(2, 1, 3, True, 2, 5)],
    ),
    "a swap that did not happen saw another value": (
        False,
        [write(0, 1, 0, 1), cas(1, 1, 2, False, 2, 3)],
    ),
    "an unknown swap explains why another did not happen": (
        True,
        [write(0, 1, 0, 1), cas(1, 1, 2, True, 2, None), cas(2, 1, 3, False, 4, 5)],
    ),
    "of two unknown operations, the second must be used first": (
        True,
        [
            write(0, 0, 0, 1),
            write(1, 1, 2, None),
            cas(2, 0, 1, True, 3, None),
            read(3, 1, 4, 5),
            write(0, 2, 6, 7),
            read(3, 1, 8, 9),
        ],
    ),
    "a write that looks like a read must not be placed too early": (
        True,
        [
            write(0, 1, 0, 1),
            write(1, 1, 2, 9),
            write(2, 2, 3, 4),
            read(3, 2, 5, 6),
            read(3, 1, 7, 8),
        ],
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_by_hand_gets_its_verdict(name: str) -> None:
    linearizable, operations = HISTORIES[name]
    found = search(REGISTER, sorted(operations, key=lambda operation: operation.invoked))
    assert found.linearizable is linearizable is has_order(REGISTER, operations)
    assert (found.stuck is None) is linearizable
    assert not linearizable or explained_by(REGISTER, found.order, operations)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("first", deep_after(1, range(0, 2000, 200)))
def test_what_a_correct_object_answers_has_an_order(model: Model, first: int) -> None:
    for seed in range(first, first + 200):
        rng = Random(seed)
        operations = Clients(Made(model, rng), rng.randint(1, 60), rng.randint(1, 8)).run()
        found = search(model, operations)
        assert found.linearizable, f"seed {seed}"
        assert explained_by(model, found.order, operations), f"seed {seed}"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("make", (Made, *BROKEN))
@pytest.mark.parametrize("first", deep_after(1, range(0, 4000, 200)))
def test_the_search_agrees_with_the_definition(
    make: Callable[[Model, Random], Made], model: Model, first: int
) -> None:
    for seed in range(first, first + 200):
        rng = Random(seed)
        clients = Clients(make(model, rng), rng.randint(1, 7), rng.randint(2, 4), rng.random() / 2)
        operations = clients.run()
        found = search(model, operations)
        assert found.linearizable == has_order(model, operations), f"seed {seed}"
        assert not found.linearizable or explained_by(model, found.order, operations), f"seed {seed}"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
@pytest.mark.parametrize("make", BROKEN)
def test_a_broken_object_is_caught(make: Callable[[Model, Random], Made], model: Model) -> None:
    histories = (Clients(make(model, Random(seed)), 100, 3, unknown=0).run() for seed in range(40))
    verdicts = Counter(search(model, operations).linearizable for operations in histories)
    assert verdicts[False] >= 30


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_counterexample_is_the_shortest(model: Model) -> None:
    """The answers up to the one that it names have no order. Those before it have the order that it gives."""
    stuck_count = 0
    for seed in range(600):
        broken = BROKEN[seed % len(BROKEN)](model, Random(seed))
        operations = Clients(broken, 8, unknown=0.05, ties=False).run()
        stuck = search(model, operations).stuck
        if stuck is not None:
            stuck_count += 1
            end = stuck.operation.answered
            assert end is not None
            assert not has_order(model, operations, end)
            earlier = [one for one in operations if one.answered is not None and one.answered < end]
            assert explained_by(model, stuck.order, [*earlier, *stuck.under_way], end - 1)
    assert stuck_count > 50


def test_keys_are_judged_apart_and_the_guilty_one_is_named() -> None:
    operations = [
        Operation(0, "put", 0, 1, ("x",), key="a"),
        Operation(0, "put", 2, 3, ("y",), key="b"),
        Operation(1, "get", 4, 5, (), "x", key="a"),
        Operation(1, "get", 6, 7, (), "x", key="b"),
    ]
    judgement = judge_history(History(TEXTS, tuple(operations)))
    assert judgement.linearizable is False
    assert judgement.counterexample is not None
    assert judgement.counterexample.key == "b"
    assert judgement.counterexample.stuck.operation is operations[3]
    assert judgement.counterexample.stuck.states == ("y",)


def test_many_unknown_operations_do_not_multiply_the_work() -> None:
    """Sets of unknown operations would be two to the power of 200; sets of their kinds are few."""
    operations = [write(client, client % 5, 0, None) for client in range(200)]
    operations += [read(1000, number % 5, 2 * number + 1, 2 * number + 2) for number in range(100)]
    operations.append(read(1000, 7, 300, 301))
    found = search(REGISTER, operations)
    assert found.linearizable is False
    assert found.placements < 5000


def test_unknown_operations_that_all_differ_do_not_multiply_the_work() -> None:
    """Each value can be reached by one write alone, so that no larger set of writes is tried."""
    operations = [write(client, client, 0, None) for client in range(60)]
    found = search(REGISTER, [*operations, read(99, 77, 1, 2)])
    assert found.linearizable is False
    assert found.placements == 61


def test_reads_under_way_do_not_multiply_the_work() -> None:
    operations = [write(0, 1, 0, 1), *(read(client, 1, 2, 100) for client in range(1, 60)), read(0, 2, 3, 99)]
    assert search(REGISTER, operations).placements < 10


def hard_history() -> list[Operation]:
    """Appends that nobody reads in between: any order of them may be the right one."""
    appends = [Operation(client, "append", 0, 10, (chr(97 + client),)) for client in range(9)]
    return [*appends, Operation(0, "get", 11, 12, (), "no such text")]


def test_a_search_ends_at_its_limit_without_a_verdict() -> None:
    found = search(TEXTS, hard_history(), placements_max=1000)
    assert found.linearizable is None
    assert found.placements == 1001


def test_a_search_ends_when_its_watch_says_so() -> None:
    told: list[int] = []

    def watch(placements: int) -> bool:
        told.append(placements)
        return len(told) < 3

    found = search(TEXTS, hard_history(), watch)
    assert found.linearizable is None
    assert told == [1024, 2048, 3072]


def test_a_key_without_verdict_does_not_hide_one_without_order() -> None:
    bad = Operation(1, "get", 20, 21, (), "never put", key="b")
    hard = [msgspec.structs.replace(one, key="a") for one in hard_history()]
    judged = judge_history(History(TEXTS, (*hard, bad)), placements_max=100)
    assert judged.linearizable is False
    good = judge_history(History(TEXTS, tuple(hard)), placements_max=100)
    assert (good.linearizable, good.undecided) == (None, ("a",))
