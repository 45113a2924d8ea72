"""What no correct process says is refused, and changes nothing."""

import pytest

from ordercast.components.cross_shard import FailureCoordinator
from ordercast.components.cross_shard.claims import CLOCK_AHEAD_MAX, NEVER
from ordercast.components.cross_shard.marks import Lost
from ordercast.components.cross_shard.messages import (
    Certain,
    FindMessages,
    Floors,
    FoundMessages,
    Gone,
    Late,
    Promised,
    Question,
    Shown,
)
from ordercast.components.network_ordered import LogEntry
from ordercast.core import Message, RemoteError
from tests.hydra_txn.lab import CLIENT, Lab

MARK = (1, 0, 1)
FAR = 2 * CLOCK_AHEAD_MAX
LOSSES = (Lost(MARK, 200),)
ENTRY = LogEntry(100, 1, 1, CLIENT, b"", (0, 1), (1, 1))


def shape(lab: Lab) -> tuple[object, ...]:
    """All of the coordinator and of replica 1 that a message could change."""
    coordinator, replica = lab.drivers[41].process, lab.replica(1)
    assert isinstance(coordinator, FailureCoordinator)
    return (
        coordinator._rulings.snapshot(),
        sorted(coordinator._cases),
        dict(coordinator._clocks),
        dict(replica.book),
        tuple(replica.log.entries),
        frozenset(replica.log.noops),
        dict(replica.aside),
        replica.ordering.state(),
    )


def refuse(to: int, source: int, message: Message, match: str) -> None:
    """Let a message come, which must be refused and leave everything as it is."""
    lab = Lab()
    lab.call("a")
    before = shape(lab)
    with pytest.raises(RemoteError, match=match):
        lab.drivers[to].receive(source, message)
    assert shape(lab) == before
    assert lab.drivers[to].take_sent() == []
    lab.finish("a")


@pytest.mark.parametrize(
    "message",
    [Question(LOSSES), FoundMessages((ENTRY,)), Gone(LOSSES), Floors((1, 1))],
    ids=lambda message: type(message).__name__,
)
@pytest.mark.parametrize("source", [0, 4, CLIENT, 21, 31])
def test_a_replica_obeys_coordinators_alone(message: Message, source: int) -> None:
    refuse(1, source, message, f"node {source} sent a {type(message).__name__}, but is no coordinator")


@pytest.mark.parametrize(
    "message",
    [
        FindMessages(LOSSES),
        Shown(ENTRY),
        Promised(0, 0, (MARK,)),
        Certain(1),
        Late(((1, (0,)),)),
    ],
    ids=lambda message: type(message).__name__,
)
@pytest.mark.parametrize("source", [CLIENT, 21, 31])
def test_a_coordinator_hears_replicas_alone(message: Message, source: int) -> None:
    refuse(41, source, message, f"node {source} sent a {type(message).__name__}, but is no replica")


@pytest.mark.parametrize(
    ("message", "match"),
    [
        (Certain(FAR), "is certain up to"),
        (FindMessages((Lost((1, 2, 1), 200),)), "asks for a message"),
        (FindMessages((Lost(MARK, FAR),)), "asks for a message"),
        (Shown(LogEntry(100, 1, 1, CLIENT, b"")), "shows a message"),
        (Shown(LogEntry(100, 1, 1, CLIENT, b"", (0, 1), (1,))), "shows a message"),
        (Shown(LogEntry(100, 1, 1, CLIENT, b"", (0, 0), (1, 1))), "shows a message"),
        (Shown(LogEntry(100, 1, 1, CLIENT, b"", (0, 2), (1, 1))), "shows a message"),
        (Shown(LogEntry(FAR, 1, 1, CLIENT, b"", (0, 1), (1, 1))), "shows a message"),
        (Late(((1, ()),)), "tells of a transaction"),
        (Late(((1, (0, 0)),)), "tells of a transaction"),
        (Late(((1, (0, 2)),)), "tells of a transaction"),
    ],
)
def test_a_coordinator_refuses_what_cannot_be(message: Message, match: str) -> None:
    refuse(41, 0, message, match)


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        (LogEntry(100, 1, 1, CLIENT, b"", (0, 1), (1,)), "has numbers"),
        (LogEntry(100, 1, 1, CLIENT, b"", (0, 9), (1, 1)), "group"),
    ],
)
def test_a_replica_takes_nothing_that_no_sequencer_stamps(entry: LogEntry, match: str) -> None:
    refuse(1, 41, FoundMessages((entry,)), match)


@pytest.mark.parametrize(
    "message",
    [
        FoundMessages((ENTRY, LogEntry(FAR, 1, 2, CLIENT, b"", (0, 1), (2, 2)))),
        Gone((Lost(MARK, FAR),)),
        Question((Lost(MARK, FAR),)),
        Floors((1, FAR)),
        Floors((NEVER - 1, 1)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_replica_refuses_clocks_in_the_far_future(message: Message) -> None:
    """A message that is found there would hold back all others for ever."""
    refuse(1, 41, message, f"sent a {type(message).__name__} up to .* too far ahead of")


def test_groups_without_replicas_are_certain_of_everything() -> None:
    lab = Lab()
    lab.call("a")
    lab.drivers[1].receive(41, Floors((1, NEVER)))
    lab.finish("a")
