"""What no correct replica says is refused, and changes nothing."""

from collections.abc import Callable

import pytest

from ordercast.components.network_ordered.limits import (
    CLOCK_AHEAD_MAX,
    NUMBERS_AHEAD_MAX,
    SLOTS_AHEAD_MAX,
    STATE_BYTES_MAX,
    VIEWS_AHEAD_MAX,
)
from ordercast.components.network_ordered.messages import (
    BaseChunk,
    Entries,
    GapCommit,
    GapRequest,
    Return,
    StartView,
    StepsTold,
    SyncPrepare,
    ViewChange,
    ViewChangeRequest,
)
from ordercast.components.network_ordered.place import LogEntry, LogPlace
from ordercast.core import Message, RemoteError
from tests.network_ordered.lab import CLIENT, Lab

START = LogPlace()
FAR_CLOCK = LogPlace(2 * CLOCK_AHEAD_MAX, 1, ((1, 1),))
NEAR = LogPlace(1_000_000_000, 1, ((1, 5),))
FAR_BASE = LogPlace(50, 1, ((1, 2 * NUMBERS_AHEAD_MAX),))
FAR_SLOT = (1, 2 * SLOTS_AHEAD_MAX)
LONG = LogPlace(50, 1, ((1, 2 * SLOTS_AHEAD_MAX),))


def lab_with_a_certain_call() -> Lab:
    """Replicas 0 to 2, of which 0 leads, have a call for certain and one that is not."""
    lab = Lab()
    lab.call("a")
    lab.wait_ms(10)
    lab.call("b")
    assert lab.replica(1).log.synced == 1
    return lab


def shape(lab: Lab, node: int) -> tuple[object, ...]:
    """All of a replica that a message could change."""
    replica = lab.replica(node)
    log, views = replica.log, replica.views
    return (
        tuple(log.entries),
        frozenset(log.noops),
        (log.base, log.synced, log.end),
        (views.view, views.normal, views.status, dict(views._lives)),
        (replica.ledger.executed, replica.ledger.executor.snapshot()),
        (replica.catch_up.target, dict(replica.gaps.open)),
        replica.ordering.state(),
    )


def refuse(lab: Lab, source: int, message: Message, match: str) -> None:
    """Let a message come to replica 1, which must refuse it and stay as it is."""
    before = shape(lab, 1)
    with pytest.raises(RemoteError, match=match):
        lab.drivers[1].receive(source, message)
    assert shape(lab, 1) == before
    assert lab.drivers[1].take_sent() == []


@pytest.mark.parametrize(
    "claim",
    [
        lambda slots: GapCommit(0, 0, slots),
        lambda slots: SyncPrepare(0, 0, START, START, slots, False),
    ],
    ids=["gap agreement", "synchronisation"],
)
def test_a_leader_that_gives_up_a_certain_slot_is_refused(
    claim: Callable[[tuple[tuple[int, int], ...]], Message],
) -> None:
    lab = lab_with_a_certain_call()
    refuse(lab, 0, claim(((1, 2), (1, 1))), "gives up slot .* which is certain")
    lab.finish("a", "b")


def test_a_slot_of_a_sequencer_that_does_not_count_is_passed_over() -> None:
    lab = lab_with_a_certain_call()
    before = shape(lab, 1)
    lab.drivers[1].receive(0, GapCommit(0, 0, ((9, 1),)))
    assert shape(lab, 1) == before
    lab.finish("a", "b")


def test_only_the_leader_gives_slots_up() -> None:
    lab = lab_with_a_certain_call()
    before = shape(lab, 1)
    lab.drivers[1].receive(2, GapCommit(0, 0, ((1, 2),)))
    lab.drivers[1].receive(2, SyncPrepare(0, 0, START, START, ((1, 2),), False))
    assert shape(lab, 1) == before
    assert lab.drivers[1].take_sent() == []
    lab.finish("a", "b")


@pytest.mark.parametrize(
    ("message", "match"),
    [
        (ViewChangeRequest(2 * VIEWS_AHEAD_MAX), "too far ahead of view"),
        (ViewChange(2 * VIEWS_AHEAD_MAX, 0, 0, START, START, ()), "too far ahead of view"),
        (Return(2 * CLOCK_AHEAD_MAX), "too far ahead of"),
        (StartView(3, 0, START, FAR_CLOCK, (), (), b""), "too far ahead of"),
        (StartView(3, 0, START, LONG, (), (), b""), "too long"),
        (StartView(1, 0, START, START, (), (), b""), "which it does not lead"),
        (ViewChange(1, 0, 0, FAR_BASE, FAR_BASE, ()), "far beyond"),
        (ViewChange(1, 0, 0, START, START, (FAR_SLOT,)), "too far ahead of"),
        (SyncPrepare(0, 0, START, LONG, (), False), "too long"),
        (SyncPrepare(0, 0, START, START, (FAR_SLOT,), False), "too far ahead of"),
        (BaseChunk(FAR_CLOCK, 1, 0, b"x"), "too far ahead of"),
        (BaseChunk(NEAR, 2 * STATE_BYTES_MAX, 0, b"x"), "1 bytes at 0 of a state of"),
        (BaseChunk(NEAR, 2, 1, b"xy"), "2 bytes at 1 of a state of 2 bytes"),
        (BaseChunk(NEAR, 2, 0, b""), "0 bytes at 0 of a state of 2 bytes"),
        (GapRequest(0, 0, (FAR_SLOT,)), "too far ahead of"),
        (GapCommit(0, 0, (FAR_SLOT,)), "too far ahead of"),
        (Entries(0, 0, (LogEntry(50, *FAR_SLOT, CLIENT, b""),), ()), "too far ahead of"),
        (StepsTold(0, b"\xc1"), "tells of no steps"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else "",
)
def test_what_cannot_be_is_refused(message: Message, match: str) -> None:
    lab = lab_with_a_certain_call()
    refuse(lab, 0, message, match)
    lab.finish("a", "b")


def test_who_is_no_replica_is_refused() -> None:
    lab = lab_with_a_certain_call()
    refuse(lab, CLIENT, ViewChangeRequest(1), "is no replica")


def test_a_state_does_not_change_its_size() -> None:
    """Else a replica that catches up could be kept asking for ever."""
    lab = lab_with_a_certain_call()
    lab.drivers[1].receive(0, BaseChunk(NEAR, 4, 0, b"ab"))
    lab.drivers[1].take_sent()
    refuse(lab, 0, BaseChunk(NEAR, 6, 2, b"cd"), "a state of 4 bytes goes on as one of 6 bytes")
    lab.finish("a", "b")


def test_a_state_that_is_none_is_refused() -> None:
    lab = lab_with_a_certain_call()
    ahead = LogPlace(lab.clock + 10, 1, ((1, 5),))
    refuse(lab, 0, BaseChunk(ahead, 3, 0, b"\xc1\xc1\xc1"), "a state that cannot be taken")
    lab.finish("a", "b")
