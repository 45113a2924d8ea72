"""Partitions: sides that go on by themselves and meet again, and sides that must not go on (section IV,
II.B)."""

from typing import Any

import pytest

from ordercast.core import MILLISECOND
from ordercast.replication.llft.messages import ProposeBackup
from ordercast.replication.llft.options import LlftOptions
from ordercast.replication.llft.standing import Standing
from tests.llft.lab import Lab

DETECT_MS = LlftOptions().detect_ns / MILLISECOND
APART_MS = 10 * DETECT_MS
"""Sides that are apart for so long have views of their own."""


def parted(**options: Any) -> Lab:
    """Node 0 with client 4, and nodes 1 and 2 with client 5, after a call that all know; then each side
    calls."""
    lab = Lab(clients=2, **options)
    lab.call("common", 0)
    lab.wait_ms(20)
    lab.cut((0, 3), (1, 2, 4))
    lab.call("left", 0)
    lab.wait_ms(APART_MS)
    lab.call("left2", 0)
    lab.call("right", 1)
    lab.wait_ms(APART_MS)
    return lab


def undone(lab: Lab) -> dict[int, int]:
    """At which place what each node had done later was taken back."""
    return {node: notice.stamp.clock for node, notice in lab.history.undone}


def test_each_side_goes_on() -> None:
    """There are competing memberships."""
    lab = parted()
    assert lab.replica(0).leads and lab.replica(1).leads
    assert lab.members(0) == (0,) and lab.members(1) == lab.members(2) == (1, 2)
    assert lab.told(0) == ["common", "left", "left2"] and lab.told(1) == ["common", "right"]
    assert lab.answers()["left2"] == "common left left2" and lab.answers()["right"] == "common right"


def test_the_side_of_higher_precedence_survives_and_the_other_is_pruned() -> None:
    """Section II.B: "side branches" are terminated when the partition heals; all that is undone is
    reported."""
    lab = parted()
    lab.heal()
    lab.wait_ms(300)
    assert lab.told(0) == lab.told(1) == lab.told(2) == ["common", "right"]
    assert lab.members(0) == lab.members(1) == (1, 2, 0)
    assert undone(lab) == {0: 1, 3: 1}, "the replica that lost, and the client that got its answers"
    answers = lab.history.answers
    assert [text for text in answers if answers[text].undone] == ["left", "left2"]
    assert lab.finish() == set()


def test_what_was_not_settled_anywhere_is_done_on_the_branch_that_survives() -> None:
    """A call that the losing side had not answered is called again."""
    lab = parted()
    lab.isolate(3)
    lab.call("again", 0)
    lab.heal()
    lab.wait_ms(300)
    assert lab.told(0) == lab.told(2) and "again" in lab.told(2)
    assert lab.answers()["again"].split()[:2] == ["common", "right"]
    assert lab.finish() == set()


@pytest.mark.parametrize("lost", [1, 2, 5])
@pytest.mark.parametrize("window", [1, 2, 256])
def test_a_client_calls_on_after_its_requests_were_lost(window: int, lost: int) -> None:
    """The branch that survives lacks requests that the other side had acknowledged: the connection is
    closed."""
    lab = Lab(clients=2, window=window)
    lab.call("common", 1)
    lab.wait_ms(20)
    lab.cut((0, 3), (1, 2, 4))
    lab.wait_ms(APART_MS)
    for turn in range(lost):
        lab.call(f"left{turn}", 0)
        lab.wait_ms(10)
    lab.call("right", 1)
    lab.wait_ms(10)
    lab.isolate(3)
    lab.call("again", 0)
    lab.heal()
    lab.wait_ms(500)
    assert lab.answers().get("again") == "common right again"
    assert lab.finish() == set()


def test_clients_of_both_sides_learn_what_is_undone() -> None:
    """A client that reaches both sides has answers of both, and keeps those of the branch that survives."""
    lab = Lab(clients=2)
    lab.call("common", 0)
    lab.wait_ms(20)
    lab.cut((0,), (1, 2))
    lab.call("one", 0)
    lab.call("two", 1)
    lab.wait_ms(APART_MS)
    lab.call("three", 0)
    lab.call("four", 1)
    lab.heal()
    lab.wait_ms(500)
    assert lab.finish() == set()


def test_three_sides_meet() -> None:
    lab = Lab(clients=3)
    lab.call("common", 0)
    lab.wait_ms(20)
    lab.cut((0, 3), (1, 4), (2, 5))
    for turn in range(3):
        for client in range(3):
            lab.call(f"{turn}of{client}", client)
        lab.wait_ms(APART_MS)
    assert [lab.members(node) for node in (0, 1, 2)] == [(0,), (1,), (2,)]
    assert len({len(lab.told(node)) for node in (0, 1, 2)}) == 1
    assert lab.finish() == set()
    survivors = {text[-1] for text in lab.told(2) if text[1:3] == "of"}
    assert len(survivors) == 1, "one branch"


def test_sides_meet_one_after_the_other() -> None:
    lab = Lab(clients=3)
    lab.call("common", 0)
    lab.wait_ms(20)
    lab.cut((0, 3), (1, 4), (2, 5))
    for client in range(3):
        lab.call(f"apart{client}", client)
    lab.wait_ms(2 * APART_MS)
    lab.heal()
    lab.cut((0, 3), (1, 2, 4, 5))
    for client in range(3):
        lab.call(f"half{client}", client)
    lab.wait_ms(2 * APART_MS)
    assert lab.told(1) == lab.told(2)
    assert lab.finish() == set()


def test_a_partition_that_heals_at_once_undoes_nothing() -> None:
    lab = Lab(clients=2)
    lab.call("common", 0)
    lab.wait_ms(20)
    lab.cut((0, 3), (1, 2, 4))
    lab.call("left", 0)
    lab.call("right", 1)
    lab.wait_ms(DETECT_MS / 2)
    lab.heal()
    lab.wait_ms(100)
    assert set(lab.answers()) == {"common", "left", "right"}
    assert lab.finish() == set() and lab.history.undone == []


def test_a_primary_that_only_clients_reach() -> None:
    """It is cut off from its backups; they have a new primary, which the clients reach as well."""
    lab = Lab(clients=2)
    lab.call("a", 0)
    lab.wait_ms(20)
    lab.cut((0,), (1, 2))
    lab.call("b", 1)
    lab.wait_ms(APART_MS)
    lab.call("c", 0)
    lab.wait_ms(50)
    assert lab.replica(1).leads and not lab.replica(0).leads, "a client has told the old primary"
    assert "c" in lab.told(1)
    assert lab.finish() == set()


def test_a_member_that_hears_only_its_old_primary_gives_up_too() -> None:
    """Selective communication loss: the primary of a side hears the other side, and its backup does not. The
    backup notices that its primary is silent, and learns from it and from clients who has overtaken both."""
    lab = Lab(4, clients=2)
    lab.call("common", 0)
    lab.wait_ms(20)
    lab.cut((0, 1, 4), (2, 3, 5))
    lab.call("left", 0)
    lab.call("right", 1)
    lab.wait_ms(2 * APART_MS)
    assert lab.members(1) == (0, 1) and lab.members(3) == (2, 3)
    lab.heal()
    lab.cut((1,), (2, 3))
    lab.wait_ms(APART_MS)
    assert lab.members(2) == (2, 3, 0) and lab.standing(1) is Standing.OUTSIDE
    assert lab.finish() == set()
    assert lab.told(1) == lab.told(2) and lab.told(1)[:2] == ["common", "right"]


# With a majority


def test_without_a_majority_nothing_is_done() -> None:
    lab = parted(require_majority=True)
    assert lab.replica(1).leads and lab.members(1) == (1, 2)
    assert lab.answers()["right"] == "common right"
    assert set(lab.answers()) == {"common", "right"}
    assert lab.delivered(0) == ["common"]


def test_with_a_majority_nothing_is_undone() -> None:
    lab = parted(require_majority=True)
    assert lab.finish() == set()
    assert lab.history.undone == []
    assert {"left", "left2"} <= set(lab.answers()), "they are done on the side of the majority"


def test_without_a_majority_no_view_begins() -> None:
    lab = Lab(clients=3, require_majority=True)
    lab.call("common", 0)
    lab.wait_ms(20)
    lab.cut((0, 3), (1, 4), (2, 5))
    for client in range(3):
        lab.call(f"apart{client}", client)
    lab.wait_ms(3 * APART_MS)
    assert set(lab.answers()) == {"common"}
    assert all(lab.replica(node).view.number == 0 for node in (0, 1, 2))
    assert all(lab.delivered(node) == ["common"] for node in (0, 1, 2))
    assert lab.finish() == set()


@pytest.mark.parametrize("down", [(0, 1), (0, 2)])
def test_a_majority_that_comes_back_without_its_state_is_none(down: tuple[int, int]) -> None:
    """One backup is left, and cannot know what the others had settled: it does nothing, for good."""
    lab = Lab(require_majority=True)
    lab.call("a")
    lab.wait_ms(20)
    lab.crash(*down)
    lab.start(*down)
    lab.call("b")
    lab.wait_ms(2000)
    assert set(lab.answers()) == {"a"} and lab.primary() is None


def test_a_primary_whose_backups_come_back_without_their_state_goes_on() -> None:
    """It has all that was settled, and gives it to them."""
    lab = Lab(require_majority=True)
    lab.call("a")
    lab.wait_ms(20)
    lab.crash(1, 2)
    lab.call("b")
    lab.wait_ms(10)
    assert set(lab.answers()) == {"a"}
    assert lab.finish() == set() and lab.answers()["b"] == "a b"


def test_an_answer_waits_for_a_majority() -> None:
    lab = Lab(require_majority=True)
    lab.call("a")
    assert lab.answers() == {"a": "a"}, "backups confirm at once"
    lab.wait_ms(20)
    lab.pause(1, 2)
    lab.call("b")
    lab.wait_ms(10)
    assert lab.told(0) == ["a", "b"] and set(lab.answers()) == {"a"}
    lab.resume(2)
    assert lab.answers() == {"a": "a", "b": "a b"}
    lab.resume(1)
    assert lab.finish() == set()


def test_a_replica_outside_the_membership_may_vote() -> None:
    """A majority of all replicas counts, not of the last members."""
    lab = Lab(5, require_majority=True)
    lab.call("a")
    lab.wait_ms(20)
    lab.isolate(3, 4)
    lab.wait_ms(8 * DETECT_MS)
    assert set(lab.members(0)) == {0, 1, 2}
    lab.call("b")
    lab.wait_ms(10)
    lab.crash(0, 1)
    lab.heal()
    lab.wait_ms(40 * DETECT_MS)
    assert lab.primary() in (2, 3, 4)
    assert all(lab.standing(node) in (Standing.PRIMARY, Standing.BACKUP) for node in (2, 3, 4))
    assert lab.told(3) == ["a", "b"]
    assert lab.finish() == set()


def test_a_backup_that_hears_of_a_higher_precedence_tells_its_own_group() -> None:
    """Figure 6, lines 18 to 22: it tells its group, resets and rejoins. Its request to join, which all get,
    names the higher view; so its old primary gives up too, although it hears nobody of the other side.
    """
    lab = Lab(4, clients=2)
    lab.cut((0, 1, 4), (2, 3, 5))
    lab.wait_ms(12 * DETECT_MS)
    lab.call("a", 0)
    lab.call("b", 1)
    assert (lab.standing(0), lab.standing(2)) == (Standing.PRIMARY, Standing.PRIMARY)
    lab.blocked.clear()
    lab.cut((0, 4), (2, 3, 5))
    higher = lab.replica(2).view
    assert lab.wait_ms(12 * DETECT_MS, until=lambda: lab.standing(0) is not Standing.PRIMARY)
    told = [message.known for source, to, message in lab.sent_of(ProposeBackup) if (source, to) == (1, 0)]
    assert told[-1] == higher and lab.replica(0).promised == higher
    assert lab.finish() == set()
