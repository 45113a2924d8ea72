"""Steps, lives, clocks, numbers and nodes that cannot be: refused, and nothing has changed."""

import pytest

from ordercast.components.consensus.messages import Accept
from ordercast.core import Message, NodeId, RemoteError
from ordercast.protocols.hydra.limits import CLOCK_AHEAD_MAX, NUMBERS_MAX, STEPS_MAX
from ordercast.protocols.hydra.messages import Announce, Flush, Join, Plans, Report, Step, Steps
from ordercast.protocols.hydra.registry import decode
from tests.hydra.ensemble import Ensemble
from tests.hydra.lab import LEADER, SEQUENCERS, active, added, aggregator, receiver, removed, sender

ACTIVE = tuple(SEQUENCERS.items())
NOBODY_THERE = 999
FAR = CLOCK_AHEAD_MAX + 10**12
HIGHEST = (1 << 63) - 1

ANNOUNCEMENTS: dict[str, tuple[NodeId, Announce]] = {
    "very many steps": (LEADER, Announce(HIGHEST, ACTIVE, None, None)),
    "one step too many": (LEADER, Announce(STEPS_MAX + 1, ACTIVE, None, None)),
    "not of the service": (0, Announce(0, ACTIVE, None, None)),
    "a node that is not there": (LEADER, Announce(0, ((1, NOBODY_THERE),), None, None)),
    "a number that none has": (LEADER, Announce(0, ((HIGHEST, 21),), None, None)),
    "very many sequencers": (LEADER, Announce(0, ACTIVE * 600, None, None)),
    "a plan for a node that is not there": (
        LEADER,
        Announce(0, ACTIVE, Plans("added", 3, NOBODY_THERE), None),
    ),
    "a step with too few numbers": (
        LEADER,
        Announce(1, ACTIVE, None, Step("removed", 1, 21, 1, 5, (1,))),
    ),
    "a step with numbers that none reaches": (
        LEADER,
        Announce(1, ACTIVE, None, Step("removed", 1, 21, 1, 5, (0, NUMBERS_MAX + 1, 0))),
    ),
    "a removed sequencer that is active": (LEADER, Announce(1, ACTIVE, None, removed(1, 5, (0, 0, 0)))),
    "an added sequencer that is not active": (LEADER, Announce(1, ACTIVE, None, added(3, 5))),
    "more configurations than steps": (
        LEADER,
        Announce(1, active(1, 2, 3), None, added(3, 5, config=2)),
    ),
}


@pytest.mark.parametrize("what", ANNOUNCEMENTS)
def test_an_announcement_that_cannot_be_is_refused_by_all_and_later_ones_count(what: str) -> None:
    source, message = ANNOUNCEMENTS[what]
    for process in (sender().process, receiver().process, aggregator().process):
        before = process.explain()
        with pytest.raises(RemoteError):
            process.on_message(source, message)
        assert process.explain() == before
        process.on_message(LEADER, Announce(0, ACTIVE, None, None))


def test_a_sender_sends_after_an_announcement_of_very_many_steps() -> None:
    lab = sender()
    with pytest.raises(RemoteError, match="tells of 9223372036854775807 steps"):
        lab.process.on_message(LEADER, Announce(HIGHEST, (), None, None))
    lab.receive(LEADER, Announce(0, ACTIVE, None, None))
    assert lab.process.submit((1,), b"goes")


def test_a_sender_sends_to_no_receiver_that_is_called_a_sequencer() -> None:
    lab = sender()
    with pytest.raises(RemoteError, match="names sequencer 1 at node 0; there is none"):
        lab.process.on_message(LEADER, Announce(0, ((1, 0),), None, None))


@pytest.mark.parametrize(
    "message",
    [Flush(1, FAR, (0, 1, 0)), Flush(1, 5, (0, NUMBERS_MAX + 1, 0)), Flush(1, 5, (0, 1))],
    ids=["clock", "number", "groups"],
)
def test_a_flush_that_cannot_be_is_refused(message: Flush) -> None:
    for process in (receiver().process, aggregator().process):
        before = process.explain()
        with pytest.raises(RemoteError, match="flush"):
            process.on_message(21, message)
        assert process.explain() == before


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (21, Join(FAR)),
        (NOBODY_THERE, Join(1)),
        (0, Report(0, 1, FAR, (0, 0, 0))),
        (0, Report(0, 1, 5, (0, NUMBERS_MAX + 1, 0))),
        (21, Report(0, 1, 5, (0, 0, 0))),
    ],
    ids=["a life in the future", "no sequencer", "a clock", "a number", "no receiver"],
)
def test_the_service_refuses_what_cannot_be(source: NodeId, message: Message) -> None:
    service = Ensemble().service
    before = service.process.explain()
    with pytest.raises(RemoteError, match=f"node {source}"):
        service.process.on_message(source, message)
    assert service.process.explain() == before


def test_steps_that_cannot_be_are_refused() -> None:
    lab = receiver()
    for source, message in (
        (0, Steps(0, ())),
        (LEADER, Steps(HIGHEST, ())),
        (LEADER, Steps(0, (Step("added", 3, NOBODY_THERE, 1, 5, (0, 0, 0)),))),
        (LEADER, Steps(0, (added(3, 5, config=2),))),
        (LEADER, Steps(0, (added(3, 5), removed(1, 9, (0, 0, 0), config=1)))),
        (LEADER, Steps(0, (added(3, 5), Step("void", 4, 24, 2, 0, ())))),
    ):
        with pytest.raises(RemoteError, match=f"node {source}"):
            lab.process.on_message(source, message)


def test_a_value_of_the_log_that_is_no_command_is_obeyed_by_nobody() -> None:
    service = Ensemble().service
    assert service.process._log.propose(b"nonsense")
    assert service.process.explain().state["commands refused"] == 1
    with pytest.raises(RemoteError, match="not a command of the service"):
        decode(Accept(0, 0, b"\xff", 0).value)
