"""The engine at the edges of what it can be asked: it is right, or it says what is wrong."""

from typing import Any

import numpy as np
import pytest

from ordercast.core import LocalError
from ordercast.engines.epto import run as engine
from ordercast.engines.epto.network import Latencies
from ordercast.engines.epto.run import Outcome, run
from ordercast.engines.epto.setup import Setup
from tests.scale.reference import World

NOBODY = np.empty((0, 0), np.int16)
LATENCIES = Latencies(NOBODY, np.arange(1, 400, dtype=np.int32))


def delivered(outcome: Outcome) -> dict[tuple[int, tuple[int, int]], int]:
    """By process and event, the tick."""
    line, events = outcome.line, outcome.events
    return {
        (process, (source, int(events.turn[event] - line.first_turn[source]) + 1)): int(
            line.turn_tick[line.slot[process], turn]
        )
        for (process, event), turn in np.ndenumerate(outcome.delivered)
        if turn >= 0
        for source in [int(events.source[event])]
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("setup", "latency"),
    [
        (Setup(processes=3, fanout=1, ttl=6, rate=0.1, rounds=3), 700),
        (Setup(processes=5, fanout=2, ttl=8, rate=0.1, rounds=3), 2000),
        (Setup(processes=30, fanout=8, ttl=12, rounds=3), 3000),
    ],
)
def test_no_ball_is_lost_because_it_lands_after_the_end(setup: Setup, latency: int, seed: int) -> None:
    """Peers whose world lasts far longer than the engine thought necessary deliver nothing more."""
    asked = Setup(**{name: getattr(setup, name) for name in setup.__struct_fields__} | {"seed": seed})
    latencies = Latencies.constant(latency)
    outcome = run(asked, latencies, keep=True, cores=1)
    relays = asked.ttl * (latency + 2 * asked.round_ticks)
    story = World(asked, latencies, asked.rounds * asked.round_ticks + 2 * relays).run()
    assert delivered(outcome) == story.delivered


@pytest.mark.parametrize("sampling", ["uniform", "cyclon"])
def test_a_process_alone_delivers_what_it_broadcasts(sampling: Any) -> None:
    outcome = run(Setup(processes=1, fanout=3, ttl=4, rate=0.5, sampling=sampling), Latencies.constant(9))
    assert outcome.deliveries == len(outcome.events) > 0


@pytest.mark.parametrize("clock", ["global", "logical"])
def test_nothing_comes_of_nothing(clock: Any) -> None:
    setup = Setup(processes=9, fanout=3, ttl=4, rate=0.0, clock=clock)
    outcome = run(setup, Latencies.constant(9), arrivals=True, balls=True, keep=True)
    assert (len(outcome.events), outcome.deliveries, outcome.holes()) == (0, 0, [])


@pytest.mark.parametrize(
    "wrong",
    [
        {"processes": 0},
        {"fanout": 0},
        {"ttl": 251},
        {"drift": 1.5},
        {"loss": 1.0},
        {"churn": -0.1},
        {"rate": 1.0},
        {"round_ticks": 0},
        {"seed": -1},
        {"clock": "sundial"},
        {"sampling": "none"},
    ],
)
def test_a_setup_that_arrays_cannot_hold_is_refused(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"processes": 20, "fanout": 5, "ttl": 10}
    (name,) = wrong
    with pytest.raises(LocalError, match=name):
        Setup(**good | wrong)


def test_rounds_in_step_that_would_overtake_each_other_are_refused() -> None:
    assert Setup(processes=20, fanout=5, ttl=10, in_step=True, drift=0.49).in_step
    with pytest.raises(LocalError, match=r"must be below 0\.5"):
        Setup(processes=20, fanout=5, ttl=10, in_step=True, drift=0.5)


def test_latencies_that_cannot_be_are_refused() -> None:
    with pytest.raises(LocalError, match="a tick or more"):
        Latencies.constant(0)
    with pytest.raises(LocalError, match="a tick or more"):
        Latencies(np.full((3, 3), -2, np.int16), np.ones(1, np.int32))
    with pytest.raises(LocalError, match="square"):
        Latencies(np.ones((3, 2), np.int16), np.ones(1, np.int32))


def test_processes_without_latencies_are_refused() -> None:
    measured = Latencies(np.ones((5, 5), np.int16), np.empty(0, np.int32))
    assert run(Setup(processes=5, fanout=2, ttl=4), measured).missing.count == 0
    with pytest.raises(LocalError, match="only 5 of"):
        run(Setup(processes=6, fanout=2, ttl=4), measured)


def test_runs_too_long_for_ticks_and_fewer_than_no_cores_are_refused() -> None:
    setup = Setup(processes=5, fanout=2, ttl=4, rounds=10_000, round_ticks=1 << 16)
    with pytest.raises(LocalError, match="ticks"):
        run(setup, Latencies(NOBODY, np.ones(1, np.int32)))
    with pytest.raises(LocalError, match="cores"):
        run(Setup(processes=5, fanout=2, ttl=4), Latencies.constant(9), cores=-1)


def test_what_is_not_followed_slows_nothing_down_but_makes_nothing_late() -> None:
    """With a global clock, the followed are delivered when they are among all, or passed over there."""
    setup = {"processes": 100, "fanout": 10, "ttl": 4, "rounds": 10}
    network, late = Latencies(NOBODY, np.array([20, 100, 500], np.int32)), 0
    for seed in range(4):
        everything = run(Setup(**setup, seed=seed), network, keep=True)  # type: ignore[arg-type]
        followed = run(Setup(**setup, seed=seed, tracked=20), network, keep=True)  # type: ignore[arg-type]
        among_all = everything.delivered[:, :20]
        there = among_all >= 0
        assert (among_all[there] == followed.delivered[there]).all()
        late += int(np.count_nonzero(~there & (followed.delivered >= 0)))
    assert late > 0


def test_what_processes_lack_that_left_takes_no_room_from_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = Setup(processes=60, fanout=4, ttl=6, churn=0.2, loss=0.2, rate=0.2)
    plenty = run(setup, LATENCIES, cores=1)
    holes = [hole for hole in plenty.holes() if hole.owed]
    assert holes and plenty.missing.left_before > 10 * len(holes) and plenty.missing.not_listed == 0
    monkeypatch.setattr(engine, "MISSING_MAX", len(plenty.missing.rows))
    tight = [run(setup, LATENCIES, cores=cores) for cores in (1, 3)]
    assert all(outcome.holes() == plenty.holes() for outcome in tight)
    monkeypatch.setattr(engine, "MISSING_MAX", 1)
    scarce = run(setup, LATENCIES, cores=1)
    assert len(scarce.holes()) == 1
    assert scarce.missing.not_listed == len(plenty.missing.rows) - 1
    assert scarce.missing.left_before == plenty.missing.left_before
