"""`why` names the shard whose missing majority blocks a call."""

from ordercast.core.bundle import bundle_span
from tests.granola.lab import GranolaWorld, prepared, until_answered
from tests.logged_shards.lab import ALSO_HERE, FAR, HERE, transfer


def test_the_shard_without_a_majority_is_named_everywhere() -> None:
    """A call to both shards waits for the vote of shard 1, and a call to shard 0 alone is behind it."""
    world = GranolaWorld()
    world.crash(4)
    world.crash(5)
    message = world.call(transfer(*FAR, 5), 0)
    world.run_ms(5)
    world.call(transfer(HERE, ALSO_HERE, 5), 1)
    world.run_ms(100)
    told = world.explain()
    for client in (0, 1):
        (wait,) = told[world.CLIENT + client].waits
        assert wait.blocker == "a majority of shard 1"
        assert wait.on == (3, 4, 5)
    first, second = sorted(told[0].waits, key=lambda wait: wait.subject)[:2]
    assert first.blocker == "a vote of shard 1" and first.on == (3, 4, 5)
    assert first.payload is not None and bundle_span(first.payload) == (message, 1), "`why` finds it"
    assert second.blocker == "transactions with lower timestamps" and second.on == (3, 4, 5)


def test_a_call_that_waits_for_locks_says_so() -> None:
    world = GranolaWorld(options={"conflicts_max": 1})
    prepared(world)
    world.call(transfer(*FAR, 5), 1)
    world.run_ms(60)
    told = world.explain()
    (wait,) = told[world.CLIENT + 1].waits
    assert wait.blocker == "locks, which others have"
    assert told[0].state["mode"] == "locking"


def test_a_client_that_has_forgotten_names_the_shard_that_it_asks() -> None:
    """After a restart it calls nobody before all shards have told their timestamps."""
    world = GranolaWorld()
    until_answered(world, world.call(transfer(HERE, ALSO_HERE, 5)))
    world.crash(4)
    world.crash(5)
    world.crash(world.CLIENT)
    world.restart(world.CLIENT)
    message = world.call(transfer(HERE, ALSO_HERE, 5))
    world.run_ms(100)
    (wait,) = world.explain()[world.CLIENT].waits
    assert wait.blocker == "a majority of shard 1"
    world.finish(message)
