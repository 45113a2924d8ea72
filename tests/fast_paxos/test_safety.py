"""Random schedules: values come to replicas in different orders, and replicas fail and lose their memory.

Whatever happens: a slot has one value for ever; a read that passes its barrier sees all that was decided
before it came; and when it is over, all replicas go on.
"""

from random import Random

import pytest

from ordercast.replication.fast_paxos.fast_leadership import FastLeadership
from tests.consensus.test_loss_of_memory import Losses, Readers, mishap
from tests.consensus.test_safety import Oracle, bad_weather, heal, misfortune, small
from tests.fast_paxos.harness import FastWorld

SEEDS = 200


class Clients:
    """Values on their way: each comes to each replica once, in any order, or is lost."""

    def __init__(self, world: FastWorld, rng: Random) -> None:
        self._world, self._rng = world, rng
        self._loss = rng.choice((0.0, 0.0, 0.05, 0.3))
        self._mixed = rng.choice((0.0, 0.0, 0.2, 0.8))
        self._queues: list[list[bytes]] = [[] for _ in world.envs]
        self._count = 0

    def call(self) -> None:
        self._count += 1
        value = b"call %d" % self._count
        for queue in self._queues:
            if self._rng.random() >= self._loss:
                early = len(queue) and self._rng.random() < self._mixed
                queue.insert(self._rng.randrange(len(queue)) if early else len(queue), value)

    def arrive(self) -> None:
        everything = self._rng.random() < 0.8
        for index, queue in enumerate(self._queues):
            for _ in range(len(queue) if everything else self._rng.randint(0, len(queue))):
                self._world.give(index, queue.pop(0))


def one_run(seed: int, *, durable: bool) -> tuple[FastWorld, Losses, Readers]:
    rng = Random(f"{seed}/fast")
    replicas = rng.choice((1, 2, 3, 3, 4, 5, 5, 7))
    world = FastWorld(replicas, seed, small(rng), bad_weather(rng), durable=durable)
    oracle, losses, clients = Oracle(world), Losses(world, durable), Clients(world, rng)
    readers = Readers(world, oracle)
    rough = rng.choice((0.05, 0.3))
    for _ in range(80):
        for _ in range(rng.randrange(4)):
            clients.call()
        clients.arrive()
        if len(world.envs) > 1 and rng.random() < rough:
            (misfortune if durable else mishap)(world, rng)
        if rng.random() < rough / 2:
            losses.strike(rng)
        for index in world.up():
            readers.come(index)
        for _ in range(rng.randrange(1, 4)):
            world.run_ms(rng.uniform(0.05, 6))
            oracle.look()
            readers.look()
    heal(world)
    for _ in range(150):
        world.run_ms(20)
        oracle.look()
        readers.look()
        world.give_all(b"the last")
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


@pytest.fixture
def fast_slots(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Slots that were chosen by fast votes, with no majority of classic ones."""
    found: list[int] = []
    is_chosen = FastLeadership._is_chosen

    def noted(self: FastLeadership, flight: object) -> bool:
        chosen = is_chosen(self, flight)  # type: ignore[arg-type]
        if chosen and flight.accepted.bit_count() < self._log.group.majority:  # type: ignore[attr-defined]
            found.append(self._log.committed)
        return chosen

    monkeypatch.setattr(FastLeadership, "_is_chosen", noted)
    return found


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_one_value_a_slot_whatever_happens(first: int, durable: bool, fast_slots: list[int]) -> None:
    runs = [one_run(seed, durable=durable) for seed in range(first, first + 25)]
    assert sum(losses.count for _, losses, _ in runs) > 25
    assert sum(readers.passed for _, _, readers in runs) > 250
    assert len(fast_slots) > 150
