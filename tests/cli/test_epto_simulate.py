"""`ordercast epto simulate`: what it runs, what it says of holes, and how it refuses."""

import sys
from pathlib import Path

import numpy as np
import pytest

from ordercast.engines.epto.latencies import of_percentiles
from ordercast.engines.epto.run import run
from ordercast.engines.epto.setup import Setup
from tests.cli.conftest import Command

RUN = ("epto", "simulate", "--processes")
FEW = (*RUN, 60, "--latencies", "50:80,99:400", "--cores", 1)


def test_a_run_for_programs_is_that_of_the_engine(ordercast: Command) -> None:
    outcome = ordercast(*FEW, "--loss", 0.1, "--rate", 0.1, "--rounds", 9, "--seed", 4, "--json")
    found = outcome.json()
    setup = Setup(processes=60, fanout=18, ttl=14, rate=0.1, rounds=9, loss=0.1, seed=4)
    expected = run(setup, of_percentiles([(0.5, 80.0), (0.99, 400.0)]), cores=1)
    assert outcome.code == 0
    assert {name: found["setup"][name] for name in ("fanout", "ttl", "seed")} == {
        "fanout": 18,
        "ttl": 14,
        "seed": 4,
    }
    assert found["events"] == len(expected.events) > 20
    assert found["deliveries"] == expected.deliveries == 60 * found["events"]
    assert found["delay_ticks"]["longest"] == len(expected.delays) - 1
    assert found["delay_ticks"]["p50"] == np.searchsorted(
        np.cumsum(expected.delays), -(-expected.deliveries // 2)
    )
    assert 0 < found["first_ball_ticks"]["p50"] < found["delay_ticks"]["p01"]
    assert found["holes"] == {"count": 0, "processes": 0, "causes": {}, "first": []}
    assert found["out_of_order"] == 0 and found["memory_bytes"] > 0 and found["process_rounds_per_s"] > 0


def test_holes_are_told_by_process_event_and_cause(ordercast: Command) -> None:
    words = (*FEW, "--ttl", 2, "--rounds", 4)
    found = ordercast(*words, "--json").json()
    holes = found["holes"]
    assert holes["count"] == sum(holes["causes"].values()) == len(holes["first"]) > 10
    assert holes["count"] + found["deliveries"] == 60 * found["events"]
    first = holes["first"][0]
    assert set(first["event"]) == {"source", "round", "tick"} and first["left"] is None

    said = ordercast(*words).out
    assert f"holes       {holes['count']} at {holes['processes']} processes" in said
    event = first["event"]
    assert f"process {first['process']} lacks the event that process {event['source']} broadcast" in said
    assert f"... and {holes['count'] - 10:,} more" in said
    assert f"order       kept in all {found['deliveries']:,} deliveries" in said


@pytest.mark.deep
def test_what_nobody_owes_under_churn_is_told_apart(ordercast: Command) -> None:
    outcome = ordercast(*FEW, "--churn", 0.1)
    assert outcome.code == 0
    assert "not owed" in outcome.out and "left before" in outcome.out
    assert "first ball" not in outcome.out


def test_a_fanout_beyond_the_others_is_said_to_be_that(ordercast: Command) -> None:
    said = ordercast(*RUN, 10, "--fanout", 50, "--ttl", 9).out
    assert said.startswith("10 processes, fanout 50 (only 9 other processes), ttl 9, ")
    assert "other processes" not in ordercast(*RUN, 10).out


def test_only_the_first_events_are_followed(ordercast: Command) -> None:
    outcome = ordercast(*RUN, 2_000, "--events", 7, "--clock", "logical")
    assert (
        "2,000 processes, fanout 21, ttl 50 (by the lemmas), logical clock: 7 events followed" in outcome.out
    )
    assert "holes       none" in outcome.out and "14,000 deliveries" in outcome.out


def test_a_trace_is_one_that_check_judges(ordercast: Command, tmp_path: Path) -> None:
    found = ordercast(*FEW, "--ttl", 2, "--rounds", 5, "--trace", tmp_path, "--json").json()
    assert Path(found["trace"]).parent == tmp_path
    checked = ordercast("check", tmp_path)
    assert checked.code == 0, checked.err
    assert str(found["holes"]["count"]) in checked.out.replace(",", "")
    replayed = ordercast("replay", found["trace"])
    assert replayed.code == 2 and not replayed.out
    assert (
        "a run of `ordercast epto simulate` cannot be replayed; repeat that command with --seed 0"
        in replayed.err
    )


def test_the_nodes_of_a_matrix_are_the_first_processes(ordercast: Command, tmp_path: Path) -> None:
    file = tmp_path / "two.npz"
    np.savez(file, lat_ticks=np.array([[-1, 5], [-1, -1]], np.int16))
    words = (*RUN, 2, "--rate", 0.3, "--latencies", file, "--json")
    deaf = ordercast(*words, "--nodes").json()
    assert {hole["process"] for hole in deaf["holes"]["first"]} == {0}, "from 1 to 0 there is no way"
    assert deaf["holes"]["causes"] == {"never heard of": deaf["holes"]["count"]}
    assert ordercast(*words).json()["holes"]["count"] == 0, "drawn, both ways take 5 ticks"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--processes", 0), "the number of processes must be 1 to 2**40, not 0"),
        (("--processes", 10_000_000, "--events", 1), "--processes 10000000: expected `int` <= 4194304"),
        (("--processes", 10, "--rounds", 0), "--rounds 0: expected `int` >= 1"),
        (("--processes", 10, "--events", -1), "--events -1: expected `int` >= 0"),
        (("--processes", 10, "--loss", 1.0), "loss must be at least 0"),
        (("--processes", 10, "--clock", "sand"), "--clock must be global or logical, not 'sand'"),
        (("--processes", 10, "--sampling", "all"), "must be uniform, cyclon or cyclon-authors, not 'all'"),
        (("--processes", 10, "--in-step", "--drift", 0.5), "drift 0.5: in step it must be below 0.5"),
        (("--processes", 10, "--latencies", "fast"), "must be a .npz file or percentiles with ticks"),
        (("--processes", 10, "--latencies", "50:9,20:10"), "percentiles must rise"),
        (("--processes", 10, "--latencies", "none.npz"), "none.npz: no such file"),
        (("--processes", 10, "--nodes"), "--nodes needs a matrix of latencies"),
        (("--processes", 10_000, "--trace", "traces"), "run without --trace"),
        (("--processes", 10_000, "--trace", "traces"), "follow only the first events (at most --events 500)"),
        (("--processes", 1_000_000), "follow only the first events (at most --events 3221)"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(
    ordercast: Command, words: tuple[object, ...], says: str
) -> None:
    outcome = ordercast("epto", "simulate", *words)
    assert outcome.code == 2 and not outcome.out
    assert says in outcome.err and len(outcome.err.splitlines()) == 1


def test_without_numba_it_says_what_to_install(ordercast: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("ordercast.engines.epto")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    outcome = ordercast(*RUN, 10)
    assert outcome.code == 2
    assert "pip install 'ordercast[scale]'" in outcome.err
