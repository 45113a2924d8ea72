"""Calls share slots of the log when many are on their way, and only then."""

from ordercast.components.logged_service.messages import BATCH_BITS
from tests.logged_service.lab import ServiceWorld


def slots(world: ServiceWorld) -> list[int]:
    clocks = [event.stamp_clock for event in world.answers().values()]
    return sorted(clock >> BATCH_BITS for clock in clocks if clock is not None)


def test_a_call_takes_a_slot_at_once_while_few_are_in_flight() -> None:
    world = ServiceWorld("multi_paxos", options={"batch": 16, "in_flight": 64})
    for _ in range(10):
        world.add()
        world.run_ms(0.01)
    world.run_ms(5)
    assert slots(world) == list(range(10))


def test_calls_that_wait_share_slots() -> None:
    world = ServiceWorld("multi_paxos", options={"batch": 4, "in_flight": 1})
    for _ in range(30):
        world.add()
        world.run_ms(0.01)
    world.run_ms(20)
    used = slots(world)
    assert len(used) == 30 and len(set(used)) < 15
    assert max(used.count(slot) for slot in used) == 4
    assert world.executed(0) == world.executed(1)
    world.states_agree()


def test_a_full_queue_drops_calls_and_clients_call_again() -> None:
    world = ServiceWorld("multi_paxos", clients=3, options={"batch": 1, "in_flight": 1, "queue": 1})
    calls = [world.add(number % 3) for number in range(12)]
    world.run_ms(2000)
    assert sorted(world.answers()) == sorted(calls)
