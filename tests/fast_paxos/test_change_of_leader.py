"""A crash at every step of a change of leader, in the logs of Multi-Paxos and of Fast Paxos."""

import pytest

from ordercast.components.consensus import ConsensusOptions
from tests.consensus.harness import LogWorld
from tests.consensus.test_safety import Oracle
from tests.fast_paxos.harness import FastWorld

OPTIONS = ConsensusOptions(window=8, log_limit=40, checkpoint=4, chunk_bytes=40)
STEPS = 60
"""More messages than arrive until a new leader has decided again."""


def load(world: LogWorld, count: int) -> None:
    """Calls that come to the replicas in different orders, or to some of them only."""
    for number in range(count):
        values = [b"%d.%d" % (number, place) for place in range(2)]
        if not isinstance(world, FastWorld):
            world.propose(values[0])
        else:
            for index in world.up():
                for value in values if index != 1 or number % 3 else values[::-1]:
                    if (number + index) % 5:
                        world.give(index, value)
        world.run_ms(0.07)


def make(kind: str, replicas: int, *, durable: bool) -> LogWorld:
    if kind == "fast":
        return FastWorld(replicas, options=OPTIONS, durable=durable)
    return LogWorld(replicas, options=OPTIONS, transfers=True, durable=durable)


def step(world: LogWorld, messages: int) -> None:
    """Go on until so many more messages have arrived, or for a while."""
    goal = len(world.arrived) + messages
    for _ in range(20_000):
        if len(world.arrived) >= goal:
            return
        world.run_ms(0.01)


def victim(world: LogWorld) -> int:
    """Who leads or wants to; otherwise the last that is up."""
    active = [i for i in world.up() if world.replica(i).role.value in ("candidate", "leader", "canvasser")]
    return (active or world.up())[-1]


def come_back(world: LogWorld, hosts: list[int]) -> None:
    for host in hosts:
        world.restart(host)
    for _ in range(100):
        world.run_ms(20)
        if isinstance(world, FastWorld):
            world.give_all(b"the last")
        else:
            world.propose(b"the last")
        if all(b"the last" in world.values(i) for i in range(len(world.envs))):
            return
    raise AssertionError("the log does not go on")


@pytest.mark.parametrize("replicas", [3, 5])
@pytest.mark.parametrize("kind", ["classic", "fast"])
@pytest.mark.parametrize("first", range(0, STEPS, 10))
def test_a_second_crash_at_any_step_loses_nothing(kind: str, replicas: int, first: int) -> None:
    for messages in range(first, first + 10):
        world = make(kind, replicas, durable=True)
        oracle = Oracle(world)
        load(world, 9)
        oracle.look()
        world.crash(0)
        world.run_ms(20)
        step(world, messages)
        oracle.look()
        second = victim(world)
        world.crash(second)
        world.run_ms(60)
        oracle.look()
        load(world, 3)
        oracle.look()
        come_back(world, [0, second])
        oracle.look()
        chosen = sorted(oracle.chosen.items())
        for index in range(replicas):
            mine = world.node(index).applied
            assert mine == chosen[: len(mine)], f"replica {index} lost something after {messages} messages"


@pytest.mark.parametrize("kind", ["classic", "fast"])
@pytest.mark.parametrize("first", range(0, STEPS, 10))
def test_memory_that_is_lost_at_any_step_comes_back(kind: str, first: int) -> None:
    """Five replicas, two of which lose their memory: the old leader, and another one at some step."""
    for messages in range(first, first + 10):
        world = make(kind, 5, durable=False)
        oracle = Oracle(world)
        load(world, 9)
        oracle.look()
        world.crash(0)
        world.restart(0, keep_state=False)
        world.run_ms(20)
        step(world, messages)
        oracle.look()
        second = next(i for i in (3, 4, 2) if not world.replica(i).is_leader)
        world.crash(second)
        world.restart(second, keep_state=False)
        load(world, 3)
        oracle.look()
        come_back(world, [])
        oracle.look()
        chosen = sorted(oracle.chosen.items())
        for index in range(5):
            mine = world.node(index).applied
            assert mine == chosen[: len(mine)], f"replica {index} lost something after {messages} messages"
