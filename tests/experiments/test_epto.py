"""EpTO's experiments: the cases are the paper's setup, and the evaluations are arithmetic."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ordercast.engines.epto.run import run
from ordercast.engines.epto.setup import Setup as Asked
from ordercast.experiments import Case, Setup, all_experiments
from ordercast.experiments.epto import bounds
from ordercast.experiments.epto.latencies import FILE, STAND_IN, latencies_of
from ordercast.experiments.epto.runs import (
    BY_LEMMA,
    HOLES_NAMED,
    NamedHole,
    authors_setup,
    by_lemma,
    measure,
    percentiles,
    random_setup,
    run_case,
)
from ordercast.experiments.epto.worlds import AUTHORS, RANDOM, WORLDS
from ordercast.experiments.published import all_claims
from ordercast.pipeline.cases import CaseValues, Results
from ordercast.pipeline.functions import call
from ordercast.protocols.epto.bounds import expected_balls, figure_3
from tests.experiments import made_up

EXPERIMENTS = {each.name: each for each in all_experiments() if each.name.startswith("epto-")}
QUICK = Setup(quick=True)


def cases_of(name: str, setup: Setup = QUICK) -> list[Case]:
    return list(EXPERIMENTS[name].cases(setup))


def tiny(**changes: object) -> CaseValues:
    """A run of 60 processes."""
    arguments: dict[str, object] = {"processes": 60, "clock": "global", "ttl": 0, "rate": 0.05, "loss": 0.0}
    arguments |= {"churn": 0.0, "sampling": "uniform", "world": RANDOM, "model": STAND_IN}
    arguments["rounds_first"] = False
    arguments |= {"file": "", "digest": "", "rounds": 20, "seed": 3, **changes}
    return measure(**arguments)  # type: ignore[arg-type]  # the names of its arguments


# Cases


def test_every_claim_of_epto_is_measured() -> None:
    claims = {claim.id for claim in all_claims() if claim.system == "epto"}
    assert {claim for each in EXPERIMENTS.values() for claim in each.claims} == claims


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_is_less_and_no_case_is_there_twice(name: str) -> None:
    quick, full = cases_of(name), cases_of(name, Setup())
    assert 0 < len(quick) < len(full)
    for cases in (quick, full):
        assert len({case.name() for case in cases}) == len(cases)


@pytest.mark.parametrize("quick", [True, False])
def test_all_runs_are_those_of_the_figures_and_none_else(quick: bool) -> None:
    setup = Setup(quick=quick)
    together = {case.name() for case in cases_of("epto-all", setup)}
    figures = ("epto-6", "epto-7a", "epto-7b", "epto-8", "epto-9", "epto-10")
    separate = [case for name in figures for case in cases_of(name, setup) if "processes" in case.parameters]
    assert together == {case.name() for case in separate}
    assert len(together) < len(separate), "runs that two figures need are the same case"


def test_the_sizes_rates_and_shares_are_those_of_the_paper() -> None:
    def varied(name: str, parameter: str) -> set[object]:
        return {case.parameters[parameter] for case in cases_of(name, Setup())}

    assert {0.01, 0.1} <= varied("epto-7a", "rate") and varied("epto-7b", "rate") == {0.05}
    assert varied("epto-7a", "processes") == varied("epto-8", "processes") == {500}
    assert {100, 10_000} <= varied("epto-7b", "processes")
    assert varied("epto-7a", "clock") == varied("epto-7b", "clock") == {"global", "logical"}
    assert varied("epto-10", "loss") == {0.0, 0.01, 0.05, 0.1}
    assert varied("epto-9", "sampling") == {"uniform", "cyclon"}


@pytest.mark.parametrize("name", ["epto-6", "epto-7a", "epto-7b", "epto-8", "epto-9", "epto-10"])
@pytest.mark.parametrize("quick", [True, False])
def test_every_figure_has_the_same_points_in_both_worlds(name: str, quick: bool) -> None:
    points: dict[object, set[str]] = {world: set() for world in WORLDS}
    for case in cases_of(name, Setup(quick=quick)):
        if "world" in case.parameters and not case.parameters["rounds_first"]:
            others = {key: value for key, value in case.parameters.items() if key != "world"}
            points[case.parameters["world"]].add(str(others))
    assert points[AUTHORS] == points[RANDOM] != set()


def test_in_the_authors_world_rounds_are_together_and_k_is_not_raised() -> None:
    some = Asked(500, 1, 1, loss=0.1, churn=0.05)
    ours, theirs = random_setup(some, 0, "cyclon"), authors_setup(some, 0, "cyclon")
    assert (theirs.in_step, theirs.drift, theirs.sampling) == (True, 0.01, "cyclon-authors")
    assert theirs.fanout == by_lemma(500, "global").fanout < ours.fanout
    assert (ours.in_step, ours.sampling, ours.ttl) == (False, "cyclon", 21)
    assert theirs.ttl == 21 + 1, "their first ball has age 0"
    logical = authors_setup(msgspec.structs.replace(some, clock="logical"), 0, "uniform")
    assert logical.ttl == 2 * 21 + 1
    assert authors_setup(some, 5, "uniform").ttl == 5 + 1


def test_a_million_is_left_out_of_quick_runs() -> None:
    most = [max(made_up.number(case, "processes") for case in cases_of("epto-internet", setup))
            for setup in (QUICK, Setup())]  # fmt: skip
    assert most == [100_000, 1_000_000]


def test_with_data_the_latencies_are_the_authors(tmp_path: Path) -> None:
    target = tmp_path / FILE
    target.parent.mkdir()
    np.savez(target, lat_ticks=np.array([[-1, 9], [30, -1]], np.int16))
    data = Setup(quick=True, data=tmp_path)
    models = {(case.parameters.get("world"), case.parameters["model"]) for case in cases_of("epto-6", data)}
    assert models == {(AUTHORS, "matrix"), (RANDOM, "drawn"), (None, "matrix")}
    assert {case.arguments["file"] for case in cases_of("epto-6", data)} == {str(target)}
    assert {case.parameters["model"] for case in cases_of("epto-6")} == {"stand-in"}


# Runs


def test_a_run_tells_delays_holes_and_order() -> None:
    told = tiny()
    assert told == tiny(), "the same arguments give the same"
    found = told.numbers
    assert found["holes"] == found["violations"] == 0 and found[BY_LEMMA] == 1
    assert found["fanout"] == 16 and found["ttl"] == 14
    assert found["deliveries"] == 60 * found["events"] > 1_000
    assert 0 < found["first_p50"] < found["p00"] <= found["p50"] <= found["p99"] <= found["p100"]
    assert told.records == []


def test_holes_are_counted_and_named_and_no_error() -> None:
    told = tiny(ttl=2)
    found, holes = told.numbers, msgspec.convert(told.records, list[NamedHole])
    assert found["holes"] > 0 and found["violations"] == 0 and found[BY_LEMMA] == 0
    assert found["holes"] == found["holes_never_heard_of"] + found["holes_came_too_late"]
    assert found["holes"] + found["deliveries"] == 60 * found["events"]
    assert len(holes) == HOLES_NAMED
    assert all(0 <= hole.process < 60 and hole.process != hole.source for hole in holes)
    assert all(hole.born > 0 and hole.joined == 0 for hole in holes), "all were there from the start"


def test_under_churn_what_is_missing_has_its_cause() -> None:
    found = tiny(churn=0.1).numbers
    assert found["left_before"] > 0 and found["holes"] == found["holes_at_newcomers"] == 0
    assert found["fanout"] == by_lemma(60, "global", churn=0.1).fanout > tiny().numbers["fanout"]


def test_in_the_authors_world_curves_are_steps_at_multiples_of_a_round() -> None:
    def share_near_a_step(world: str, prefix: str) -> float:
        found = tiny(world=world).numbers
        ticks = [found[f"{prefix}p{share:02}"] for share in range(101)]
        return float(np.mean([min(at % 125, -at % 125) <= 2 for at in ticks]))

    assert share_near_a_step(AUTHORS, "") == share_near_a_step(AUTHORS, "first_") == 1
    assert share_near_a_step(RANDOM, "") < 0.2
    authors = tiny(world=AUTHORS).numbers
    assert (authors["fanout"], authors["ttl"], authors["holes"]) == (16, 15, 0)
    assert authors["first_p00"] == 0, "a source has its own event at once"
    assert authors["p50"] > 1.5 * tiny().numbers["p50"]


def test_what_comes_first_in_a_tick_is_told() -> None:
    """The authors' program does not say whether balls or rounds do; ages run ahead less if rounds do."""
    first, later = (tiny(world=AUTHORS, rounds_first=each).numbers for each in (False, True))
    assert first["p50"] < later["p50"] <= 15 * 125 + 2
    (figure,) = (
        each
        for each in EXPERIMENTS["epto-6"].evaluate(made_up.results(cases_of("epto-6"), fake)).figures
        if each.id == "epto-6-ties"
    )
    assert figure.beside == "epto-6" and "rounds before the balls" in figure.title


def test_percentiles_are_those_of_the_deliveries() -> None:
    histogram = np.zeros(100, np.int64)
    histogram[10] = 50
    histogram[20] = 49
    histogram[90] = 1
    found = percentiles(histogram, "x_")
    assert [found[f"x_p{each}"] for each in ("00", "50", "51", "99", "100")] == [10, 10, 20, 20, 90]
    assert percentiles(np.zeros(3, np.int64)) == {}


def test_the_first_events_are_delivered_alike_whoever_else_is_followed() -> None:
    """With a global clock nothing that is born later is before them."""
    few, many = 64, 300
    asked = {"processes": 1_000, "fanout": 20, "ttl": 23, "rounds": 8, "seed": 5}
    outcomes = [
        run(Asked(**asked, tracked=tracked), latencies_of(STAND_IN), keep=True, cores=1)  # type: ignore[arg-type]
        for tracked in (few, many)
    ]
    assert np.array_equal(outcomes[0].delivered[:, :few], outcomes[1].delivered[:, :few])
    medians = [percentiles(outcome.delays)["p50"] for outcome in outcomes]
    # What is born later has more before it in the order, and waits a little longer.
    assert medians[0] <= medians[1] <= 1.08 * medians[0]


# Figure 3


@pytest.mark.parametrize(("processes", "fanout", "c"), [(100, 2, 1.0), (100, 3, 0.5), (1_000, 2, 0.5)])
def test_holes_are_seen_and_fewer_than_the_bound(processes: int, fanout: int, c: float) -> None:
    runs = [bounds.measure(processes=processes, fanout=fanout, c=c, seed=seed) for seed in range(5)]
    share = bounds.interval([each[bounds.AT_PROCESS] for each in runs])
    assert share.low is not None and share.high is not None
    assert 0 < share.low < share.y < share.high < figure_3(processes, c).at_process
    assert all(each["enough"] > 0.5 for each in runs), "most events arrive as often as the bound assumes"
    assert all(each["came_too_late"] == 0 for each in runs), "in step, what comes is in time"


def test_the_lowered_ttl_is_the_smallest_and_far_below_the_lemmas() -> None:
    ttl = bounds.lowered_ttl(1_000, 2, 1.0)
    assert expected_balls(1_000, 2, ttl - 1) < bounds.wanted_balls(1_000, 1.0)
    assert ttl < 23


# Evaluations


def delays(median: float, **others: float) -> dict[str, float]:
    """Made-up values of a run: percentiles around a median."""
    shares = {f"p{share:02}": median * (0.5 + share / 100) for share in range(101)}
    first = {f"first_{name}": value / 4 for name, value in shares.items()}
    causes = ("holes_never_heard_of", "holes_came_too_late", "left_before", "gone_with_source")
    counts = dict.fromkeys((*causes, "holes", "violations", "holes_at_newcomers"), 0.0)
    counts |= dict.fromkeys(("newcomers_with_holes", "newcomers_rounds_most"), 0.0)
    counts |= dict.fromkeys(("holes_as_authors", "processes_with_holes_as_authors"), 0.0)
    counts |= {"deliveries": 1_000.0, "fanout": 20.0, "ttl": 15.0, BY_LEMMA: 1.0}
    return shares | first | counts | {"cpu_seconds": 3.0, "memory_bytes": 2.0**30} | others


def fake(case: Case) -> Mapping[str, float]:
    """Delays grow by a tenth with the rate, with the logarithm of the size, and with what is lost."""
    if "processes" not in case.parameters:
        return {f"all_{name}": value for name, value in delays(125).items()}
    number = {name: made_up.number(case, name) for name in ("processes", "rate", "loss", "churn")
              if name in case.parameters}  # fmt: skip
    clock = 2 if case.parameters.get("clock") == "logical" else 1
    median = clock * 100 * np.log10(number["processes"]) * (1 + number.get("rate", 0) + number.get("loss", 0))
    small = case.parameters.get("ttl") == 5
    cyclon = case.parameters.get("sampling") == "cyclon" and number["churn"] == 0.1
    holes = 3.0 if small else 1.0 if cyclon else 0.0
    if case.parameters.get("world") == RANDOM:
        median, holes = median / 2, 10 * holes
    counts = {"holes": holes, "holes_never_heard_of": holes, BY_LEMMA: float(not small)}
    return delays(median, **counts)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("epto-6", {"epto.cost_of_order": 4.0, "epto.small_ttl": 3 * 3}),
        ("epto-7a", {"epto.rate_insensitive": 1.1 / 1.01}),
        ("epto-7b", {"epto.scale_log": 2.0}),
        ("epto-8", {"epto.churn": 0.0}),
        ("epto-9", {"epto.cyclon": 2 * 1}),
        ("epto-10", {"epto.loss10": 1.15 / 1.05}),
        ("epto-all", {"epto.holes": 2 * 1 + 2 * 10, "epto.order_violations": 0.0}),
        ("epto-internet", {"epto.internet.growth": 5 / 4, "epto.internet.holes": 0.0}),
    ],
)
def test_evaluations_are_arithmetic(name: str, expected: dict[str, float]) -> None:
    outcome = EXPERIMENTS[name].evaluate(made_up.results(cases_of(name), fake))
    measured = {each.claim: each.value for each in outcome.measurements}
    assert measured == pytest.approx(expected)
    for figure in outcome.figures:
        assert all(curve.points for curve in figure.curves), figure.id


@pytest.mark.parametrize("name", ["epto-6", "epto-7a", "epto-7b", "epto-8", "epto-9", "epto-10"])
def test_figures_stand_side_by_side_with_percentiles_of_every_curve(name: str) -> None:
    figures = EXPERIMENTS[name].evaluate(made_up.results(cases_of(name), fake)).figures
    number = name.removeprefix("epto-")
    authors, random, *_ = (figure for figure in figures if figure.beside == f"epto-{number}")
    assert (authors.id, random.id) == (f"epto-{number}", f"epto-{number}-random")
    assert "begin together" in authors.title and "random times" in random.title
    labels = [curve.label for curve in authors.curves]
    assert labels == [curve.label for curve in random.curves] != []
    for theirs, ours in zip(authors.curves, random.curves, strict=True):
        assert list(theirs.numbers) == ["p5", "p50", "p95"]
        assert theirs.numbers == {name: pytest.approx(2 * value) for name, value in ours.numbers.items()}
        at = {point.y: point.x for point in theirs.points}
        assert theirs.numbers == {"p5": at[0.05], "p50": at[0.5], "p95": at[0.95]}


def test_figure_5_shows_the_latencies_of_all_pairs_and_of_figure_6(tmp_path: Path) -> None:
    target = tmp_path / FILE
    target.parent.mkdir()
    matrix = np.full((120, 120), 30, np.int16)
    matrix[:100, :100] = 10
    matrix[:50, 50] = -1
    np.savez(target, lat_ticks=matrix)
    shown, *_ = cases_of("epto-6", Setup(quick=True, data=tmp_path))
    found = call(shown).numbers
    assert (found["all_p05"], found["all_p95"], found["first_p95"]) == (10, 30, 10)
    assert found["absent_share"] == pytest.approx(50 / (100 * 99))


def test_holes_are_counted_as_the_authors_do_beside_the_present_count() -> None:
    def newcomers(case: Case) -> Mapping[str, float]:
        more = {"holes_as_authors": 2.0, "processes_with_holes_as_authors": 1.0}
        return {**fake(case), **(more if case.parameters["churn"] else {})}

    (measured,) = EXPERIMENTS["epto-9"].evaluate(made_up.results(cases_of("epto-9"), newcomers)).measurements
    assert measured.value == 2, "newcomers do not count here"
    assert measured.note.count("as the authors count, newcomers too: 4 at 2 processes") == 2, "in each world"


def test_a_hole_is_named_where_it_is_counted() -> None:
    results = made_up.results(cases_of("epto-9"), fake)
    hole = msgspec.to_builtins(NamedHole(process=7, source=8, born=9, joined=0))
    named = Results(msgspec.structs.replace(each, records=[hole]) for each in results.all)
    (measured,) = EXPERIMENTS["epto-9"].evaluate(named).measurements
    assert "process 7 lacks the event that 8 broadcast at tick 9" in measured.note
    assert "never heard of" in measured.note


def test_broken_order_counts_with_whatever_ttl() -> None:
    def broken(case: Case) -> Mapping[str, float]:
        return {**fake(case), "violations": 1.0}

    cases = cases_of("epto-all")
    outcome = EXPERIMENTS["epto-all"].evaluate(made_up.results(cases, broken))
    assert {each.claim: each.value for each in outcome.measurements}["epto.order_violations"] == len(cases)


def seen(case: Case) -> Mapping[str, float]:
    """Half of the bound, a little more or less."""
    bound = figure_3(int(case.parameters["processes"]), made_up.number(case, "c"))
    shares = {bounds.AT_PROCESS: bound.at_process, bounds.ANYWHERE: bound.anywhere}
    factor = 0.5 + 0.001 * (case.seed % 2)
    return {name: share * factor for name, share in shares.items()} | {"events": 1e4, "holes": 5.0}


def test_the_claim_of_the_bound_is_the_largest_share_of_it() -> None:
    outcome = EXPERIMENTS["epto-3"].evaluate(made_up.results(cases_of("epto-3"), seen))
    (measured,) = outcome.measurements
    assert 0.5 < measured.value < 0.51
    assert [figure.id for figure in outcome.figures] == ["epto-3a", "epto-3b"]
    labels = [curve.label for curve in outcome.figures[0].curves]
    assert {"bound, c = 1", "bound, c = 2", "bound, c = 3", "measured, c = 1, K = 2"} <= set(labels)


@pytest.mark.deep
def test_a_case_runs_as_a_task_would_run_it() -> None:
    case = run_case(QUICK, 1, world=AUTHORS, processes=100, churn=0.05, sampling="cyclon")
    found = call(case).numbers
    assert found["violations"] == 0 and found["deliveries"] > 1_000
