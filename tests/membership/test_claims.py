"""What a member refuses: views from strangers, numbers that cannot be, and messages that were not sent.

A refusal is a `RemoteError`, and changes nothing.
"""

import pytest

from ordercast.components.membership import Seating, ViewOptions, ViewSynchrony
from ordercast.components.membership.ballot import ballot_above
from ordercast.components.membership.messages import (
    Beat,
    BeginChange,
    Cut,
    Data,
    Install,
    Join,
    Outbid,
    Proposal,
    Resend,
    StateChunk,
    Stopped,
)
from ordercast.components.membership.record import Seat, ViewRecord, first_view
from ordercast.components.membership.standing import MEMBER
from ordercast.core import Message, NodeId, RemoteError
from ordercast.testing import ProcessDriver

THREE = Seating(dict.fromkeys((0, 1, 2), (0,)))
FIRST = first_view(THREE.founders)
ALL = b"\7"
FAR = 1 << 60
BALLOT = ballot_above(0, 1)
TWO = (Seat(0, 0, 0), Seat(1, 0, 0))


def view(
    number: int, seats: tuple[Seat, ...], voters: tuple[NodeId, ...], cut: tuple[int, ...] = ()
) -> ViewRecord:
    """A view whose members all receive the same group."""
    return ViewRecord(number, seats, voters, cut, ((0,),) * len(seats))


NEXT = view(2, TWO, (0, 1, 2), (0, 0, 0))
FEW = view(3, (), (1,))
WITHOUT_ZERO = view(2, (Seat(1, 0, 0), Seat(2, 0, 0)), (1, 2), (1, 1, 0))


def member() -> ProcessDriver[ViewSynchrony]:
    driver = ProcessDriver(lambda env: ViewSynchrony(env, 0, THREE, ViewOptions(window=8)))
    driver.process.multicast(b"mine")
    driver.receive(1, Data(1, 1, 0, b"theirs"))
    driver.take_sent()
    driver.take_delivered()
    return driver


CLAIMS: dict[str, tuple[NodeId, Message]] = {
    "a view from a stranger": (7, Install(NEXT)),
    "another view with the same number": (1, Install(view(1, TWO, (0, 1, 2)))),
    "a view far ahead": (1, Install(view(FAR, TWO, (0, 1, 2)))),
    "a view without voters": (1, Install(view(2, TWO, (), (0, 0, 0)))),
    "seats that do not ascend": (1, Install(view(2, TWO[::-1], (0, 1, 2), (0, 0, 0)))),
    "a seat from nowhere": (1, Install(view(2, (Seat(0, 5, 0), *TWO[1:]), (0, 1, 2), (0, 0, 0)))),
    "a seat of the future": (1, Install(view(2, (Seat(0, FAR, 2),), (0, 1, 2), (0, 0, 0)))),
    "a cut of another view": (1, Install(view(2, TWO, (0, 1, 2), (0, 0)))),
    "a later view with an old seat that was not there": (
        1,
        Install(view(3, (Seat(1, 5, 1),), (0, 1, 2))),
    ),
    "a view with groups of too few members": (1, Install(ViewRecord(2, TWO, (0, 1, 2), (0, 0, 0), ((0,),)))),
    "a message of nobody": (1, Data(1, 9, 0, b"x")),
    "a message far ahead": (1, Data(1, 1, 9, b"x")),
    "an own message that was not sent": (1, Data(1, 0, 1, b"x")),
    "counts of too few members": (1, Beat(1, 0, 0, False, False, ALL, (1, 1))),
    "counts of what was not sent": (1, Beat(1, 0, 0, False, False, ALL, (2, 1, 0))),
    "counts far ahead": (1, Beat(1, 0, 0, False, False, ALL, (1, 10, 0))),
    "a heartbeat of a view far ahead": (1, Beat(FAR, 0, 0, False, False, ALL, ())),
    "a heartbeat with a ballot far ahead": (1, Beat(1, 0, FAR, False, False, ALL, ())),
    "a heartbeat of an incarnation far ahead": (1, Beat(1, FAR, 0, False, False, ALL, ())),
    "a request of an incarnation far ahead": (3, Join(1, FAR, (0,))),
    "a ballot of another node": (2, BeginChange(BALLOT, FIRST)),
    "a ballot far ahead": (1, BeginChange(ballot_above(FAR, 1), FIRST)),
    "a change of another view": (1, BeginChange(BALLOT, view(1, TWO, (0, 1, 2)))),
    "a proposal that cannot follow": (1, Proposal(BALLOT, view(2, TWO, (0, 1, 2), (0,)))),
    "a ballot far ahead that was promised": (1, Outbid(1, ballot_above(FAR, 1))),
    "a report about another view": (1, Stopped(1, BALLOT, 0, True, (0,), 0, None, (1, 1))),
    "a report of what was not sent": (1, Stopped(1, BALLOT, 0, True, (0,), 0, None, (5, 1, 0))),
    "a vote for a view far ahead": (
        1,
        Stopped(1, BALLOT, 0, True, (0,), BALLOT, view(9, TWO, (0, 1, 2)), (1, 1, 0)),
    ),
    "a vote in no ballot": (1, Stopped(1, BALLOT, 0, True, (0,), 0, NEXT, (1, 1, 0))),
    "a question for messages of nobody": (1, Resend(1, 9, 0, 1)),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_cannot_be_is_refused_and_changes_nothing(claim: str) -> None:
    driver = member()
    process = driver.process
    before = (process.standing, process.view, dict(driver.env.saved), process.exchange.received)
    with pytest.raises(RemoteError):
        driver.receive(*CLAIMS[claim])
    assert (process.standing, process.view, dict(driver.env.saved), process.exchange.received) == before
    assert not process.candidates.newcomers() and process.coordinator.seen == 0
    assert driver.take_sent() == [] and driver.take_delivered() == []


def test_a_cut_beyond_what_was_sent_is_refused() -> None:
    driver = member()
    driver.receive(1, BeginChange(BALLOT, FIRST))
    for wrong in (Cut(1, BALLOT, (1, 99, 0), (0, 1, 2)), Cut(1, BALLOT, (1, 1, 0), (0, 1, 9))):
        with pytest.raises(RemoteError):
            driver.receive(1, wrong)
    assert driver.process.exchange.cut is None


def test_bytes_that_are_no_part_of_the_state_are_refused() -> None:
    two = Seating({0: (0,), 1: (0,)}, others=frozenset({5}))
    driver = ProcessDriver(lambda env: ViewSynchrony(env, 0, two, ViewOptions()), me=5, now=9)
    driver.process.join((0,))
    record = view(2, (Seat(0, 0, 0), Seat(1, 0, 0), Seat(5, 9, 2)), (0, 1, 5), (0, 0))
    driver.receive(0, Install(record))
    for source, wrong in ((5, StateChunk(2, 0, 1, b"x")), (0, StateChunk(2, 0, 1 << 40, b"x"))):
        with pytest.raises(RemoteError):
            driver.receive(source, wrong)
    driver.receive(0, StateChunk(2, 0, 1, b"x"))
    assert driver.process.view is not None and driver.process.view.newcomers == (5,)


def test_a_node_that_the_cluster_does_not_have_gets_no_seat() -> None:
    driver = member()
    seats = (*FIRST.seats, Seat(7, 9, 2))
    with pytest.raises(RemoteError, match="view 2, which has unknown nodes"):
        driver.receive(1, Install(view(2, seats, (0, 1, 2, 7), (0, 0, 0))))
    with pytest.raises(RemoteError, match="node 7 asks for a seat, but is not known"):
        driver.receive(7, Join(1, 9, (0,)))
    assert driver.process.newest.number == 1
    driver.process.on_nodes(dict.fromkeys((0, 1, 2, 7), "member"))
    driver.receive(1, Install(view(2, seats, (0, 1, 2, 7), (0, 0, 0))))
    assert driver.process.newest.number == 2, "it has come to the cluster"


def test_messages_of_other_views_and_duplicates_are_ignored() -> None:
    driver = member()
    driver.receive(1, Data(1, 1, 0, b"theirs"), Data(0, 1, 1, b"old"), Data(2, 1, 0, b"early"))
    assert driver.take_delivered() == []


def test_a_view_that_is_known_may_come_again_from_one_that_has_left() -> None:
    """Who leads the change with which it leaves tells everybody of the view; others may have been faster."""
    driver = member()
    without = view(2, TWO, (0, 1), (1, 1, 0))
    driver.receive(1, BeginChange(BALLOT, FIRST), Install(without))
    assert driver.process.newest.number == 2
    driver.receive(2, Install(without), Install(FIRST))
    assert driver.process.newest.number == 2
    with pytest.raises(RemoteError, match="node 2 names another view 2"):
        driver.receive(2, Install(view(2, TWO, (0, 2), (1, 1, 0))))


def _one_that_left() -> ProcessDriver[ViewSynchrony]:
    """Member 0 of three, after it has left with view 2."""
    driver = member()
    driver.process.leave()
    driver.receive(1, BeginChange(BALLOT, FIRST), Install(WITHOUT_ZERO))
    assert driver.process.is_out
    driver.take_sent()
    return driver


@pytest.mark.parametrize(
    "behind",
    [
        Beat(1, 0, 0, False, False, ALL, (1, 1, 0)),
        Join(1, 5, (0,)),
        BeginChange(ballot_above(BALLOT, 2), FIRST),
    ],
    ids=["a heartbeat", "a request for a seat", "a change of an earlier view"],
)
def test_one_that_has_left_tells_those_that_are_behind_with_which_view(behind: Message) -> None:
    """They may know nobody else: all others may have left too."""
    driver = _one_that_left()
    driver.receive(2, behind)
    assert driver.take_sent() == [(2, Install(WITHOUT_ZERO))]


def test_a_view_from_one_that_left_before_is_not_taken_and_is_no_lie() -> None:
    """It answers a question of long ago. Meanwhile it is neither in the view that is known nor in its own."""
    driver = _one_that_left()
    driver.receive(2, Install(view(3, WITHOUT_ZERO.seats[1:], (2,), (0, 0))))
    driver.receive(1, Install(view(4, WITHOUT_ZERO.seats[1:], (2,), (0,))))
    assert driver.process.newest.number == 3
    driver.receive(2, Install(view(4, WITHOUT_ZERO.seats[1:], (2,), (0,))))
    assert driver.process.newest.number == 4


@pytest.mark.parametrize("claim", [Install(FEW), BeginChange(BALLOT, FEW)], ids=["a view", "a change of it"])
def test_a_later_view_with_few_of_the_voters_is_not_believed_while_most_are_heard(claim: Message) -> None:
    """It may be a lie. If it is true, the voters that have left are soon not heard any more."""
    driver = member()
    driver.receive(1, claim)
    assert driver.process.newest.number == 1 and driver.process.standing is MEMBER
    for _ in range(ViewOptions().silences_max):
        driver.fire("beat")
    driver.receive(1, claim)
    assert driver.process.newest.number == FEW.number
