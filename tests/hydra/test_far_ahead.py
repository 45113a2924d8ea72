"""Numbers far beyond those that a sequencer can have reached: bounded work for some, refusal for the rest."""

import pytest

from ordercast.core import RemoteError
from ordercast.protocols.hydra.lane import AHEAD_MAX, RUN_MAX
from ordercast.protocols.hydra.limits import CLOCK_AHEAD_MAX
from ordercast.protocols.hydra.messages import Flush, Flushes, Groupcast
from ordercast.protocols.hydra.reception import RUNS_MAX
from tests.hydra.lab import CLIENT, ReceiverBench, receiver, removed

FAR = 1 << 31
TOO_FAR = 1 << 40
A_HANDLER = RUNS_MAX * RUN_MAX
"""The most drops that one handler may notify of."""


def cast(number: int, clock: int) -> Groupcast:
    return Groupcast(1, clock, (1,), (number,), CLIENT, b"")


def drops(lab: ReceiverBench) -> int:
    """How many drops were notified of since the last time this was asked."""
    return sum(text.startswith("<D,") for text in lab.delivered())


def test_a_message_far_ahead_costs_bounded_work_a_handler() -> None:
    lab = receiver()
    lab.receive(21, cast(FAR, 10))
    assert lab.delivered() == [], "nothing needs the missing ones yet"
    lab.hears("<F,2,{(1,0)},20>")
    assert drops(lab) == A_HANDLER
    for _ in range(3):
        lab.process.on_timer("patience")
        assert drops(lab) == A_HANDLER
    lab.receive(21, cast(4 * A_HANDLER + 1, 5))
    assert lab.delivered()[:1] == [f"<G,1,{{(1,{4 * A_HANDLER + 1})}},5>"], "what is still to come may come"


def test_a_flush_far_ahead_costs_bounded_work_a_handler() -> None:
    lab = receiver()
    lab.receive(21, Flush(1, 10, (0, FAR, 0)))
    lab.hears("<G,2,{(1,1)},5>")
    assert drops(lab) == A_HANDLER
    lab.process.on_timer("tick")
    assert drops(lab) <= 2 * A_HANDLER


def test_a_gap_that_nothing_needs_is_notified_of_in_bounded_portions_too() -> None:
    lab = receiver()
    lab.receive(21, Flush(1, 10, (0, FAR, 0)))
    told = []
    for _ in range(12):
        lab.env.now += lab.process._tick_ns()
        lab.process.on_timer("tick")
        told.append(drops(lab))
    assert 0 < max(told) <= A_HANDLER
    assert sum(told) > 4 * A_HANDLER, "and it goes on"


@pytest.mark.parametrize(
    "message",
    [
        cast(TOO_FAR, 10),
        Flush(1, 10, (0, TOO_FAR, 0)),
        cast((1 << 63) - 1, 10),
        cast(AHEAD_MAX + 2, 10),
        cast(2, 2 * CLOCK_AHEAD_MAX),
        Flushes((Flush(2, 20, (0, 0, 0)), Flush(1, 10, (0, TOO_FAR, 0)))),
    ],
    ids=["message", "flush", "the highest number there is", "just too far", "clock", "one of two flushes"],
)
def test_what_no_sequencer_can_have_reached_is_refused(message: Groupcast | Flush | Flushes) -> None:
    lab = receiver()
    lab.hears("<G,1,{(1,1)},5>")
    with pytest.raises(RemoteError):
        lab.receive(21, message)
    assert lab.delivered() == [], "nothing of it counts"
    assert lab.gives("<G,1,{(1,2)},6>", "<F,2,{(1,0)},20>") == ["<G,1,{(1,1)},5>", "<G,1,{(1,2)},6>"]


@pytest.mark.parametrize(
    "message",
    [Groupcast(1, 10, (1, 2), (1, TOO_FAR), CLIENT, b""), Flush(1, 10, (0, 0, TOO_FAR))],
    ids=["message", "flush"],
)
def test_a_number_of_another_group_is_refused_too(message: Groupcast | Flush) -> None:
    lab = receiver()
    with pytest.raises(RemoteError):
        lab.receive(21, message)
    assert lab.process._merge.lanes[1].report(1)[2] == 0, "or it would be reported to the service"


def test_the_last_numbers_of_a_removed_sequencer_cost_bounded_work_too() -> None:
    lab = receiver()
    lab.decide(removed(1, 10, (0, FAR, 0)))
    lab.hears("<F,2,{(1,0)},20>")
    assert 0 < drops(lab) <= 2 * A_HANDLER
