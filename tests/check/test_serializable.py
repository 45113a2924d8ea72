"""Transactions over shards: two judges of the places, the judge of the values, and a model of shards."""

from collections.abc import Callable, Sequence

import msgspec
import pytest

from ordercast.core import Consistency, Guarantees, Order
from ordercast.judge import audit, judge, locks_left
from ordercast.judge.histories.transactions import judge_transactions
from ordercast.trace import ABORTED, Event, Kind, RunDescription, build_table
from tests.check.shards import CLIENTS, GROUPS, Done, description, history, locking, promised, stamped, trace

ACROSS, GROUP = promised(Order.ACROSS), promised(Order.GROUP)


def told(run: RunDescription, events: Sequence[Event]) -> set[str]:
    """The properties that both judges find broken."""
    found = {violation.property for violation in judge(run, events)}
    table = build_table("test", [tuple(event) for event in events])
    assert {violation.property for violation in audit(run, table).violations} == found
    return found


def verdicts(done: Sequence[Done], guarantees: Guarantees) -> set[str]:
    """What both judges of the trace say about a run of the model."""
    return told(description(guarantees), trace(done, locks=guarantees.order is Order.GROUP))


def serializable(guarantees: Guarantees) -> Guarantees:
    return msgspec.structs.replace(guarantees, consistency=Consistency.SERIALIZABLE)


MODELS: dict[str, tuple[Callable[[int], list[Done]], Guarantees, bool]] = {
    "stamped": (stamped, ACROSS, False),
    "clocks apart": (lambda seed: stamped(seed, skew=90), ACROSS, True),
    "locking": (locking, GROUP, False),
    "locks given up early": (lambda seed: locking(seed, early=True), GROUP, True),
}


@pytest.mark.parametrize("model", MODELS)
def test_places_and_values_agree(model: str) -> None:
    """Each shard has one list, so the values show the whole order of each shard."""
    make, guarantees, broken = MODELS[model]
    found = [0, 0]
    for seed in range(125):
        done = make(seed)
        by_values = judge_transactions(history(done))
        for kind, wanted, ok in (
            (0, guarantees, by_values.strict_serializable),
            (1, serializable(guarantees), by_values.serializable),
        ):
            name = wanted.consistency.value
            assert verdicts(done, wanted) == (set() if ok else {name}), (seed, name)
            found[kind] += not ok
    assert (found[0] > 10) == broken
    assert (found[1] > 10) == (model == "locks given up early"), (
        "clocks alone do not break the order of clients"
    )


@pytest.mark.parametrize("make", [stamped, locking])
def test_transactions_on_other_keys_raise_no_false_alarm(make: Callable[..., list[Done]]) -> None:
    for seed in range(60):
        done = make(seed, lists=4, count=16)
        assert judge_transactions(history(done)).strict_serializable
        assert verdicts(done, ACROSS if make is stamped else GROUP) == set()


def test_locks_that_overlap_are_needed_for_this_test() -> None:
    """Without their locks, the same runs have no order of places: so the spans matter."""
    rows = [trace(locking(seed, lists=4, count=16), locks=True) for seed in range(60)]
    kinds = (Kind.LOCKED, Kind.RELEASED)
    bare = [[event for event in events if event.kind not in kinds] for events in rows]
    assert sum(bool(told(description(GROUP), events)) for events in bare) > 10


def find(done: Sequence[Done], several: bool = True) -> Done:
    return next(one for one in done if (len(one.lists) > 1) == several)


def test_the_cycle_is_named() -> None:
    done = next(d for d in map(MODELS["clocks apart"][0], range(99)) if verdicts(d, ACROSS))
    found, *_ = judge(description(ACROSS), trace(done))
    assert found.property == "strict-serializable" and len(found.messages) > 1
    assert "was answered at" in found.detail and "in shard" in found.detail
    assert "this is the cycle" in found.detail


def test_a_shard_that_delivers_nothing_of_a_transaction() -> None:
    for make, guarantees in ((stamped, ACROSS), (locking, GROUP)):
        done = make(3)
        one = find(done)
        group = tuple(one.lists)[-1]
        events = [
            event
            for event in trace(done, locks=make is locking)
            if event.message != one.message or event.node not in GROUPS[group]
        ]
        assert {"all-or-nothing", "agreement"} <= told(description(guarantees), events)
        incomplete = description(guarantees, complete=False)
        assert not told(incomplete, events) & {"all-or-nothing", "agreement"}


def changed(events: list[Event], one: Done, kind: Kind, **fields: object) -> list[Event]:
    """The rows of one kind about a transaction, in its last shard, changed; without fields, left out."""
    members = GROUPS[tuple(one.lists)[-1]]
    hit = [event.kind is kind and event.message == one.message and event.node in members for event in events]
    pairs = list(zip(events, hit, strict=True))
    if not fields:
        return [event for event, is_hit in pairs if not is_hit]
    return [event._replace(**fields) if is_hit else event for event, is_hit in pairs]  # type: ignore[arg-type]


def test_a_transaction_that_one_shard_aborts() -> None:
    done = locking(3)
    events = changed(trace(done, locks=True), find(done), Kind.RELEASED, label=ABORTED)
    assert "all-or-nothing" in told(description(GROUP), events)


def test_locks_that_are_left() -> None:
    done = locking(3)
    one = find(done, several=False)
    events = changed(trace(done, locks=True), one, Kind.RELEASED)
    assert "locks" in told(description(GROUP), events)
    assert locks_left(events) == 1 and locks_left(trace(done, locks=True)) == 0
    assert "locks" not in told(description(GROUP, complete=False), events)
    node = GROUPS[next(iter(one.lists))][0]
    last = events[-1].time_ns + 1
    down = [*events, Event(last, last, node, Kind.CRASH), Event(last, last, node + 1, Kind.CRASH)]
    assert "locks" not in told(description(GROUP), down) and locks_left(down) == 0


def test_an_answer_names_a_place_of_its_shard() -> None:
    done = locking(4)
    events = trace(done, locks=True)
    for row, event in enumerate(events):
        if event.kind is Kind.REPLY and event.message == find(done).message:
            events[row] = event._replace(stamp_clock=(event.stamp_clock or 0) + 1)
    assert told(description(GROUP), events) == {"strict-serializable"}


def test_an_answer_from_a_shard_that_was_not_called() -> None:
    done = stamped(4)
    one = next(one for one in done if len(one.lists) < len(GROUPS))
    other = next(group for group in GROUPS if group not in one.lists)
    events = [
        event._replace(groups=(other,))
        if event.kind is Kind.REPLY and event.message == one.message
        else event
        for event in trace(done)
    ]
    assert told(description(ACROSS), events) == {"strict-serializable"}


def test_hosts_without_a_common_clock_are_not_compared() -> None:
    """Clients on machines of their own: only their own order counts."""
    runs = [stamped(seed, skew=90) for seed in range(60)]
    broken = [run for run in runs if verdicts(run, ACROSS) and not verdicts(run, serializable(ACROSS))]
    live = msgspec.structs.replace(description(ACROSS), source="live")
    shared = msgspec.structs.replace(live, one_clock=(tuple(CLIENTS),))
    assert len(broken) > 3 and all(told(live, trace(done)) == set() for done in broken)
    assert all(told(shared, trace(done)) == {"strict-serializable"} for done in broken)
