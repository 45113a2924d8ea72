"""Services with a log, one behaviour a test, in Multi-Paxos and in Fast Paxos."""

import pytest

from ordercast.catalogue import find_protocol
from ordercast.components.execution.messages import Answer, CallMessage
from ordercast.components.logged_service.messages import (
    BATCH_MAX,
    Forward,
    Redirect,
    pack_batch,
    place_before,
    place_in,
    slot_after,
    unpack_batch,
)
from ordercast.core import Deployment, Fault, LocalError, Message, RemoteError
from ordercast.scenario.conditions import Conditions
from ordercast.services import find_service
from tests.logged_service.lab import PROTOCOLS, ServiceWorld, result

SHORT_LOG = {"consensus": {"log_limit": 20, "checkpoint": 4, "chunk_bytes": 50, "window": 8}}
pytestmark = pytest.mark.parametrize("protocol", PROTOCOLS)


def count(world: ServiceWorld, operations: int) -> None:
    for _ in range(operations):
        world.add()
        world.run_ms(1)


def test_operations_are_executed_and_answered_in_order(protocol: str) -> None:
    world = ServiceWorld(protocol)
    added = [world.add(number % 2) for number in range(6)]
    world.run_ms(10)
    answers = world.answers()
    assert sorted(answers) == sorted(added)
    assert {answers[m].digest for m in added} == {result(number) for number in range(1, 7)}
    assert world.executed(0) == world.executed(1) == world.executed(2)
    world.states_agree()


def test_a_read_sees_what_was_answered_before(protocol: str) -> None:
    world = ServiceWorld(protocol)
    world.add()
    world.run_ms(5)
    read = world.ask(1)
    world.run_ms(5)
    assert world.answers()[read].digest == result(1)
    assert not world.replica(0).log.in_flight and read not in world.executed(0), "it is not in the log"


def test_a_read_before_all_operations_has_no_place(protocol: str) -> None:
    world = ServiceWorld(protocol)
    read = world.ask()
    world.run_ms(5)
    assert (world.answers()[read].digest, world.answers()[read].stamp_clock) == (result(0), None)


def test_an_operation_survives_the_leader_and_its_duplicate_is_answered_alike(protocol: str) -> None:
    world = ServiceWorld(protocol)
    world.block((0, 3), (0, 4))  # the leader executes it, but its answer is lost
    added = world.add()
    world.run_ms(4)
    assert added in world.executed(0) and not world.answers()
    world.crash(0)
    world.run_ms(300)
    assert world.answers()[added].digest == result(1)
    assert all(world.executed(replica) == [added] for replica in range(3)), "it was executed once"
    count(world, 3)
    world.run_ms(20)
    assert [answer.digest for answer in world.answers().values()] == [result(n) for n in (1, 2, 3, 4)]


def test_clients_find_the_new_leader(protocol: str) -> None:
    world = ServiceWorld(protocol)
    count(world, 2)
    world.crash(0)
    world.run_ms(200)
    world.add()
    world.ask()
    world.run_ms(200)
    leader = world.leader()
    assert leader in (1, 2)
    assert world.client()._leaders == {0: leader}
    read = world.ask()
    world.run_ms(2)
    assert world.answers()[read].digest == result(3), "at the first attempt"


def test_a_client_that_does_not_reach_the_leader_is_served_by_others(protocol: str) -> None:
    world = ServiceWorld(protocol)
    world.block((3, 0), (0, 3))
    added, read = world.add(), world.ask()
    world.run_ms(100)
    answers = world.answers()
    assert answers[added].digest == result(1)
    assert answers[read].peer in (1, 2)


def test_a_deposed_leader_answers_no_reads(protocol: str) -> None:
    world = ServiceWorld(protocol, options={"calls": {"retry_ns": 10_000_000_000}})
    count(world, 1)
    # Replica 0 and the first client are on one side, all others on the other one.
    sides = ((0, 3), (1, 2, 4))
    world.block(*((a, b) for a in sides[0] for b in sides[1]), *((b, a) for a in sides[0] for b in sides[1]))
    world.run_ms(33)
    leads = world.replica(0).log.is_leader
    read = world.ask(0)
    for _ in range(100):
        world.run_ms(2)
    assert leads and read not in world.answers()


def test_a_replica_that_comes_back_late_takes_over_a_state_with_its_client_table(protocol: str) -> None:
    world = ServiceWorld(protocol, options=SHORT_LOG)
    world.crash(2)
    count(world, 60)
    world.restart(2)
    world.run_ms(100)
    assert world.restored(2) == 1
    count(world, 10)
    world.run_ms(50)
    assert len(world.executed(0)) == 70
    assert world.executed(2) == world.executed(0)[-len(world.executed(2)) :]
    assert len(world.executed(2)) < 40
    world.states_agree()


def test_a_duplicate_after_a_snapshot_is_not_executed_again(protocol: str) -> None:
    world = ServiceWorld(protocol, options=SHORT_LOG | {"calls": {"retry_ns": 100_000_000}})
    world.block(*((replica, 4) for replica in range(3)))  # the second client hears no answers
    doubtful = world.add(1)
    world.run_ms(5)
    world.crash(2)
    count(world, 60)
    world.restart(2)
    world.run_ms(60)
    assert world.restored(2) == 1
    world.isolate(0)  # the leader is gone, and replica 2 may have to answer
    world.crash(1)
    world.restart(1)
    world.block(*((0, other) for other in range(1, 5)), *((other, 0) for other in range(1, 5)))
    world.run_ms(1500)
    assert world.answers()[doubtful].digest == result(1)
    world.states_agree()
    assert sum(m == doubtful for replica in range(3) for m in world.executed(replica)) <= 3


@pytest.mark.parametrize("durable", [True, False])
def test_a_replica_that_lost_its_memory_delivers_nothing_again(protocol: str, durable: bool) -> None:
    world = ServiceWorld(protocol, options={**SHORT_LOG, "durable": durable})
    count(world, 15)
    before = world.executed(1)
    world.crash(1)
    world.restart(1, keep_state=False)
    world.run_ms(50)
    assert world.executed(1) == before
    assert world.restored(1) >= 1
    count(world, 5)
    world.run_ms(20)
    assert world.executed(1) == world.executed(0)
    world.states_agree()


def test_a_restart_in_the_middle_of_a_return_owes_the_checkpoint_still(protocol: str) -> None:
    world = ServiceWorld(protocol)
    count(world, 15)
    world.crash(1)
    world.restart(1, keep_state=False)
    while not world.replica(1).log.returned_at:
        world.run_ms(0.01)
    world.crash(1)
    world.restart(1)
    world.run_ms(100)
    assert world.restored(1) == 1
    assert len(world.executed(1)) == 15
    count(world, 2)
    world.run_ms(20)
    assert world.executed(1) == world.executed(0)
    world.states_agree()


def test_a_durable_replica_delivers_nothing_again_after_a_restart(protocol: str) -> None:
    world = ServiceWorld(protocol, options=SHORT_LOG)
    for _ in range(4):
        count(world, 5)
        world.crash(1)
        count(world, 2)
        world.restart(1)
        world.run_ms(60)
    assert world.executed(1) == world.executed(0)
    assert len(world.executed(0)) == 28 and not world.restored(1)


def test_every_operation_is_answered_on_a_bad_network(protocol: str) -> None:
    weather = Conditions(loss=0.2, duplication=0.2, reordering=0.3, reorder_us=2000.0)
    world = ServiceWorld(protocol, clients=3, conditions=weather)
    calls = [(world.ask if n % 4 == 3 else world.add)(n % 3) for n in range(60)]
    world.run_ms(3000)
    assert sorted(world.answers()) == sorted(calls)
    assert len(set(world.executed(0))) == len(world.executed(0)) == 45
    world.states_agree()


def test_what_is_promised_depends_on_memory_and_service(protocol: str) -> None:
    found = find_protocol(protocol)
    plain = Deployment.disjoint(1, 3, 1)
    served = Deployment(plain.groups, 1, service=find_service("counter"))

    def tolerated(deployment: Deployment, **options: object) -> set[Fault]:
        plan = found.deploy(deployment, found.options(**options))
        return {Fault.RESTART, Fault.AMNESIA} & set(plan.guarantees.tolerates)

    assert tolerated(plain) == {Fault.RESTART}
    assert tolerated(served) == {Fault.RESTART, Fault.AMNESIA}
    assert tolerated(served, durable=False) == {Fault.AMNESIA}
    with pytest.raises(LocalError, match=f"{protocol} takes"):
        found.deploy(plain, find_protocol("unreplicated").options())


@pytest.mark.parametrize("message", [Redirect(0), Answer(0, b"", None)])
def test_a_replica_refuses_what_only_clients_get(protocol: str, message: Message) -> None:
    world = ServiceWorld(protocol)
    with pytest.raises(RemoteError, match="to a replica"):
        world.replica(0).on_message(3, message)


def test_strangers_are_refused(protocol: str) -> None:
    world = ServiceWorld(protocol)
    with pytest.raises(RemoteError, match="to a replica"):
        world.replica(0).on_message(3, Forward(b""))
    with pytest.raises(RemoteError, match="is no replica"):
        world.client().on_message(4, Redirect(0))
    with pytest.raises(RemoteError, match="to a client"):
        world.client().on_message(0, CallMessage(b""))
    with pytest.raises(RemoteError, match="to a client"):
        world.client().on_message(0, Redirect(4))


def test_what_no_correct_leader_proposes_is_passed_over(protocol: str) -> None:
    world = ServiceWorld(protocol)
    for value in (b"\xc1", pack_batch([b"no call"]), pack_batch([b""] * (BATCH_MAX + 1))):
        world.envs[0].now = world.now
        assert world.replica(0).log.propose(value)
        world.run_ms(2)
    added = world.add()
    world.run_ms(5)
    assert world.answers()[added].digest == result(1)
    assert world.replica(1).explain().state["calls refused"] == 3


def test_places_of_calls_and_of_states_do_not_meet(protocol: str) -> None:
    last, before, first = place_in(4, BATCH_MAX - 1, 0), place_before(5, 0), place_in(5, 0, 0)
    assert last.clock < before.clock < first.clock
    assert slot_after(before.clock) == 5
    assert unpack_batch(pack_batch([b"a", b"b"])) == [b"a", b"b"]
