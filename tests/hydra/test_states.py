"""States of lanes, planned steps and sequencers: every transition is taken, all others are refused."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from ordercast.core import LifeCycle, RemoteError
from ordercast.protocols.hydra import lane as lane_module
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import LANE_LIFE, LaneState
from ordercast.protocols.hydra.messages import (
    NOBODY,
    Announce,
    Flush,
    Plans,
    Refreshed,
    Report,
    Revived,
    Welcome,
)
from ordercast.protocols.hydra.new_life import NEW_LIFE, NewLifeState
from ordercast.protocols.hydra.planned import STEP_LIFE, Stage
from ordercast.protocols.hydra.sequencer_life import SEQUENCER_LIFE, SequencerState
from tests.core.life_cycles import record
from tests.hydra.lab import (
    LEADER,
    ReceiverBench,
    active,
    added,
    receiver,
    removed,
    sequencer,
)

ROOT = Path(__file__).parents[2]
PACKAGE = Path(lane_module.__file__).parent
START = 1000


def state_of(lab: ReceiverBench, number: int) -> LaneState:
    """The state of a lane."""
    return lab.process._merge.lanes[number].state


def stage_of(lab: ReceiverBench) -> Stage:
    """How far the planned step is."""
    return lab.process._follower.planned.stage


# Lanes


def test_a_lane_takes_every_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = record(monkeypatch, LANE_LIFE)
    lab = receiver()
    assert state_of(lab, 1) is LaneState.ACTIVE, "those of the first configuration start at once"
    lab.plan("removed", 1)
    assert state_of(lab, 1) is LaneState.FROZEN
    lab.receive(LEADER, Announce(0, active(1, 2), Plans("removed", 1, 29), None))
    assert state_of(lab, 1) is LaneState.FROZEN, "another plan for the same sequencer"
    lab.decide(removed(1, 20, (0, 1, 0)))
    assert state_of(lab, 1) is LaneState.ENDING
    unasked = receiver()
    unasked.decide(removed(1, 20, (0, 1, 0)))
    assert state_of(unasked, 1) is LaneState.ENDING, "it never heard of the plan"
    new = receiver(forgot=True, now=START)
    new.receive(LEADER, Revived(START, 0, 0, 0, 0, 2, active(1, 2)))
    assert state_of(new, 1) is LaneState.BLIND, "it lost what it knew"
    new.receive(21, Refreshed(START, Flush(1, 30, (0, 4, 0))))
    assert state_of(new, 1) is LaneState.ACTIVE
    assert taken == set(LANE_LIFE.table)


def test_a_lane_is_joining_from_the_first_flush_to_the_decision() -> None:
    lab = receiver()
    lab.plan("added", 3)
    assert 3 not in lab.process._merge.lanes
    lab.hears("<F,3,{},40>")
    assert state_of(lab, 3) is LaneState.JOINING
    lab.decide(added(3, 50))
    assert state_of(lab, 3) is LaneState.ACTIVE


def test_a_removal_is_refused_where_the_lane_is_ending_and_leaves_all_as_it_was() -> None:
    lab = receiver()
    lab.hears("<G,1,{(1,2)},15>")
    lab.decide(removed(1, 20, (0, 2, 0)))
    before = (lab.buffer(), lab.process._follower.steps, list(lab.process._follower.boundaries))
    with pytest.raises(RemoteError, match="lane: event 'finish' is not allowed in state 'ending'"):
        lab.decide(removed(1, 30, (0, 1, 0)), start=1)
    assert before == (lab.buffer(), lab.process._follower.steps, list(lab.process._follower.boundaries))
    with pytest.raises(RemoteError, match="lane: event 'freeze' is not allowed in state 'ending'"):
        lab.plan("removed", 1, steps=1)


def test_a_sequencer_that_is_being_added_cannot_be_removed() -> None:
    lab = receiver()
    lab.plan("added", 3)
    lab.hears("<F,3,{},40>")
    with pytest.raises(RemoteError, match="lane: event 'freeze' is not allowed in state 'joining'"):
        lab.plan("removed", 3)
    with pytest.raises(RemoteError, match="lane: event 'finish' is not allowed in state 'joining'"):
        lab.decide(removed(3, 20, (0, 0, 0)))
    assert state_of(lab, 3) is LaneState.JOINING


def test_a_lane_starts_once() -> None:
    lane = Lane(1, 21, 3)
    lane.start(10, (0, 4, 0), 1)
    with pytest.raises(RemoteError, match="lane: event 'start' is not allowed in state 'active'"):
        lane.start(20, (0, 9, 0), 1)
    assert (lane.front, lane.clock) == (4, 10)


def test_a_lane_that_is_kept_and_taken_back_is_in_the_same_state() -> None:
    lane = Lane(1, 21, 3)
    for step in (lambda: lane.start(10, (0, 4, 0), 1), lane.freeze, lambda: lane.finish((2, 6, 1), 1)):
        step()
        again = Lane.at(lane.place())
        assert again.place() == lane.place()
        assert again.state is lane.state
    assert lane.state is LaneState.ENDING


def test_only_a_lane_writes_its_fields() -> None:
    fields, written = set(Lane.__slots__), []
    for path in sorted(PACKAGE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in fields:
                owner = node.value.id if isinstance(node.value, ast.Name) else "?"
                if path.name != "lane.py":
                    written.append((path.name, owner, node.attr))
    assert [found for found in written if found[1] != "self"] == []


# A new life


def test_a_new_life_takes_every_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = record(monkeypatch, NEW_LIFE)
    assert receiver().process._new_life.state is NewLifeState.WHOLE, "it lost nothing"
    lab = receiver(forgot=True, now=START)
    states = [lab.process._new_life.state]
    lab.receive(LEADER, Revived(START, 0, 0, 0, 0, 1, active(1)))
    states.append(lab.process._new_life.state)
    lab.receive(21, Refreshed(START, Flush(1, 30, (0, 4, 0))))
    states.append(lab.process._new_life.state)
    assert states == [NewLifeState.ASKING, NewLifeState.REFRESHING, NewLifeState.WHOLE]
    assert taken == set(NEW_LIFE.table)


# The planned step


def test_the_planned_step_takes_every_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = record(monkeypatch, STEP_LIFE)
    lab = receiver()
    lab.decide(removed(2, 10, (0, 0, 0)))
    assert stage_of(lab) is Stage.IDLE, "it never heard of the plan"
    lab.plan("added", 3, steps=1)
    assert stage_of(lab) is Stage.ASKED
    lab.plan("added", 4, steps=1)
    lab.hears("<F,4,{},40>")
    assert stage_of(lab) is Stage.REPORTED
    lab.plan("added", 4, steps=1)
    assert stage_of(lab) is Stage.REPORTED, "the same plan again"
    lab.plan("added", 5, steps=1)
    assert stage_of(lab) is Stage.ASKED, "another plan takes its place"
    lab.decide(added(5, 50), start=1)
    assert stage_of(lab) is Stage.IDLE
    lab.plan("removed", 5, steps=2)
    assert stage_of(lab) is Stage.REPORTED
    lab.decide(removed(5, 60, (0, 0, 0)), start=2)
    assert stage_of(lab) is Stage.IDLE
    assert taken == set(STEP_LIFE.table)


def test_a_report_stands() -> None:
    lab = receiver()
    lab.plan("removed", 1)
    with pytest.raises(RemoteError, match="planned step: event 'report' is not allowed in state 'reported'"):
        lab.process._follower.planned.answer(Report(0, 1, 9, (9, 9, 9)))
    assert lab.process._follower.planned.report == Report(0, 1, 0, (0, 0, 0))


# Sequencers


def test_a_sequencer_takes_every_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = record(monkeypatch, SEQUENCER_LIFE)
    lab = sequencer(now=START)
    states = [lab.process.state]
    lab.receive(LEADER, Welcome(START, 1, 0))
    states.append(lab.process.state)
    lab.receive(LEADER, Announce(1, active(2), None, None))
    states.append(lab.process.state)
    lab.pass_time(lab.env.timers["join"] - lab.env.now)
    states.append(lab.process.state)
    assert states == [*SequencerState, SequencerState.ASKING]
    assert taken == set(SEQUENCER_LIFE.table)


def test_a_sequencer_has_a_number_while_it_serves_and_at_no_other_time() -> None:
    lab = sequencer(now=START)
    assert lab.process.number == NOBODY
    with pytest.raises(RemoteError, match="number 0"):
        lab.receive(LEADER, Welcome(START, NOBODY, 0))
    assert lab.process.state is SequencerState.ASKING
    lab.receive(LEADER, Welcome(START, 1, 0))
    assert (lab.process.state, lab.process.number) == (SequencerState.SERVING, 1)
    lab.receive(LEADER, Announce(1, active(2), None, None))
    assert (lab.process.state, lab.process.number) == (SequencerState.RETIRED, NOBODY)


def test_a_retired_sequencer_whose_clock_stands_still_stays_retired() -> None:
    lab = sequencer(now=START)
    lab.receive(LEADER, Welcome(START, 1, 0), Announce(1, active(2), None, None))
    states = []
    for now in (START, START + 1, START + 2):
        lab.env.now = now
        lab.process.on_timer("join")
        states.append(lab.process.state)
    assert states == [SequencerState.RETIRED, SequencerState.RETIRED, SequencerState.ASKING]


# The page


def drawn(name: str) -> set[tuple[str, str, str]]:
    """The arrows of a life cycle on the page: from, event, to."""
    page = (ROOT / "docs" / "protocols" / "hydra.md").read_text()
    block = page.split("## States\n")[1].split("```")[1]
    part = re.split(r"^(\w[\w ]*):\n", block, flags=re.MULTILINE)
    text = dict(zip(part[1::2], part[2::2], strict=True))[name]
    # An arrow ends where the next begins, so the state between two of them counts twice.
    return set(re.findall(r"(?=\b(\w+) -+ (\w+) -+> (\w+))", text))


@pytest.mark.parametrize(
    ("name", "life"),
    [
        ("Lane", LANE_LIFE),
        ("New life", NEW_LIFE),
        ("Planned step", STEP_LIFE),
        ("Sequencer", SEQUENCER_LIFE),
    ],
)
def test_the_page_draws_the_tables(name: str, life: LifeCycle[Any, Any]) -> None:
    assert drawn(name) == {(state.value, event.value, to.value) for (state, event), to in life.table.items()}
