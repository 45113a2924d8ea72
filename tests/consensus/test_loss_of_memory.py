"""Random schedules in which replicas lose their memory, and lag behind a truncated log.

Whatever happens: a slot has one value for ever, a read that passes its barrier sees all that was decided
before it came, and when it is over, all replicas go on.
"""

from random import Random

import pytest

from ordercast.components.consensus import Barrier
from ordercast.components.consensus.roles import Role
from ordercast.sim.node_env import NodeEnv
from tests.consensus.harness import LogWorld
from tests.consensus.test_safety import Oracle, bad_weather, heal, misfortune, small

SEEDS = 200


class Readers:
    """Reads that wait for their barriers, and how much each must see."""

    def __init__(self, world: LogWorld, oracle: Oracle) -> None:
        self._world, self._oracle = world, oracle
        self._waiting: list[tuple[int, Barrier, int]] = []
        self.passed = 0

    def come(self, index: int) -> None:
        barrier = self._world.barrier(index)
        if barrier is not None:
            self._waiting.append((index, barrier, max(self._oracle.chosen, default=-1) + 1))

    def look(self) -> None:
        waiting, self._waiting = self._waiting, []
        for index, barrier, end in waiting:
            if index not in self._world.up():
                continue
            passes = self._world.replica(index).passes(barrier)
            if passes:
                self.passed += 1
                assert self._world.replica(index).committed >= end, "a read of the past"
            elif passes is not None:
                self._waiting.append((index, barrier, end))


class Losses:
    """Crashes that lose the memory: of fewer than half of the replicas at a time."""

    def __init__(self, world: LogWorld, durable: bool) -> None:
        self._world, self._durable = world, durable
        self.count = 0

    def without_memory(self) -> set[int]:
        """Those that are on their way back, or down without a memory to come back with.

        A replica may be back for a moment, and crash before any of what it has got back is durable.
        """
        return {env.me for env in self._world.envs if self._is_without(env)}

    def _is_without(self, env: NodeEnv) -> bool:
        if env.host.up and self._world.replica(env.me).role is Role.LOST:
            return True
        return "log.lost" in env.saved if self._durable else not env.host.up

    def strike(self, rng: Random) -> None:
        world = self._world
        host = rng.randrange(len(world.envs))
        if len(self.without_memory() | {host}) <= (len(world.envs) - 1) // 2:
            world.crash(host)
            if rng.random() < 0.3:
                world.run_ms(rng.uniform(0.1, 60))
            world.restart(host, keep_state=False)
            self.count += 1


def one_run(seed: int, *, durable: bool) -> tuple[LogWorld, Losses, Readers]:
    rng = Random(f"{seed}/memory")
    replicas = rng.choice((1, 2, 3, 3, 4, 5, 5))
    world = LogWorld(replicas, seed, small(rng), bad_weather(rng), transfers=True, durable=durable)
    oracle, losses = Oracle(world), Losses(world, durable)
    readers, accepted = Readers(world, oracle), 0
    for step in range(60):
        for _ in range(rng.randrange(4)):
            up = world.up()
            if up and world.act(rng.choice(up), b"%d.%d" % (step, accepted)):
                accepted += 1
        if len(world.envs) > 1 and rng.random() < 0.3:
            (misfortune if durable else mishap)(world, rng)
        if rng.random() < 0.15:
            losses.strike(rng)
        for index in world.up():
            readers.come(index)
        for _ in range(rng.randrange(1, 4)):
            world.run_ms(rng.uniform(0.1, 8))
            oracle.look()
            readers.look()
    heal(world)
    for _ in range(150):
        world.run_ms(20)
        oracle.look()
        readers.look()
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
    return world, losses, readers


def mishap(world: LogWorld, rng: Random) -> None:
    """A misfortune that costs no memory: cuts and pauses."""
    host = rng.randrange(len(world.envs))
    match rng.randrange(3):
        case 0:
            others = [h for h in range(len(world.envs)) if h != host]
            for other in rng.sample(others, rng.randint(1, len(others))):
                world.network.blocked |= {(host, other), (other, host)}
        case 1:
            world.network.blocked.clear()
        case _:
            world.pause(host, rng.randrange(60_000_000))


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_nothing_decided_is_lost_with_a_memory(first: int, durable: bool) -> None:
    runs = [one_run(seed, durable=durable) for seed in range(first, first + 25)]
    assert sum(losses.count for _, losses, _ in runs) > 25
    assert sum(readers.passed for _, _, readers in runs) > 250
    assert sum(world.node(i).restored for world, _, _ in runs for i in world.up()) > 10
