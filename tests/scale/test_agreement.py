"""The engine and the peers tell the same story, event for event."""

from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest

from ordercast.engines.epto.cyclon import cyclon_targets
from ordercast.engines.epto.network import Latencies
from ordercast.engines.epto.run import CONTACTS, WARMUP_ROUNDS, Outcome, run
from ordercast.engines.epto.setup import Setup
from ordercast.protocols.epto.views import AUTHORS_VIEW, cyclon_options
from tests.deep import deep_after
from tests.scale.reference import Event, Story, Views, World

CYCLONS: dict[str, Any] = {
    "cyclon": {"contacts": CONTACTS, "warmup_ticks": WARMUP_ROUNDS * 125},
    "cyclon-authors": {"contacts": AUTHORS_VIEW, "drawn": True},
}
"""How views begin."""
FAR = 700
"""Latencies up to six rounds, as measured between distant hosts."""


def spread_out(seed: int, measured: int = 0) -> Latencies:
    """Mostly short latencies and some very long ones; some measured pairs never hear each other."""
    rng = np.random.default_rng(seed)
    values = np.minimum(1 + rng.exponential(150, 500), FAR).astype(np.int32)
    matrix = rng.choice(values, (measured, measured)).astype(np.int16)
    matrix[rng.random((measured, measured)) < 0.1] = -1
    return Latencies(matrix, values)


def both(setup: Setup, latencies: Latencies) -> tuple[Outcome, Story]:
    outcome = run(setup, latencies, arrivals=True, unordered=True, balls=True, keep=True, cores=1)
    views = None if setup.sampling == "uniform" else views_of(outcome, latencies)
    return outcome, World(setup, latencies, outcome.line.ticks, views).run()


def views_of(outcome: Outcome, latencies: Latencies) -> Views:
    """What Cyclon's arrays choose; `test_cyclon` proves that Cyclon itself does so too."""
    setup, line = outcome.setup, outcome.line
    options = cyclon_options(setup.sampling, setup.fanout, setup.round_ticks, setup.drift_ticks)
    targets = cyclon_targets(setup, latencies, line, options, **CYCLONS[setup.sampling])
    process_of = {
        (int(line.slot[process]), int(line.first_turn[process]) + turn): (process, turn + 1)
        for process in range(len(line.slot))
        for turn in range(int(line.turns[process]))
    }
    turns: Counter[int] = Counter()
    views: Views = {}
    for slot, chosen in zip(line.slots.tolist(), targets.tolist(), strict=True):
        views[process_of[slot, turns[slot]]] = [peer for peer in chosen if peer >= 0]
        turns[slot] += 1
    return views


def names(outcome: Outcome) -> list[Event]:
    """Source and round of each event of the engine."""
    line, events = outcome.line, outcome.events
    return list(
        zip(events.source.tolist(), (events.turn - line.first_turn[events.source] + 1).tolist(), strict=True)
    )


def assert_same(outcome: Outcome, story: Story) -> None:
    line, events = outcome.line, names(outcome)
    assert [(int(born), name) for born, name in zip(outcome.events.born, events, strict=True)] == story.events
    stamps = {name: int(stamp) for name, stamp in zip(events, outcome.stamps, strict=True)}
    assert {name: stamps[name] for name in story.stamps} == story.stamps
    delivered = {
        (process, events[event]): int(line.turn_tick[line.slot[process], turn])
        for (process, event), turn in np.ndenumerate(outcome.delivered)
        if turn >= 0
    }
    assert delivered == story.delivered
    places = {events[event]: place for place, event in enumerate(outcome.order)}
    for process, sequence in story.sequences.items():
        expected = sorted((name for who, name in delivered if who == process), key=places.__getitem__)
        assert sequence == expected
    assert outcome.violations == 0
    assert outcome.balls.tolist() == [story.balls[name] for name in events]
    born = dict(zip(events, outcome.events.born.tolist(), strict=True))
    waits = [
        tick - born[name]
        for (process, name), tick in story.relayed.items()
        if born[name] >= line.joined[process]
    ]
    assert outcome.unordered.tolist() == np.bincount(waits).tolist()


CASES = {
    "global": Setup(processes=30, fanout=8, ttl=10),
    "logical": Setup(processes=30, fanout=8, ttl=20, clock="logical"),
    "few": Setup(processes=3, fanout=2, ttl=6, rate=0.3, clock="logical"),
    "two": Setup(processes=2, fanout=5, ttl=4, rate=0.3),
    "lossy": Setup(processes=30, fanout=8, ttl=10, loss=0.2),
    "lossy logical": Setup(processes=30, fanout=8, ttl=12, loss=0.2, clock="logical"),
    "far too few relays": Setup(processes=40, fanout=2, ttl=4, loss=0.1),
    "far too few relays, logical": Setup(processes=40, fanout=2, ttl=4, clock="logical", rate=0.02),
    "one relay": Setup(processes=20, fanout=3, ttl=1, rate=0.1),
    "churn": Setup(processes=30, fanout=8, ttl=10, churn=0.1),
    "churn logical": Setup(processes=30, fanout=8, ttl=20, churn=0.1, clock="logical", loss=0.05),
    "churn, few relays": Setup(processes=30, fanout=3, ttl=5, churn=0.2, loss=0.1),
    "great drift": Setup(processes=30, fanout=8, ttl=10, drift=0.4),
    "cyclon": Setup(processes=40, fanout=8, ttl=10, sampling="cyclon", loss=0.05),
    "cyclon, churn": Setup(processes=40, fanout=6, ttl=10, sampling="cyclon", churn=0.1),
    "cyclon, churn, logical": Setup(
        processes=40, fanout=6, ttl=16, sampling="cyclon", churn=0.05, loss=0.1, clock="logical"
    ),
    "in step": Setup(processes=30, fanout=8, ttl=10, in_step=True, drift=0.0),
    "together": Setup(processes=30, fanout=8, ttl=10, in_step=True),
    "together, logical": Setup(processes=30, fanout=8, ttl=20, in_step=True, clock="logical", loss=0.05),
    "together, great drift": Setup(processes=30, fanout=4, ttl=6, in_step=True, drift=0.4, loss=0.1),
    "together, churn": Setup(processes=30, fanout=8, ttl=10, in_step=True, churn=0.1, loss=0.05),
    "together, short rounds": Setup(
        processes=20, fanout=6, ttl=20, round_ticks=20, drift=0.2, rounds=30, rate=0.02, in_step=True
    ),
    "together, the authors' cyclon": Setup(
        processes=50, fanout=8, ttl=10, in_step=True, sampling="cyclon-authors", churn=0.1, loss=0.05
    ),
    "short rounds": Setup(processes=20, fanout=6, ttl=20, round_ticks=20, drift=0.1, rounds=30, rate=0.02),
    "busy": Setup(processes=20, fanout=6, ttl=8, rate=0.9, clock="logical", rounds=8),
}


@pytest.mark.parametrize("seed", deep_after(1, range(3)))
@pytest.mark.parametrize("case", CASES)
def test_the_engine_tells_what_the_peers_do(case: str, seed: int) -> None:
    setup = msgspec.structs.replace(CASES[case], seed=seed)
    outcome, story = both(setup, spread_out(seed, measured=setup.processes // 2 * (seed % 2)))
    assert story.events
    assert_same(outcome, story)


def test_the_comparison_has_holes_in_it() -> None:
    setup = CASES["far too few relays"]
    outcome, story = both(setup, spread_out(0))
    assert_same(outcome, story)
    holes = outcome.holes()
    assert {hole.cause for hole in holes} == {"never heard of", "came too late"}
    assert all(hole.owed for hole in holes)
    names_of = names(outcome)
    for hole in holes:
        assert (hole.process, names_of[hole.event]) not in story.delivered


def test_first_balls_arrive_when_they_do_at_peers() -> None:
    setup = CASES["lossy"]
    outcome, story = both(setup, spread_out(1))
    born = {name: tick for tick, name in story.events}
    delays = [tick - born[name] for (who, name), tick in story.arrived.items() if who != name[0]]
    assert outcome.arrivals.tolist() == np.bincount(delays).tolist()
