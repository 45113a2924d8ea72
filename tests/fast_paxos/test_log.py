"""Votes of replicas by themselves: one rule a test. Without the rule, a scene would end in two decisions."""

import pytest

from ordercast.components.consensus.log import Group
from ordercast.components.consensus.messages import Accept, Promise
from ordercast.components.consensus.roles import Role
from ordercast.core import Message, RemoteError
from ordercast.replication.fast_paxos.fast_election import choose, fast_quorum, named_at_least
from ordercast.replication.fast_paxos.fast_journal import digest_of
from ordercast.replication.fast_paxos.messages import FastCommit, FastPromise, FastVote, Open
from tests.consensus.test_recovery import cut, decided, lose_memory, stand
from tests.fast_paxos.harness import FastNode, FastWorld


def opened(replicas: int = 3, *, durable: bool = True) -> FastWorld:
    """A log whose leader has told all that they may vote."""
    world = FastWorld(replicas, durable=durable)
    world.run_ms(1)
    world.arrived.clear()
    return world


def mute(world: FastWorld, index: int, *others: int) -> None:
    """What a replica sends does not arrive at these others."""
    world.network.blocked |= {(index, other) for other in others}


def given(world: FastWorld, votes: dict[int, bytes]) -> None:
    for index, value in votes.items():
        assert world.give(index, value)


def test_quorums_are_those_of_the_paper() -> None:
    found = {}
    for replicas in (1, 3, 5, 7, 9):
        group = Group(0, tuple(range(replicas)))
        f = (replicas - 1) // 2
        assert fast_quorum(group) == f + (f + 1) // 2 + 1
        assert named_at_least(group) == fast_quorum(group) - f
        found[replicas] = fast_quorum(group)
    assert found == {1: 1, 3: 3, 5: 4, 7: 6, 9: 7}


@pytest.mark.parametrize("replicas", range(1, 12))
def test_two_fast_quorums_and_a_majority_have_a_replica_in_common(replicas: int) -> None:
    group = Group(0, tuple(range(replicas)))
    assert 2 * fast_quorum(group) + group.majority > 2 * replicas
    assert named_at_least(group) > replicas - fast_quorum(group), "another value is named less often"


def test_a_call_is_decided_without_a_proposal_if_all_vote_alike() -> None:
    world = opened()
    world.give_all(b"a")
    world.run_ms(1)
    assert [world.values(i) for i in range(3)] == [[b"a"]] * 3
    kinds = {type(message) for message in world.arrived}
    assert kinds == {FastVote, FastCommit}
    assert sum(isinstance(message, FastVote) for message in world.arrived) == 2


def test_a_conflict_is_decided_by_the_vote_of_the_leader() -> None:
    world = opened()
    given(world, {0: b"a", 1: b"b", 2: b"b"})
    world.run_ms(2)
    assert [world.values(i) for i in range(3)] == [[b"a"]] * 3
    assert any(isinstance(message, Accept) for message in world.arrived)
    for index in (1, 2):
        node = world.node(index)
        assert isinstance(node, FastNode)
        assert node.displaced == [b"b"]


def test_a_replica_that_missed_a_call_is_in_step_again_after_one_conflict() -> None:
    world = opened()
    given(world, {0: b"a", 1: b"a"})
    world.give_all(b"b")
    world.give_all(b"c")
    world.run_ms(2)
    world.arrived.clear()
    world.give_all(b"d")
    world.run_ms(2)
    assert [world.values(i) for i in range(3)] == [[b"a", b"b", b"c", b"d"]] * 3
    assert not any(isinstance(message, Accept) for message in world.arrived)


def test_a_leader_that_missed_a_call_leaves_a_slot_out() -> None:
    world = opened()
    given(world, {1: b"a", 2: b"a"})
    conflicts = []
    for number in range(8):
        world.arrived.clear()
        world.give_all(b"%d" % number)
        world.run_ms(2)
        conflicts.append(any(isinstance(message, Accept) for message in world.arrived))
    assert conflicts[0], "the others are one slot ahead"
    assert not any(conflicts[-3:]), "they are in step again"
    assert [world.values(i)[-1] for i in range(3)] == [b"7"] * 3


def test_a_lost_vote_is_made_up_for_by_a_proposal() -> None:
    world = opened()
    mute(world, 2, 0)
    world.give_all(b"a")
    world.run_ms(0.5)
    assert not world.values(0)
    world.run_ms(15)
    assert world.values(0) == [b"a"], "replica 1 has accepted the proposal"


def test_with_a_replica_away_the_leader_proposes_at_once() -> None:
    world = opened()
    world.crash(2)
    world.run_ms(40)
    world.arrived.clear()
    world.give_all(b"a")
    world.run_ms(1)
    assert world.values(0) == [b"a"]


def small_quorum() -> None:
    """Leader 0 and replica 1 vote for a, and replica 2 for b. Leader 0 must not take that for a decision."""
    world = opened()
    mute(world, 0, 1, 2)
    given(world, {0: b"a", 1: b"a", 2: b"b"})
    world.run_ms(1)
    known = decided(world)
    world.crash(0)
    world.run_ms(300)
    assert decided(world) | known == decided(world)
    world.restart(0)
    world.run_ms(100)
    decided(world)


def test_two_votes_of_three_decide_nothing() -> None:
    small_quorum()


def fast_decision() -> None:
    """Four of five have decided on a, and leader 0 is gone. Candidate 4 voted for another value."""
    world = opened(5)
    mute(world, 0, 1, 2, 3, 4)
    given(world, {0: b"a", 1: b"a", 2: b"a", 3: b"a", 4: b"z"})
    world.run_ms(1)
    assert world.values(0) == [b"a"]
    known = decided(world)
    world.crash(0)
    world.crash(3)
    stand(world, 4)
    world.run_ms(100)
    assert world.leader() is not None
    world.give_all(b"later")
    world.run_ms(20)
    assert decided(world) | known == decided(world)


def test_a_new_leader_proposes_what_may_have_been_chosen() -> None:
    fast_decision()


def own_vote() -> None:
    """Replica 4 voted for z where the others have decided on a; a notice of the decision comes."""
    world = opened(5)
    mute(world, 4, 0)  # its vote does not arrive, so there is no conflict
    given(world, {0: b"a", 1: b"a", 2: b"a", 3: b"a", 4: b"z"})
    world.run_ms(1)
    assert world.values(1) == [b"a"]
    world.run_ms(50)
    assert decided(world)[0] == b"a"


def test_an_own_vote_is_not_taken_for_the_decision() -> None:
    own_vote()


def second_vote() -> None:
    """Replica 1 voted for a, and all decided on it. It restarts, and gets another call."""
    world = opened()
    mute(world, 0, 1, 2)
    world.give_all(b"a")
    world.run_ms(1)
    assert world.values(0) == [b"a"]
    known = decided(world)
    world.crash(1)
    world.restart(1)
    world.run_ms(0.01)
    world.replica(1).on_message(0, Open(0, 0))
    assert world.give(1, b"z")
    world.crash(0)
    world.run_ms(300)
    assert decided(world) | known == decided(world)
    world.restart(0)
    world.run_ms(100)
    decided(world)


def test_a_replica_votes_once_in_a_slot_and_ballot() -> None:
    second_vote()


def vote_of_an_earlier_life() -> None:
    """Replica 1 voted for a before its call came to the leader. It forgets that, and votes for z."""
    world = opened(durable=False)
    given(world, {1: b"a", 2: b"a"})
    world.run_ms(1)
    lose_memory(world, 1)
    world.run_ms(8)
    assert world.replica(1).role is Role.FOLLOWER
    mute(world, 0, 1, 2)
    mute(world, 1, 0)
    given(world, {1: b"z"})
    given(world, {0: b"a"})
    world.run_ms(1)
    known = decided(world)
    world.crash(0)
    world.run_ms(300)
    assert decided(world) | known == decided(world)


def test_the_vote_of_an_earlier_life_does_not_count() -> None:
    vote_of_an_earlier_life()


def closed_slot() -> None:
    """All have decided on a. Leader 1 opens the slots after it; replica 2 must not vote in that one again."""
    world = opened()
    mute(world, 0, 1, 2)
    world.give_all(b"a")
    world.run_ms(1)
    assert world.values(0) == [b"a"]
    world.crash(0)
    stand(world, 1)
    mute(world, 1, 0, 2)  # its question is on the way, its proposals will not arrive
    while not world.replica(1).is_leader:
        world.run_ms(0.01)
    ballot = world.replica(1).ballot
    world.replica(2).on_message(1, Open(ballot, 1))
    assert world.give(2, b"z")
    world.crash(1)
    cut(world)
    world.restart(0)
    world.run_ms(400)
    world.give_all(b"later")
    world.run_ms(50)
    assert decided(world)[0] == b"a"


def test_slots_below_the_opened_ones_are_the_leaders() -> None:
    closed_slot()


def test_votes_survive_a_restart_as_what_they_are() -> None:
    world = opened()
    mute(world, 1, 0)
    given(world, {1: b"a"})
    world.crash(1)
    world.restart(1)
    world.run_ms(0.01)
    journal = world.fast(1)._fast_journal
    assert (journal.entries, journal.fast) == ({0: (0, b"a")}, {0})
    world.replica(1).on_message(0, Accept(0, 0, b"a", 0))
    assert (journal.entries, journal.fast) == ({0: (0, b"a")}, set())
    world.crash(1)
    world.restart(1)
    world.run_ms(0.01)
    assert world.fast(1)._fast_journal.fast == set(), "now it is the leader's proposal"


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([(0, False, b"leader"), (0, True, b"b"), (0, True, b"b")], b"leader"),
        ([(0, True, b"a"), (0, True, b"b"), (0, True, b"b")], b"b"),
        ([(3, True, b"a"), (0, True, b"b"), (0, True, b"b")], b"a"),
        ([(3, False, b"a"), (5, False, b"b"), (0, True, b"a")], b"b"),
    ],
)
def test_what_is_chosen_from_reports(votes: list[tuple[int, bool, bytes]], expected: bytes) -> None:
    assert choose(votes, Group(0, (0, 1, 2, 3, 4))) == expected


def test_a_promise_says_which_votes_are_the_voters_own() -> None:
    world = opened()
    mute(world, 0, 1, 2)
    given(world, {1: b"a", 2: b"b"})
    world.crash(0)
    stand(world, 1)
    world.run_ms(1)
    promises = [message for message in world.arrived if isinstance(message, Promise)]
    assert promises and all(isinstance(promise, FastPromise) and promise.fast == (0,) for promise in promises)


BAD: list[Message] = [
    FastVote(1 << 40, 0, bytes(16), 0),
    FastVote(0, 1 << 50, bytes(16), 0),
    FastCommit(0, 0, (bytes(16),) * 2, 1),
    FastCommit(0, 0, (), 1 << 50),
    Open(0, 1 << 50),
]


@pytest.mark.parametrize("message", BAD, ids=repr)
def test_what_no_correct_replica_sends_is_refused(message: Message) -> None:
    world = opened()
    before = dict(world.envs[1].saved)
    with pytest.raises(RemoteError, match="node 0"):
        world.replica(1).on_message(0, message)
    assert world.envs[1].saved == before


def test_a_vote_for_a_decided_slot_changes_nothing() -> None:
    world = opened()
    world.give_all(b"a")
    world.run_ms(2)
    world.replica(0).on_message(1, FastVote(0, 0, digest_of(b"z"), 0))
    world.run_ms(20)
    assert decided(world) == {0: b"a"}
