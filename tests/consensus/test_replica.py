"""One behaviour of the log a test."""

import pytest

from ordercast.components.consensus import ConsensusOptions, Replica
from ordercast.components.consensus.election import Election
from ordercast.components.consensus.log import Group, Log, Owner
from ordercast.components.consensus.messages import Accept, Accepted, Commit, Heard, Learn, Promise
from ordercast.components.consensus.roles import ROLES, Role
from ordercast.core import Delivery, LocalError
from ordercast.scenario.conditions import Conditions
from tests.consensus.harness import LogWorld
from tests.core.life_cycles import record


def cut_off(world: LogWorld, host: int) -> None:
    for other in range(len(world.envs)):
        world.network.blocked |= {(host, other), (other, host)}


def stand(world: LogWorld, index: int) -> None:
    """Let a replica stand for election, whether others would have it or not."""
    world.envs[index].now = world.now
    world.replica(index)._lose_patience()
    world.replica(index)._stand()


def fill(world: LogWorld, count: int) -> None:
    for number in range(count):
        while not world.propose(b"value %d" % number):
            world.run_ms(1)
    world.run_ms(10)


def test_replica_0_leads_from_the_start_without_phase_1() -> None:
    world = LogWorld()
    world.arrived.clear()
    assert world.leader() == 0
    assert world.propose(b"first")
    world.run_ms(1)
    assert [world.values(i) for i in range(3)] == [[b"first"]] * 3
    kinds = [type(message) for message in world.arrived if not isinstance(message, Commit | Heard)]
    assert sorted(kinds, key=str) == [Accept] * 2 + [Accepted] * 2


def test_a_commit_notice_follows_at_once_when_nothing_is_in_flight() -> None:
    world = LogWorld()
    world.run_ms(1)
    world.arrived.clear()
    world.propose(b"alone")
    world.run_ms(1)
    assert sum(isinstance(message, Commit) for message in world.arrived) == 2


def test_commit_notices_ride_on_accepts_while_slots_follow_each_other() -> None:
    world = LogWorld()
    world.arrived.clear()
    for number in range(50):
        world.propose(b"%d" % number)
        world.run_ms(0.05)
    assert sum(isinstance(message, Commit) for message in world.arrived) < 10
    assert len(world.values(1)) > 30


def test_followers_do_not_take_proposals() -> None:
    world = LogWorld()
    assert not world.act(1, b"no")
    assert world.replica(1).leader == 0
    assert not world.replica(1).is_leader


@pytest.mark.parametrize("value", [b"", b"x" * ((2 << 20) + 1)])
def test_values_have_a_size(value: bytes) -> None:
    with pytest.raises(LocalError, match="a value must have 1 to"):
        LogWorld().propose(value)


def test_fail_over_keeps_what_was_committed_and_goes_on() -> None:
    world = LogWorld()
    fill(world, 10)
    world.crash(0)
    world.run_ms(120)
    leader = world.leader()
    assert leader in (1, 2)
    assert world.propose(b"after")
    world.run_ms(5)
    expected = [b"value %d" % number for number in range(10)] + [b"after"]
    assert world.values(1) == world.values(2) == expected
    world.restart(0)
    world.run_ms(30)
    assert world.values(0) == expected
    assert world.replica(0).leader == leader


def test_what_one_follower_accepted_survives_the_leader() -> None:
    world = LogWorld()
    world.network.blocked.add((0, 2))
    world.network.blocked.add((1, 0))  # accepted by 1, but the leader does not know
    world.propose(b"orphan")
    world.run_ms(1)
    world.crash(0)
    world.network.blocked.clear()
    world.run_ms(200)
    assert world.values(1) == world.values(2) == [b"orphan"]


def test_holes_become_noops_that_are_not_applied() -> None:
    world = LogWorld()
    world.network.blocked |= {(0, 1), (0, 2)}
    world.propose(b"lost")
    world.network.blocked.clear()
    world.propose(b"second")
    world.crash(0)
    world.run_ms(200)
    assert world.node(1).applied == [(1, b"second")]
    assert world.replica(1).committed == 2
    world.restart(0)
    world.run_ms(50)
    assert world.node(0).applied == [(1, b"second")]


def test_an_outdated_leader_steps_down_and_forgets_what_was_not_chosen() -> None:
    world = LogWorld()
    cut_off(world, 0)
    assert world.act(0, b"in vain")
    world.run_ms(45)
    assert world.leader() != 0
    assert world.replica(0).is_leader, "it has not noticed yet"
    assert world.propose(b"chosen")
    world.run_ms(5)
    world.network.blocked.clear()
    world.run_ms(50)
    assert not world.replica(0).is_leader
    assert [world.values(i) for i in range(3)] == [[b"chosen"]] * 3


def test_a_replica_that_only_sends_does_not_push_the_ballots_up() -> None:
    world = LogWorld()
    world.network.blocked |= {(0, 2), (1, 2)}
    world.run_ms(300)
    first = world.replica(2).ballot
    world.run_ms(3000)
    assert world.replica(2).ballot == first
    assert world.leader() in (0, 1)


def test_a_promise_outlives_a_restart() -> None:
    world = LogWorld()
    cut_off(world, 0)
    world.run_ms(45)  # one of the others has been elected
    assert world.leader() != 0
    for host in (1, 2):
        world.crash(host)
    world.network.blocked.clear()
    for host in (1, 2):
        world.restart(host)
    assert world.act(0, b"in a ballot of the past")
    world.run_ms(2)
    assert world.replica(0).committed == 0
    assert not world.replica(0).is_leader


def test_of_two_accepted_values_that_of_the_higher_ballot_counts() -> None:
    env = LogWorld().envs[0]
    log = Log(env, Group(0, (0, 1, 2, 3, 4)), ConsensusOptions(), Owner())
    log.journal.accept(1, 0, b"own")
    election = Election(log, 10)
    election.on_promise(1, Promise(10, 0, ((0, 6, b"new"), (1, 0, b"own")), 0))
    election.on_promise(1, Promise(10, 0, ((0, 9, b"twice"),), 0))
    assert not election.won()
    election.on_promise(2, Promise(10, 0, ((0, 3, b"old"), (1, 2, b"newer")), 0))
    assert election.won()
    assert election.values() == {0: b"new", 1: b"newer"}


def test_a_lagging_replica_catches_up_in_bounded_chunks() -> None:
    world = LogWorld(options=ConsensusOptions(chunk_bytes=200))
    world.crash(2)
    fill(world, 200)
    world.arrived.clear()
    world.restart(2)
    world.run_ms(60)
    assert world.values(2) == world.values(0)
    lessons = [message for message in world.arrived if isinstance(message, Learn)]
    assert len(lessons) > 10
    assert max(sum(map(len, lesson.values)) for lesson in lessons) <= 200


def test_one_lost_packet_is_fetched_and_does_not_stop_the_others() -> None:
    world = LogWorld()
    world.network.blocked.add((0, 2))
    world.propose(b"missed")
    world.network.blocked.clear()
    world.run_ms(1)
    assert world.values(0) == world.values(1) == [b"missed"]
    assert world.values(2) == []
    waits = world.replica(2).explain().waits
    assert [(wait.subject, wait.blocker) for wait in waits] == [
        ("slots 0 to 0, which this replica lacks", "node 0, which has not sent them yet")
    ]
    world.run_ms(10)
    assert world.values(2) == [b"missed"]


def test_a_candidate_that_is_behind_learns_before_it_leads() -> None:
    world = LogWorld(seed=3)
    cut_off(world, 2)
    fill(world, 20)
    world.crash(0)
    world.network.blocked.clear()
    world.run_ms(200)
    assert world.propose(b"next")
    world.run_ms(10)
    assert world.values(2) == world.values(1) == [b"value %d" % n for n in range(20)] + [b"next"]


def test_the_window_pushes_back() -> None:
    world = LogWorld(options=ConsensusOptions(window=4))
    cut_off(world, 0)
    assert [world.propose(b"x") for _ in range(6)] == [True] * 4 + [False] * 2
    assert world.replica(0).in_flight == 4
    world.network.blocked.clear()
    world.run_ms(20)
    assert world.propose(b"y")


def test_the_log_limit_pushes_back_until_the_laggard_returns() -> None:
    options = ConsensusOptions(window=8, log_limit=20, checkpoint=5)
    world = LogWorld(options=options)
    world.crash(2)
    accepted = 0
    for _ in range(60):
        accepted += world.propose(b"%d" % accepted)
        world.run_ms(1)
    assert accepted == 20
    waits = world.replica(0).explain().waits
    assert "room in the log, which needs a snapshot after slot 0 from nodes 2" in [
        wait.blocker for wait in waits
    ]
    world.restart(2)
    world.run_ms(100)
    assert len(world.values(2)) == 20
    assert world.propose(b"goes on")
    world.run_ms(10)
    assert world.values(2) == world.values(0)


def test_slots_go_when_all_replicas_have_a_snapshot() -> None:
    world = LogWorld(options=ConsensusOptions(checkpoint=10))
    fill(world, 95)
    world.run_ms(50)
    for index in range(3):
        assert world.saved_slots(index) == list(range(90, 95))
    for host in range(3):
        world.crash(host)
    for host in range(3):
        world.restart(host)
    world.run_ms(200)
    for index in range(3):
        assert world.values(index) == [b"value %d" % number for number in range(95)]


def test_elections_with_one_entry_a_chunk_come_to_an_end() -> None:
    world = LogWorld(5, options=ConsensusOptions(chunk_bytes=1))
    world.network.set_conditions(Conditions(reordering=1.0, reorder_us=6000))
    for number in range(100):
        world.propose(b"%d" % number)
    world.run_ms(2)  # accepted by some, committed by nobody
    world.crash(0)
    world.run_ms(8000)
    assert world.leader() is not None
    assert world.propose(b"after")
    world.run_ms(50)
    assert b"after" in world.values(3)


def test_a_single_replica_needs_nobody() -> None:
    world = LogWorld(replicas=1, options=ConsensusOptions(checkpoint=3))
    assert world.propose(b"a")
    assert world.propose(b"b")
    assert world.values(0) == [b"a", b"b"]
    fill(world, 5)
    world.crash(0)
    world.restart(0)
    world.run_ms(100)
    assert world.leader() == 0
    assert world.propose(b"c")
    assert world.values(0)[-1] == b"c"


def test_who_gets_a_delivery_may_propose() -> None:
    world = LogWorld()
    node = world.node(0)

    deliver = node.on_deliver

    def chatty(inner: str, delivery: Delivery) -> None:
        deliver(inner, delivery)
        value = node.applied[-1][1]
        if len(value) < 4:
            assert node.replica.propose(value + b"+")

    node.on_deliver = chatty  # type: ignore[method-assign]
    world.propose(b"a")
    world.run_ms(5)
    assert world.values(0) == world.values(2) == [b"a", b"a+", b"a++", b"a+++"]


def test_explain_names_the_silent_and_the_missing_leader() -> None:
    world = LogWorld()
    cut_off(world, 0)
    world.propose(b"x")
    world.run_ms(1)
    explained = world.replica(0).explain()
    assert explained.state["role"] == "leader"
    assert [(w.subject, w.blocker) for w in explained.waits] == [
        ("slot 0", "an acknowledgement from nodes 1, 2")
    ]
    world.crash(0)
    world.crash(1)
    world.run_ms(100)
    (wait,) = world.replica(2).explain().waits
    assert wait.subject == "the election of a leader"
    assert wait.blocker == "nodes 0, 1 to say that they hear no leader either"
    assert world.replica(2).explain().state["leader"] == "unknown"
    world.replica(2)._stand()
    (wait,) = world.replica(2).explain().waits
    assert wait.subject.startswith("election in ballot ")
    assert wait.blocker == "a promise from nodes 0, 1"


def test_options_and_peers_are_checked() -> None:
    with pytest.raises(LocalError, match="election_ns_min must be above"):
        ConsensusOptions(election_ns_min=10, election_ns_max=5)
    with pytest.raises(LocalError, match="must be positive"):
        ConsensusOptions(window=0)
    with pytest.raises(LocalError, match="checkpoint must be"):
        ConsensusOptions(log_limit=5)
    env = LogWorld().envs[0]
    with pytest.raises(LocalError, match="must differ, and node"):
        Replica(env, (1, 2))


def test_a_replica_that_was_behind_and_led_is_helped_again_when_it_follows() -> None:
    world = LogWorld()
    world.network.blocked.add((0, 2))
    world.propose(b"missed by 2")
    world.run_ms(0.5)
    world.network.blocked.clear()
    world.network.blocked |= {(0, 2), (2, 0)}
    world.envs[2].now = world.now
    replica = world.replica(2)
    replica._catchup.heed(0, 1)  # it knows that it is behind,
    stand(world, 2)  # and leads before it has asked
    world.run_ms(20)
    assert world.leader() == 2
    cut_off(world, 2)
    world.run_ms(200)
    assert world.leader() in (0, 1)
    world.propose(b"missed again")
    world.run_ms(5)
    world.network.blocked.clear()
    world.run_ms(50)
    assert world.values(2) == world.values(1) == [b"missed by 2", b"missed again"]


def test_a_replica_takes_every_change_of_role(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = record(monkeypatch, ROLES)
    world = LogWorld()
    assert [world.replica(i).role for i in range(3)] == [Role.LEADER, Role.FOLLOWER, Role.FOLLOWER]
    for index in (1, 2):  # two candidates: the one with the lower ballot gives way
        stand(world, index)
        assert world.replica(index).role is Role.CANDIDATE
    world.run_ms(20)
    assert [world.replica(i).role for i in range(3)] == [Role.FOLLOWER, Role.FOLLOWER, Role.LEADER]
    world.replica(1)._lose_patience()
    assert world.replica(1).role is Role.CANVASSER
    world.run_ms(20)
    assert world.replica(1).role is Role.FOLLOWER, "it hears the leader again"
    forgetful = LogWorld(transfers=True, durable=False)
    forgetful.crash(1)
    forgetful.restart(1, keep_state=False)
    forgetful.run_ms(0.001)
    assert forgetful.replica(1).role is Role.LOST
    forgetful.run_ms(20)
    assert forgetful.replica(1).role is Role.FOLLOWER
    assert taken == set(ROLES.table)


def test_a_leader_does_not_stand_and_a_candidate_stands_once() -> None:
    world = LogWorld()
    with pytest.raises(LocalError, match="replica: event 'stand' is not allowed in state 'leader'"):
        world.replica(0)._stand()
    stand(world, 1)
    with pytest.raises(LocalError, match="replica: event 'stand' is not allowed in state 'candidate'"):
        world.replica(1)._stand()
