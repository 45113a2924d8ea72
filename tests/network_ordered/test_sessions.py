"""NOPaxos: one sequencer at a time, and a view change where a session ends."""

from ordercast.components.network_ordered.messages import StartView
from ordercast.replication.nopaxos.session import SESSION_BITS, SessionOrdering
from tests.network_ordered.lab import CLIENT, Lab


def lab_of_one_sequencer(*, durable: bool = False) -> Lab:
    """Replicas behind sequencer 1."""
    lab = Lab(ordering=SessionOrdering, sequencers=(1,), durable=durable)
    lab.clock = 1 << SESSION_BITS
    return lab


def next_session(lab: Lab, session: int) -> None:
    """The controller ends a session and begins the next."""
    lab.decide("removed", session - 1, 0, 0)
    lab.wait_ms(20)
    lab.decide("added", session, 0, 0)
    lab.clock = session << SESSION_BITS


def test_a_message_is_next_when_the_one_before_is_there() -> None:
    lab = lab_of_one_sequencer()
    lab.give(lab.stamp(1, "a"))
    assert lab.answers == {"a": "a"}, "no flush is needed"
    lab.finish("a")


def test_a_session_ends_with_a_view_change() -> None:
    lab = lab_of_one_sequencer()
    lab.call("a")
    next_session(lab, 2)
    assert lab.kinds(StartView) > 0
    assert lab.replica(1).leader == 0, "the leader stays"
    lab.call("b", sequencer=2)
    assert lab.answers["b"] == "a b"
    lab.finish("a", "b")


def test_what_was_answered_in_a_session_survives_it() -> None:
    lab = lab_of_one_sequencer()
    lab.call("a", 0, 1)
    assert lab.answers == {"a": "a"}
    lab.crash(0)
    next_session(lab, 2)
    lab.wait_ms(120)
    lab.call("b", sequencer=2)
    assert lab.answers["b"] == "a b"
    lab.finish("a", "b")


def test_what_comes_after_the_end_of_a_session_does_not_count() -> None:
    lab = lab_of_one_sequencer()
    lab.call("a")
    lab.wait_ms(10)
    late = lab.stamp(1, "late")
    lab.lost = lambda source, to, message: 2 in (source, to) and to != CLIENT
    lab.give(late, 2)
    lab.decide("removed", 1, 0, 0)
    lab.wait_ms(60)
    lab.decide("added", 2, 0, 0)
    lab.clock = 2 << SESSION_BITS
    lab.call("b", sequencer=2)
    lab.give(late)
    lab.finish("a", "b")
    assert lab.answers["b"] == "a b"
    assert "late" not in lab.log(0)


def test_sessions_survive_a_restart_of_all() -> None:
    lab = lab_of_one_sequencer(durable=True)
    lab.call("a")
    next_session(lab, 2)
    lab.call("b", sequencer=2)
    for node in (0, 1, 2):
        lab.crash(node)
    for node in (0, 1, 2):
        lab.start(node)
    lab.wait_ms(150)
    lab.call("c", sequencer=2)
    lab.finish("a", "b", "c")
