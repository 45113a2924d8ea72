"""Random schedules of loss, duplication, reordering, partitions, crashes and restarts.

Whatever happens: a slot has one value for ever, on all replicas and over restarts; and when it is
over, a majority goes on.
"""

from random import Random

import pytest

from ordercast.components.consensus import ConsensusOptions
from ordercast.scenario.conditions import Conditions
from tests.consensus.harness import LogWorld

SEEDS = 300


class Oracle:
    """Every slot that any replica ever applied, and the values that a replica may forget."""

    def __init__(self, world: LogWorld) -> None:
        self.world = world
        self.chosen: dict[int, bytes] = {}

    def look(self) -> None:
        for index in self.world.up():
            for slot, value in self.world.node(index).applied:
                assert self.chosen.setdefault(slot, value) == value, f"slot {slot}"


def misfortune(world: LogWorld, rng: Random) -> None:
    """One random event, drawn so that often no majority is up or connected."""
    host = rng.randrange(len(world.envs))
    match rng.randrange(6):
        case 0:
            world.crash(host)
        case 1 | 2:
            world.restart(host)
        case 3:
            others = [h for h in range(len(world.envs)) if h != host]
            for other in rng.sample(others, rng.randint(1, len(others))):
                world.network.blocked.add((host, other))
                if rng.random() < 0.7:
                    world.network.blocked.add((other, host))
        case 4:
            world.network.blocked.clear()
        case _:
            world.pause(host, rng.randrange(60_000_000))


def heal(world: LogWorld) -> None:
    world.network.blocked.clear()
    world.network.set_conditions(Conditions())
    for host in range(len(world.envs)):
        world.restart(host)


def small(rng: Random) -> ConsensusOptions:
    """Limits small enough to be reached."""
    return ConsensusOptions(
        window=rng.choice((1, 4, 32)),
        log_limit=rng.choice((64, 1000)),
        checkpoint=rng.choice((1, 7, 50)),
        chunk_bytes=rng.choice((1, 100, 10_000)),
        burst=rng.choice((1, 64)),
    )


def bad_weather(rng: Random) -> Conditions:
    return Conditions(
        loss=rng.choice((0.0, 0.05, 0.3)),
        duplication=rng.choice((0.0, 0.2)),
        reordering=rng.choice((0.0, 0.3)),
        reorder_us=rng.choice((300.0, 20_000.0)),
    )


def one_run(seed: int) -> LogWorld:
    rng = Random(f"{seed}/test")
    world = LogWorld(rng.choice((1, 2, 3, 3, 3, 4, 5)), seed, small(rng), bad_weather(rng))
    oracle, accepted = Oracle(world), 0
    for step in range(60):
        for _ in range(rng.randrange(4)):
            up = world.up()
            # Anybody who believes to lead may propose, an outdated leader too.
            if up and world.act(rng.choice(up), b"%d.%d" % (step, accepted)):
                accepted += 1
        if len(world.envs) > 1 and rng.random() < 0.3:
            misfortune(world, rng)
        world.run_ms(rng.uniform(0.1, 15))
        oracle.look()
    heal(world)
    for _ in range(100):
        world.run_ms(20)
        oracle.look()
        if world.propose(b"the last"):
            world.run_ms(40)
        if all(b"the last" in world.values(i) for i in world.up()):
            break
    oracle.look()
    for index in range(len(world.envs)):
        assert b"the last" in world.values(index), f"replica {index} does not go on"
        chosen = sorted(oracle.chosen.items())
        mine = world.node(index).applied
        assert mine == chosen[: len(mine)], f"replica {index} lost something"
    return world


@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_one_value_a_slot_and_progress_after_healing(first: int) -> None:
    for seed in range(first, first + 25):
        one_run(seed)


def test_a_seed_decides_everything() -> None:
    one, two = one_run(7), one_run(7)
    assert [env.saved for env in one.envs] == [env.saved for env in two.envs]
    assert one.now == two.now
