"""The whole job: experiments in, claims, figures, tables and a report out, and nothing is done twice."""

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from ordercast.core import LocalError
from ordercast.pipeline.claims import Measurement
from ordercast.pipeline.functions import call_functions
from ordercast.pipeline.reproduce import Evaluation, reproduce
from ordercast.pipeline.schemas import CASES, CLAIMS, EXPERIMENTS, FIGURES
from ordercast.pipeline.tables import read_table
from tests.experiments import toy


@pytest.fixture
def functions(spark: SparkSession) -> SparkSession:
    """Spark whose executors have the functions of the toy."""
    spark.sparkContext.addPyFile(str(Path(toy.__file__)))
    return spark


@pytest.mark.deep
def test_from_experiments_to_claims(functions: SparkSession, tmp_path: Path) -> None:
    spark, out, called = functions, tmp_path / "out", tmp_path / "called"
    works = [toy.function_work(called), toy.scenario_work()]
    done = reproduce(spark, works, toy.CLAIMS, out)
    assert done.broken == 0
    square, mean, later = done.claims
    assert (square.measured, square.met, square.note) == (17.0, True, "of two")
    assert (square.seeds, square.simulated_seconds) == ((0, 1), 2.0)
    assert (mean.measured, mean.met) == (5.0, False)
    assert mean.simulated_seconds is not None
    assert mean.simulated_seconds > 0
    assert (later.measured, later.met, later.note) == (None, None, "no experiment yet")
    content = msgspec.json.decode((out / "claims.json").read_bytes())
    assert [claim["met"] for claim in content["claims"]] == [True, False, None]

    claims = read_table(spark, out, "claims", CLAIMS).collect()
    assert [row["id"] for row in claims] == [claim.id for claim in toy.CLAIMS]
    cases = read_table(spark, out, "cases", CASES).collect()
    assert len(cases) == 8
    assert {row["values"]["square"] for row in cases if row["function"]} == {9.0, 10.0, 16.0, 17.0}
    assert all(row["values"]["delivered"] == 150.0 for row in cases if not row["function"])
    experiments = read_table(spark, out, "experiments", EXPERIMENTS).collect()
    assert [(row["name"], row["cases"], row["broken"]) for row in experiments] == [
        ("squares", 4, 0),
        ("means", 4, 0),
    ]
    assert [row["figure"] for row in read_table(spark, out, "figures", FIGURES).collect()] == ["toy-squares"]

    text = done.report.read_text()
    for words in (
        "1 met",
        "1 missed",
        "1 not measured",
        "toy.<wbr>square",
        "15 to 18",
        "made up; no experiment yet",
    ):
        assert words in text
    assert text.count("<svg") == 1
    lines = called.read_text().splitlines()
    assert sorted(lines) == ["3 0", "3 1", "4 0", "4 1"]
    traces = {path: path.stat().st_mtime_ns for path in out.glob("traces/*/*.parquet")}

    # Again, with a run that broke a promise: it is shown, and all claims of its experiment count as missed.
    manifest = sorted(out.glob("traces/unordered-*/manifest.json"))[0]
    kept = msgspec.json.decode(manifest.read_bytes())
    finding = {
        "property": "integrity",
        "nodes": [1],
        "messages": [7],
        "times_ns": [9],
        "detail": "twice",
        "step": 3,
    }
    kept |= {"findings": [finding], "outcome": kept["outcome"] | {"status": "violated"}}
    manifest.write_bytes(msgspec.json.encode(kept))
    wide = [toy.claim(toy.MEAN, 5.0, 0.0, 10.0), toy.CLAIMS[0]]
    done = reproduce(spark, works, wide, out)
    assert done.broken == 1
    assert [claim.met for claim in done.claims] == [False, True]
    assert done.claims[0].measured == 5.0
    assert "1 of 4 cases of 'means' broke a promise" in done.claims[0].note
    text = done.report.read_text()
    assert "Broken promises" in text
    assert f"ordercast replay traces/{manifest.parent.name}" in text
    # Nothing was called or simulated a second time.
    assert called.read_text().splitlines() == lines
    assert {path: path.stat().st_mtime_ns for path in out.glob("traces/*/*.parquet")} == traces


def test_a_function_that_fails_misses_its_claims(functions: SparkSession, tmp_path: Path) -> None:
    called = tmp_path / "called"
    work = toy.function_work(called, (4, -1))
    done = reproduce(functions, [work], toy.CLAIMS[:1], tmp_path / "out")
    assert done.broken == 2
    (claim,) = done.claims
    assert (claim.measured, claim.met) == (None, False)
    assert "no negative numbers <here>" in claim.note
    assert "no negative numbers &lt;here&gt;" in done.report.read_text()
    # What failed is tried again, what went well is not.
    call_functions(functions, work.cases, tmp_path / "out")
    assert sorted(called.read_text().splitlines()) == ["-1 0", "-1 0", "-1 1", "-1 1", "4 0", "4 1"]


@pytest.mark.deep
def test_the_same_again_gives_the_same_bytes(functions: SparkSession, tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        done = reproduce(functions, [toy.function_work(tmp_path / "called")], toy.CLAIMS, tmp_path / "out")
        claims = msgspec.json.decode((tmp_path / "out" / "claims.json").read_bytes())["claims"]
        took = [claim.pop("seconds") for claim in claims]  # the one thing that may differ
        assert [seconds is None for seconds in took] == [claim["met"] is None for claim in claims]
        made.append((done.report.read_bytes(), claims))
    assert made[0] == made[1]
    assert len((tmp_path / "called").read_text().splitlines()) == 4


@pytest.mark.deep
def test_an_experiment_measures_what_it_announces(spark: SparkSession, tmp_path: Path) -> None:
    stray = Evaluation(measurements=(Measurement(claim="toy.later", value=1.0),))
    work = toy.scenario_work()._replace(evaluate=lambda results: stray)
    with pytest.raises(LocalError, match=r"'means' measures 'toy\.later', which is not among its claims"):
        reproduce(spark, [work], toy.CLAIMS, tmp_path / "out")


def test_claims_without_an_experiment_are_reported_all_the_same(spark: SparkSession, tmp_path: Path) -> None:
    done = reproduce(spark, [], toy.CLAIMS, tmp_path / "out")
    assert [claim.met for claim in done.claims] == [None, None, None]
    assert "3 not measured" in done.report.read_text()
