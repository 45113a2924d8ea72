"""The appendix of the paper: each theorem and each lemma as a case.

A *sequence of operations* is what the application of a replica was told, in one life, in one view or in all.
"""

import pytest

from ordercast.core import NodeId
from ordercast.replication.llft.messages import Heartbeat, Reply, Request
from tests.llft.history import Life
from tests.llft.lab import Lab, kinds

DETECT_MS, BEAT_MS = 30, 5


def sequence(life: Life, view: int | None = None) -> list[str]:
    """The operations of a life, in one view or in all."""
    return [item.text for part in life.stretches for item in part if view in (None, item.view)]


def performed(lab: Lab, node: NodeId, view: int | None = None) -> list[str]:
    """The operations of the present life of a replica."""
    return sequence(lab.history.lives[node], view)


def by_primary(lab: Lab, primary: NodeId, view: int) -> list[str]:
    """The operations of a view, as its primary performed them, be it gone by now."""
    lives = [lab.history.lives[primary], *(life for node, life in lab.history.past if node == primary)]
    return max((sequence(life, view) for life in lives), key=len)


def follows(part: list[str], whole: list[str]) -> bool:
    """Whether something is a consecutive part of a sequence, and not empty."""
    return bool(part) and any(whole[at : at + len(part)] == part for at in range(len(whole)))


def work(lab: Lab, *texts: str) -> None:
    """Let clients call, until all replicas have settled it."""
    for text in texts:
        lab.call(text)
        lab.wait_ms(4 * BEAT_MS)


def change(lab: Lab) -> None:
    """The primary becomes faulty, and another one follows."""
    primary = lab.primary()
    assert primary is not None
    lab.crash(primary)
    assert lab.wait_ms(20 * DETECT_MS, until=lambda: lab.primary() not in (None, primary))
    lab.wait_ms(4 * BEAT_MS)


def admit(lab: Lab, node: NodeId) -> None:
    """A replica becomes faulty and is admitted again, as a new one."""
    lab.crash(node)
    lab.wait_ms(4 * DETECT_MS)
    lab.start(node)
    assert lab.wait_ms(40 * DETECT_MS, until=lambda: lab.whole(0))


def lineage(lab: Lab, node: NodeId) -> list[tuple[int, int]]:
    """The number and the primary of each view behind a replica."""
    views = [begun.view for begun in lab.replica(node).performer.notices.lineage]
    return [(view.number, view.precedence % lab.plan_nodes) for view in views]


# Views


@pytest.mark.parametrize("common", [True, False], ids=["case 1", "case 2"])
def test_theorem_1_one_sequence_of_primary_views(common: bool) -> None:
    """ "Each of those primary views has a unique primary view number and a single primary replica." Two
    backups propose a view of the same number. Case 1: "a replica R that is a member of both proposed new
    primary views". Case 2: "there is no replica that is a member of both"."""
    lab = Lab(4, attempts=1000 if common else 2)
    work(lab, "a")
    lab.crash(0)
    lab.cut((1,), (2,) if common else (2, 3, lab.clients[0]))
    # As long as it does not answer, nobody is elected with the common member.
    lab.lost = lambda source, to, message: common and source == 3
    lab.wait_ms(4 * DETECT_MS)
    assert {lab.replica(node).promised.number for node in (1, 2)} == {1}
    assert {lab.replica(node).promised.precedence for node in (1, 2)} == {1, 2}
    lab.heal()
    assert lab.wait_ms(40 * DETECT_MS, until=lambda: lab.members(2) == (2, 3, 1))
    work(lab, "b")
    assert lineage(lab, 1) == lineage(lab, 2) == lineage(lab, 3) == [(0, 0), (1, 2)]
    assert lab.finish() == set()


def test_theorem_2_one_sequence_of_operations() -> None:
    """ "The sequence of operations in an infinite sequence of consecutive primary views is the concatenation
    of the sequences of operations for the primary views in the order of their primary view numbers." """
    lab = Lab(4)
    primaries: list[NodeId] = []
    for number in range(3):
        primaries.append(lab.primary() or 0)
        work(lab, f"a{number}", f"b{number}")
        change(lab)
    parts = [by_primary(lab, node, number) for number, node in enumerate(primaries)]
    assert parts == [[f"a{number}", f"b{number}"] for number in range(3)]
    assert lab.told(lab.primary() or 0) == [text for part in parts for text in part]
    assert lab.finish() == set()


# Replicas of a view, with semi-active replication


def test_lemma_1_a_replica_is_admitted_and_becomes_faulty_in_a_view() -> None:
    """ "The sequence of operations of R2 in V_i is a consecutive subsequence of the sequence of operations of
    R1 in V_i." """
    lab = Lab()
    work(lab, "a", "b")
    admit(lab, 2)
    work(lab, "c", "d")
    told = performed(lab, 2, view=0)
    lab.crash(2)
    work(lab, "e")
    assert told == ["c", "d"] and lab.told(0) == ["a", "b", "c", "d", "e"]
    assert lab.finish() == set()


def test_lemma_2_a_replica_is_admitted_in_a_view_and_outlives_it() -> None:
    """ "The sequence of operations of R2 in V_i is a suffix of the sequence of operations of R1 in V_i." The
    last operation of the view reaches R2 by what a client knows only."""
    lab = Lab()
    work(lab, "a", "b")
    admit(lab, 2)
    work(lab, "c")
    lab.lost = kinds(Heartbeat)
    lab.call("d")
    before = lab.told(0)
    change(lab)
    lab.heal()
    work(lab, "e")
    assert before == ["a", "b", "c", "d"] and performed(lab, 2, view=0) == ["c", "d"]
    assert performed(lab, 2, view=1) == performed(lab, 1, view=1) == ["e"]
    assert lab.finish() == set()


def test_lemma_3_a_first_member_becomes_faulty_in_a_view() -> None:
    """ "The sequence of operations of R2 in V_i is a prefix of the sequence of operations of R1 in V_i." """
    lab = Lab()
    work(lab, "a", "b")
    lab.lost = lambda source, to, message: to == 2
    lab.call("c")
    lab.wait_ms(BEAT_MS)
    told, state = performed(lab, 2, view=0), lab.told(2)
    lab.crash(2)
    work(lab, "d")
    assert told == state == ["a", "b"] and lab.told(0) == ["a", "b", "c", "d"]
    assert lab.finish() == set()


def test_lemma_4_two_members_of_three_views() -> None:
    """ "The sequence of operations of R2 in V_{i+1} is the same as the sequence of operations of R3 in
    V_{i+1}." One of them has to get the last operation from the other, when the view ends."""
    lab = Lab(4)
    work(lab, "a")
    change(lab)
    work(lab, "b")
    lab.lost = lambda source, to, message: to == 2 and isinstance(message, (Request, Heartbeat))
    lab.call("c")
    lab.lost = kinds(Reply)
    change(lab)
    lab.heal()
    work(lab, "d")
    assert performed(lab, 2, view=1) == performed(lab, 3, view=1) == ["b", "c"]
    assert lab.finish() == set()


def test_lemma_5_two_members_of_many_views() -> None:
    """ "The sequence of operations of R2 in V_j is the same as the sequence of operations of R3 in V_j, where
    i < j < k." """
    lab = Lab(6)
    for number in range(4):
        work(lab, f"a{number}", f"b{number}")
        change(lab)
    assert lab.primary() == 4
    for number in range(4):
        expected = [f"a{number}", f"b{number}"]
        assert performed(lab, 4, view=number) == performed(lab, 5, view=number) == expected
    assert lab.finish() == set()


@pytest.mark.parametrize("survived", [0, 1, 3], ids=["case 1", "case 2", "case 3"])
@pytest.mark.parametrize("admitted", [False, True], ids=["first member", "admitted"])
def test_theorem_3_a_replica_performs_a_consecutive_part(survived: int, admitted: bool) -> None:
    """ "The sequence of operations of a replica [...] is a consecutive subsequence of the infinite sequence
    of operations for the group." Case 1: it becomes faulty in the view in which it was admitted; case 2: in
    the next one; case 3: in a later one."""
    lab = Lab(5)
    work(lab, "first")
    last = 4
    if admitted:
        admit(lab, last)
    work(lab, "a", "b")
    for number in range(survived):
        change(lab)
        work(lab, f"c{number}", f"d{number}")
    told = performed(lab, last)
    if survived < 3:
        lab.crash(last)
        work(lab, "last")
    whole = lab.told(lab.primary() or 0)
    assert follows(told, whole)
    assert told[0] == ("a" if admitted else "first") and len(told) == 3 - admitted + 2 * survived
    assert lab.finish() == set()


# Replicas of a view, with semi-passive replication


def test_theorem_4_a_replica_has_consecutive_states() -> None:
    """ "For semi-passive replication, the sequence of states of a replica [...] is a consecutive subsequence
    of the infinite sequence of states for the group." """
    lab = Lab(replication="semi-passive", update_every=1)
    states: list[list[str]] = [[]]

    def look() -> bool:
        if lab.told(2) != states[-1]:
            states.append(lab.told(2))
        return False

    order: list[str] = []
    for number in range(8):
        order.append(f"a{number}")
        lab.call(order[-1])
        lab.wait_ms(6 * BEAT_MS, until=look)
        if number == 4:
            lab.crash(0)
            lab.wait_ms(4 * DETECT_MS, until=look)
    assert lab.primary() == 1 and lab.told(1) == order
    assert states == [order[:count] for count in range(len(order) + 1)]
    assert lab.finish() == set()


# Liveness


@pytest.mark.parametrize("replicas", [2, 3, 5])
def test_theorems_5_and_6_views_and_operations_go_on(replicas: int) -> None:
    """ "If the primary becomes faulty in a view V_i, then there exists a replica R in V_i that can assume
    the role of the primary in view V_{i+1}", and "there exists at least one operation [...] in each primary
    view"."""
    lab = Lab(replicas)
    for number in range(6):
        primary = lab.primary()
        assert primary is not None and lab.replica(primary).view.number == number
        work(lab, f"a{number}")
        assert lab.told(primary)[-1] == f"a{number}"
        change(lab)
        lab.start(primary)
        assert lab.wait_ms(40 * DETECT_MS, until=lambda: lab.whole(0))
    places = [begun.place for begun in lab.replica(lab.primary() or 0).performer.notices.lineage]
    assert places == sorted(set(places)), "each view has a place of its own, and so an operation"
    assert lab.finish() == set()
