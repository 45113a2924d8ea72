"""Cases are named by what they are, are asked by parameter, and call functions with care."""

from pathlib import Path

import msgspec
import pytest

from ordercast.core import LocalError
from ordercast.pipeline.cases import Case, CaseResult, CaseValues, Results, sweep_of
from ordercast.pipeline.claims import Measurement, broken, claim_rows, judged, unmeasured, write_claims
from ordercast.pipeline.figures import write_figures
from ordercast.pipeline.functions import call
from ordercast.pipeline.reproduce import stored_values
from ordercast.report.figures import Axis, Curve, Figure, Point
from ordercast.report.stored_tables import StoredTables
from ordercast.scenario.spec import MatrixSpec, NetworkSpec, Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from tests.experiments import toy
from tests.report.report_tables import sweep_tables

SCENARIO = Scenario(protocol="unordered", seed=3, workload=WorkloadSpec(messages=5))


def test_a_case_is_a_scenario_or_a_function() -> None:
    with pytest.raises(LocalError, match="either a scenario or a function"):
        Case(parameters={}, seed=3)
    with pytest.raises(LocalError, match="either a scenario or a function"):
        Case(parameters={}, seed=3, scenario=SCENARIO, function="a:b")
    with pytest.raises(LocalError, match="seed 4, but its scenario has seed 3"):
        Case(parameters={}, seed=4, scenario=SCENARIO)
    with pytest.raises(LocalError, match="not of the form"):
        Case(parameters={}, seed=4, function="a.b")


def test_a_case_of_a_scenario_is_named_as_its_run() -> None:
    assert Case(parameters={}, seed=3, scenario=SCENARIO).name() == simulate(SCENARIO).description.run


def test_a_call_is_named_by_all_that_it_depends_on() -> None:
    base = Case(parameters={"n": 1}, seed=3, function="a.b:square", arguments={"data": "x"})
    others = [
        msgspec.structs.replace(base, **change)
        for change in (
            {"parameters": {"n": 2}},
            {"seed": 4},
            {"function": "a.c:square"},
            {"arguments": {"data": "y"}},
        )
    ]
    names = {case.name() for case in [base, *others]}
    assert len(names) == 5
    assert all(name.startswith("square-") for name in names)
    same = msgspec.json.decode(msgspec.json.encode(base), type=Case)
    assert same.name() == base.name()


def test_experiments_that_share_a_run_get_it_once() -> None:
    one = Case(parameters={"x": 1}, seed=3, scenario=SCENARIO)
    two = Case(parameters={"y": 1}, seed=3, scenario=SCENARIO)
    matrix = NetworkSpec(latency=MatrixSpec(file="/data/matrix.npy"))
    measured = Scenario(protocol="unordered", seed=4, network=matrix)
    three = Case(parameters={}, seed=4, scenario=msgspec.structs.replace(SCENARIO, seed=4))
    sweep = sweep_of("s", [one, two, three, Case(parameters={}, seed=0, function="a:b")])
    assert [(row.place, row.seed, row.parameters) for row in sweep.rows] == [(0, 3, '{"x":1}'), (1, 4, "{}")]
    assert sweep.files == []
    assert sweep_of("s", [Case(parameters={}, seed=4, scenario=measured)]).files == [Path("/data/matrix.npy")]


def results() -> Results:
    return Results(
        CaseResult(
            case=Case(parameters={"n": n, "m": "x"}, seed=seed, function="a:b"),
            name=f"{n}-{seed}",
            status="kept",
            error=None,
            values={"v": float(10 * n + seed)},
        )
        for n in (2, 1)
        for seed in (1, 0)
    )


def test_results_are_asked_by_parameter() -> None:
    assert results().where(n=1, m="x").values("v") == [11.0, 10.0]
    assert results().where(n=7).values("v") == []
    assert list(results().by("n")) == [2, 1]
    assert results().by("n")[2].values("v") == [21.0, 20.0]
    assert results().seeds == (0, 1)
    with pytest.raises(LocalError, match="2-1 has no value 'w'; its values are: v"):
        results().values("w")


def test_a_function_gets_parameters_arguments_and_the_seed(tmp_path: Path) -> None:
    called = str(tmp_path / "called")
    case = Case(
        parameters={"n": 5}, seed=2, function="tests.experiments.toy:square", arguments={"called": called}
    )
    assert call(case) == CaseValues(numbers={"square": 27.0, "seconds": 0.5})


def test_a_function_must_return_numbers() -> None:
    with pytest.raises(LocalError, match="returned nan as 'value'"):
        call(Case(parameters={}, seed=0, function="tests.experiments.toy:wrong"))


@pytest.mark.parametrize(
    ("value", "met"), [(14.999, False), (15.0, True), (16.5, True), (18.0, True), (18.001, False)]
)
def test_a_claim_is_met_within_its_band_ends_included(value: float, met: bool) -> None:
    result = judged(toy.CLAIMS[0], Measurement(claim=toy.SQUARE, value=value, note="n"), [1, 2], 3.5)
    assert (result.measured, result.met, result.note) == (value, met, "n")
    assert (result.seeds, result.simulated_seconds) == ((1, 2), 3.5)


def test_what_is_not_measured_is_neither_met_nor_missed() -> None:
    result = unmeasured(toy.CLAIMS[0])
    assert (result.measured, result.met, result.note) == (None, None, "no experiment yet")


def test_a_broken_promise_misses_whatever_was_measured() -> None:
    result = broken(toy.CLAIMS[0], "why", Measurement(claim=toy.SQUARE, value=16.0))
    assert (result.measured, result.met, result.note) == (16.0, False, "why")


def test_claims_as_a_file_and_as_rows(tmp_path: Path) -> None:
    found = [judged(toy.CLAIMS[0], Measurement(claim=toy.SQUARE, value=17.0), [0])] + [
        unmeasured(claim) for claim in toy.CLAIMS[1:]
    ]
    content = msgspec.json.decode(write_claims(found, tmp_path, 4.04).read_bytes())
    assert content["claims"][0] == {
        "id": "toy.square",
        "published": 16.0,
        "accept_low": 15.0,
        "accept_high": 18.0,
        "measured": 17.0,
        "met": True,
        "note": "",
        "seeds": [0],
        "simulated_seconds": None,
        "seconds": 4.0,
    }
    assert content["claims"][1]["seconds"] is None
    rows = claim_rows(toy.CLAIMS, found)
    assert [row["met"] for row in rows] == [True, None, None]
    assert rows[0]["note"] == "made up"
    assert rows[1]["note"] == "made up; no experiment yet"


def test_a_run_has_kept_its_promises_only_if_both_judges_say_so(tmp_path: Path) -> None:
    sweep_tables(tmp_path)
    stored = stored_values(StoredTables(tmp_path))
    statuses = {name: run["status"] for name, (run, _) in stored.items()}
    # The oracles let wild-3 pass; the columns do not.
    assert statuses == {
        "calm-0": "kept",
        "calm-1": "kept",
        "wild-2": "violated",
        "wild-3": "violated",
        "wild-4": "failed",
    }
    assert stored["calm-0"][1]["messages_per_s"] == 1234.0
    assert stored["calm-0"][1]["delivered"] == 30.0


def test_figures_as_a_file_with_every_point_and_number(tmp_path: Path) -> None:
    curve = Curve(label="unordered", points=(Point(0.0, 0.05), Point(373.0, 0.5)), numbers={"p50": 373.0})
    axis = Axis(label="ticks")
    figure = Figure(id="toy-1", title="t", caption="c", x=axis, y=axis, curves=(curve,), beside="toy-1")
    (content,) = msgspec.json.decode(write_figures([("toy", figure)], tmp_path).read_bytes())["figures"]
    assert (content["experiment"], content["id"], content["beside"]) == ("toy", "toy-1", "toy-1")
    assert content["curves"][0]["numbers"] == {"p50": 373.0}
    assert content["curves"][0]["points"][1] == {"x": 373.0, "y": 0.5, "low": None, "high": None}
    assert (
        msgspec.convert({name: content[name] for name in content if name != "experiment"}, Figure) == figure
    )
    (tmp_path / "figures.json").unlink()
    (tmp_path / "figures.json").mkdir()
    with pytest.raises(LocalError, match="cannot write"):
        write_figures([], tmp_path)
