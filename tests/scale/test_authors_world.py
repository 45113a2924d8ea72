"""The world of EpTO's authors: rounds together, pairs that never hear each other, and what counts when."""

import numpy as np
import pytest

from ordercast.core import NodeId
from ordercast.engines.epto.holes import Hole, count_as_authors
from ordercast.engines.epto.network import Latencies
from ordercast.engines.epto.run import run
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.timeline import timeline
from tests.scale.reference import World
from tests.scale.test_agreement import assert_same, both

TOGETHER = Setup(processes=60, fanout=8, ttl=12, in_step=True, seed=4)
ROUND = TOGETHER.round_ticks


def test_rounds_begin_together_and_their_drift_does_not_add_up() -> None:
    line = timeline(TOGETHER, 1_000 * ROUND)
    turns = line.turn_tick[:, :999]
    assert (turns[:, 0] == 0).all()
    late = turns - ROUND * np.arange(999)
    assert set(np.unique(late).tolist()) == {-1, 0, 1}
    assert late[:, 1:].std(axis=0).min() > 0, "no two rounds have all processes at the same tick"


def test_newcomers_fall_in_with_the_others() -> None:
    setup = Setup(processes=60, fanout=8, ttl=12, in_step=True, churn=0.1)
    line = timeline(setup, 40 * ROUND)
    for process in np.flatnonzero(line.turns > 0):
        first, count = line.first_turn[process], line.turns[process]
        at = line.turn_tick[line.slot[process], first : first + count]
        assert at[0] == line.joined[process] and at[0] % ROUND == 0
        assert (abs(at - at[0] - ROUND * np.arange(count)) <= 1).all()


class Listening(World):
    """Notes who heard whom."""

    def __init__(self, setup: Setup, latencies: Latencies, ticks: int) -> None:
        super().__init__(setup, latencies, ticks)
        self.pairs: set[tuple[NodeId, NodeId]] = set()

    def arrive(self) -> None:
        self.pairs |= {(source, target) for source, target, _ in self.under_way.get(self.now, ())}
        super().arrive()


def nodes(matrix: np.ndarray) -> Latencies:
    """Those of a matrix, and no others."""
    return Latencies(matrix.astype(np.int16), np.empty(0, np.int32))


def test_pairs_without_a_measurement_never_hear_each_other() -> None:
    matrix = np.full((8, 8), 40)
    matrix[0, 1] = matrix[1, 0] = matrix[2, 5] = -1
    setup = Setup(processes=8, fanout=7, ttl=8, in_step=True, rate=0.1)
    outcome, story = both(setup, nodes(matrix))
    assert_same(outcome, story)
    world = Listening(setup, nodes(matrix), outcome.line.ticks)
    world.run()
    everybody = {(one, other) for one in range(8) for other in range(8) if one != other}
    assert world.pairs == everybody - {(0, 1), (1, 0), (2, 5)}
    assert outcome.missing.count == 0, "others pass on what a pair cannot tell each other"


def test_halves_without_a_way_between_them_know_nothing_of_each_other() -> None:
    matrix = np.full((8, 8), -1)
    matrix[:4, :4] = matrix[4:, 4:] = 40
    outcome = run(Setup(processes=8, fanout=7, ttl=8, in_step=True, rate=0.1), nodes(matrix), cores=1)
    holes = outcome.holes()
    assert len(holes) == 4 * len(outcome.events) > 0
    assert {hole.cause for hole in holes} == {"never heard of"}
    assert all(hole.source // 4 != hole.process // 4 for hole in holes)


def test_unordered_delivery_counts_at_rounds_and_at_its_source_at_once() -> None:
    setup = Setup(processes=20, fanout=19, ttl=8, in_step=True, drift=0.0)
    outcome = run(setup, Latencies.constant(40), arrivals=True, unordered=True, cores=1)
    events = len(outcome.events)
    assert np.flatnonzero(outcome.arrivals).tolist() == [40], "all balls come after the latency"
    assert {int(at): int(outcome.unordered[at]) for at in np.flatnonzero(outcome.unordered)} == {
        0: events,
        ROUND: 19 * events,
    }
    assert np.flatnonzero(outcome.delays).tolist() == [setup.ttl * ROUND]


def test_a_ball_that_arrives_in_the_tick_of_a_round_is_for_that_round_unless_latencies_are_later() -> None:
    setup = Setup(processes=20, fanout=19, ttl=8, in_step=True, drift=0.0)
    latencies = Latencies(np.full((20, 20), ROUND, np.int16), np.array([ROUND], np.int32))
    assert latencies.later().longest == ROUND + 1
    for network, rounds in ((latencies, 1), (latencies.later(), 2)):
        outcome = run(setup, network, unordered=True, cores=1)
        assert np.flatnonzero(outcome.unordered).tolist() == [0, rounds * ROUND]
    absent = Latencies(np.array([[-1, 3], [4, -1]], np.int16), np.empty(0, np.int32)).later()
    assert absent.matrix.tolist() == [[-1, 4], [5, -1]]


@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_an_event_is_delivered_ttl_rounds_after_its_broadcast(drift: float) -> None:
    """The authors' TTL is smaller by one: theirs is delivered TTL + 1 rounds after."""
    setup = Setup(processes=20, fanout=19, ttl=8, in_step=True, drift=drift)
    outcome = run(setup, Latencies.constant(40), cores=1)
    assert set(np.flatnonzero(outcome.delays)) <= {8 * ROUND + late for late in range(-2, 3)}


def hole(**changes: object) -> Hole:
    given: dict[str, object] = {"process": 7, "event": 1, "source": 2, "born": 1_000, "joined": 500}
    given |= {"left": -1, "cause": "never heard of", "owed": True, "passed": True, **changes}
    return Hole(**given)  # type: ignore[arg-type]  # the names of its fields


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"joined": 0}, True),
        ({"joined": 1_000}, False),
        ({"passed": False}, False),
        ({"owed": False}, False),
        ({"left": 1_000 + 12 * ROUND}, False),
        ({"left": 1_001 + 12 * ROUND}, True),
    ],
)
def test_the_authors_count_holes_of_newcomers_if_a_later_event_was_delivered(
    changes: dict[str, object], counts: bool
) -> None:
    missing = [hole(**changes)]
    assert count_as_authors(missing, TOGETHER) == (missing if counts else [])


def test_whether_a_later_event_was_delivered_is_what_the_peers_say() -> None:
    setup = Setup(processes=40, fanout=2, ttl=4, loss=0.2, in_step=True)
    outcome, story = both(setup, Latencies.constant(60))
    places = {int(event): place for place, event in enumerate(outcome.order)}
    last = {
        process: max((places[int(event)] for event in np.flatnonzero(turns >= 0)), default=-1)
        for process, turns in enumerate(outcome.delivered)
    }
    assert story.events and {each.passed for each in outcome.holes()} == {True, False}
    assert all(each.passed == (places[each.event] < last[each.process]) for each in outcome.holes())
