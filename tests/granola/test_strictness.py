"""Granola is serializable, and not strictly: clocks that are apart show it, and the oracle says so."""

from functools import partial

import msgspec
import pytest

from ordercast.core import Consistency, MessageId
from ordercast.judge import audit, judge
from ordercast.judge.finding import Violation
from ordercast.trace import Event, build_table, describe
from ordercast.transactions.granola.messages import Vote
from tests.granola.lab import GranolaWorld
from tests.logged_shards.lab import ALSO_THERE, FAR, HERE, THERE, transfer

SHARD_0, SHARD_1 = (0, 1, 2), (3, 4, 5)


def verdicts(world: GranolaWorld, consistency: Consistency) -> list[Violation]:
    """What both judges say of a run, if this had been promised."""
    run = describe(world.plan, run="skewed", source="simulator", seed=0, complete=True)
    promised = msgspec.structs.replace(run.guarantees, consistency=consistency)
    run = msgspec.structs.replace(run, guarantees=promised)
    events = [Event._make(row) for row in world.rows]
    found = judge(run, events)
    table = build_table("skewed", [tuple(event) for event in events])
    assert {one.property for one in audit(run, table).violations} == {one.property for one in found}
    return found


def play(ahead_ms: int) -> tuple[GranolaWorld, list[MessageId]]:
    """C goes to both shards, and shard 1 misses the vote of shard 0. Behind C, A runs in shard 0 and is
    answered; then B is called, in shard 1, where C is still pending."""
    world = GranolaWorld(ahead_ms=ahead_ms)
    world.lose(Vote, to=SHARD_1)
    c = world.call(transfer(*FAR, 1), 2)
    world.run_until(lambda: world.deliverers(c))
    a = world.call(transfer(HERE, HERE, 1), 0)
    world.run_until(lambda: world.answered(a))
    assert not world.deliverers(c) & set(SHARD_1)
    b = world.call(transfer(THERE, ALSO_THERE, 1), 1)
    world.run_ms(5)
    world.finish(a, b, c)
    return world, [a, b, c]


def test_skewed_clocks_break_strict_serializability_and_the_oracle_says_so() -> None:
    world, messages = play(ahead_ms=1000)
    assert verdicts(world, Consistency.SERIALIZABLE) == []
    (found,) = verdicts(world, Consistency.STRICT_SERIALIZABLE)
    assert found.property == "strict-serializable"
    assert set(found.messages) == set(messages)
    assert "was answered at" in found.detail and "this is the cycle" in found.detail


def test_it_is_for_the_clocks_alone() -> None:
    """With equal clocks the same run is strict."""
    world, _ = play(ahead_ms=0)
    assert verdicts(world, Consistency.STRICT_SERIALIZABLE) == []


@pytest.mark.parametrize("ahead_ms", [0, 1000])
def test_one_client_sees_its_own_order(ahead_ms: int) -> None:
    """What it calls later has a higher timestamp, whatever the clock of the other shard says."""
    world = GranolaWorld(ahead_ms=ahead_ms)
    places: list[int] = []
    for account in (HERE, THERE, HERE, THERE):
        message = world.call(transfer(account, account, 1))
        world.run_until(partial(world.answered, message))
        places.append(min(event.stamp_clock or 0 for event in world.deliveries(message)))
    assert places == sorted(places)
    world.finish()
