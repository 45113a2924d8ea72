"""What a replica says about what it waits for."""

from ordercast.components.network_ordered.messages import Entries, GapCommit
from tests.network_ordered.lab import Lab
from tests.network_ordered.plays import without


def test_a_missing_slot_is_named() -> None:
    lab = Lab()
    lab.lost = without(Entries, GapCommit)
    lab.stamp(1, "lost")
    lab.call("b")
    waits = lab.replica(0).explain().waits
    assert ("number 1 of sequencer 1", "a replica that has it") in [
        (wait.subject, wait.blocker) for wait in waits
    ]


def test_a_replica_that_forgot_says_whom_it_needs() -> None:
    lab = Lab()
    lab.call("a")
    lab.lost = lambda source, to, message: True
    lab.crash(1)
    lab.start(1, forgot=True)
    found = lab.replica(1).explain()
    assert (found.state["status"], found.behind) == ("return without memory", "a view")
    (wait,) = [wait for wait in found.waits if wait.subject == "its lost memory"]
    assert (wait.since, wait.on) == (lab.now, (0, 2)) and "majority which remembers" in wait.blocker


def test_a_replica_in_its_normal_work_waits_for_nothing() -> None:
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    found = lab.replica(0).explain()
    assert (found.state["role"], found.state["calls executed"], found.behind) == ("leader", 1, "")
    assert found.waits == ()
