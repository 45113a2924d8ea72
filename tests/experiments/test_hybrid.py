"""The hybrid paper's experiments: small runs follow the formulas, and the evaluations are arithmetic."""

from pathlib import Path

import msgspec
import pytest

from ordercast.core import LocalError
from ordercast.experiments import Case, Setup, all_experiments
from ordercast.experiments.hybrid import alone, arrivals, dynamic, static
from ordercast.experiments.hybrid.runs import (
    DYNAMIC,
    LATENCY,
    STATIC,
    SYMMETRIC,
    TOKEN_SITE,
    UnderLoad,
    flat,
    two_sites,
)
from ordercast.experiments.published import all_claims
from ordercast.pipeline.cases import CaseResult, Results

EXPERIMENTS = {each.name: each for each in all_experiments() if each.name.startswith("hybrid-")}


def test_every_claim_of_the_paper_is_measured() -> None:
    measured = {claim for each in EXPERIMENTS.values() for claim in each.claims}
    assert measured == {claim.id for claim in all_claims() if claim.system == "hybrid"}


def made_up(cases: list[Case], value: dict[str, float]) -> Results:
    """Results whose values follow from the system alone."""
    return Results(
        CaseResult(
            case=case,
            name="made up",
            status="kept",
            error=None,
            values={LATENCY: value[str(case.parameters["system"])]},
            records=[msgspec.structs.asdict(UnderLoad(value[str(case.parameters["system"])], 2.5, 7, 3, 1))]
            * 2,
        )
        for case in cases
    )


def test_a_message_takes_two_delays_over_a_token_site() -> None:
    measured = flat(seed=1, system=TOKEN_SITE, delay_ms=100.0, processes=4, rate_per_s=10.0, seconds=6.0)
    # Of four processes one is the site, whose own messages take one delay.
    assert measured.numbers[LATENCY] == pytest.approx(100 * (3 * 2 + 1) / 4, rel=0.02)


def test_a_message_takes_one_delay_and_less_than_an_interval_in_symmetric_order() -> None:
    measured = flat(seed=1, system=SYMMETRIC, delay_ms=100.0, processes=4, rate_per_s=10.0, seconds=6.0)
    assert 150 < measured.numbers[LATENCY] < 205


def test_static_roles_are_as_fast_as_the_better_protocol() -> None:
    def latency(system: str) -> float:
        found = two_sites(
            seed=0, system=system, near_ms=20, far_ms=520, high=(3,), rates_per_s=(20.0, 1.0), seconds=6.0
        )
        return found.numbers[LATENCY]

    assert latency(STATIC) < 0.7 * min(latency(TOKEN_SITE), latency(SYMMETRIC))


def test_members_that_adapt_come_to_the_same() -> None:
    (found,) = dynamic.measure(
        seed=0, system=DYNAMIC, source="periodic", detector="mean-shift", scenarios=1, seconds=14.0
    ).records
    load = msgspec.convert(found, UnderLoad)
    assert load.latency_ms == pytest.approx(530, rel=0.02)
    assert (load.changes, load.late) == (4, 0)  # all but the process with the load become passive
    assert 5 < load.adapted_s < 8.4


def test_an_hour_of_arrivals_has_a_stand_in() -> None:
    asked = arrivals.requests(1, "", 600.0)
    assert len(asked) == pytest.approx(arrivals.REQUESTS / 6, rel=0.1)
    assert {one.sender for one in asked} == set(range(arrivals.MEMBERS))


def test_data_without_the_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"no azure-llm.*; leave --data out for a stand-in"):
        arrivals.cases(Setup(data=tmp_path))


def test_the_better_of_the_others_counts_for_real_arrivals() -> None:
    values = {TOKEN_SITE: 100.0, SYMMETRIC: 80.0, DYNAMIC: 60.0}
    results = Results(
        CaseResult(
            case=case,
            name="made up",
            status="kept",
            error=None,
            values={f"q{share:g}": values[str(case.parameters["system"])] for share in arrivals.QUANTILES},
        )
        for case in arrivals.cases(Setup())
    )
    assert [each.value for each in arrivals.evaluate(results).measurements] == [0.75, 0.75]


def test_where_the_curves_cross() -> None:
    assert alone.crossover({50.0: 100.0, 150.0: 300.0}, {50.0: 150.0, 150.0: 250.0}) == pytest.approx(100)
    assert alone.crossover({50.0: 100.0}, {50.0: 90.0}) == 50
    assert alone.crossover({50.0: 80.0}, {50.0: 90.0}) == 50


def test_the_worst_load_counts_for_static_roles() -> None:
    results = made_up(static.cases(Setup(quick=True)), {TOKEN_SITE: 100.0, SYMMETRIC: 80.0, STATIC: 88.0})
    (measured,) = static.evaluate(results).measurements
    assert measured.value == pytest.approx(1.1)


def test_the_mean_over_loads_and_the_share_of_loads_count_for_members_that_adapt() -> None:
    values = {TOKEN_SITE: 100.0, SYMMETRIC: 80.0, DYNAMIC: 76.0}
    results = made_up(dynamic.cases(Setup(quick=True)), values)
    evaluation = dynamic.evaluate(results)
    tracks, below = evaluation.measurements
    assert tracks.value == pytest.approx(0.95)
    assert below.value == 1.0
    assert "2.5 s (7), 2.5 s (7); 6 changes of role, and 2 in steady states" in tracks.note
    assert [len(figure.curves) for figure in evaluation.figures] == [4, 4]  # both detectors
