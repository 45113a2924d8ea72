"""The published claims are read as they are written, and can be selected by id and by prefix."""

import pytest

from ordercast.core import LocalError
from ordercast.experiments import all_experiments, measuring
from ordercast.experiments.published import FILES, all_claims, read_claims, select_claims

BY_ID = {claim.id: claim for claim in all_claims()}


def test_ids_are_unique_and_name_their_system() -> None:
    claims = all_claims()
    assert len(BY_ID) == len(claims) > 50
    assert all(claim.id.startswith(f"{claim.system}.") for claim in claims)
    assert {claim.system for claim in claims} == {"hydra", "hybrid", "epto", "llft", "atoms", "baseline"}


@pytest.mark.parametrize("file", FILES)
def test_every_claim_is_whole_and_its_band_holds_the_published_value(file: str) -> None:
    for claim in read_claims(file):
        assert claim.source
        assert claim.setup
        assert claim.metric
        assert claim.accept_low <= claim.published <= claim.accept_high, claim.id


def band(name: str) -> tuple[float, float, float]:
    claim = BY_ID[name]
    return claim.published, claim.accept_low, claim.accept_high


@pytest.mark.parametrize(
    ("derived", "above", "below"),
    [
        (
            "baseline.atomic_vs_unordered_throughput",
            ["hydra.micro.throughput_vs_unordered"],
            "hydra.micro.throughput_vs_atomic",
        ),
        (
            "baseline.atomic_group_size",
            ["hydra.group_size.drop_3_to_9", "hydra.micro.throughput_vs_atomic"],
            "hydra.group_size.throughput_vs_atomic_9",
        ),
        (
            "baseline.atomic_vs_unordered_groups15",
            ["hydra.groups15.throughput_vs_unordered"],
            "hydra.groups15.throughput_vs_atomic",
        ),
        ("baseline.granola_vs_lockstore", ["hydra.txn.vs_lockstore"], "hydra.txn.vs_granola"),
        ("baseline.eris_vs_granola", ["hydra.txn.vs_granola"], "hydra.txn.vs_eris"),
    ],
)
def test_derived_claims_follow_from_printed_ones(derived: str, above: list[str], below: str) -> None:
    value, low, high = 1.0, 1.0, 1.0
    for name in above:
        value, low, high = (a * b for a, b in zip((value, low, high), band(name), strict=True))
    over, over_low, over_high = band(below)
    expected = (value / over, low / over_high, high / over_low)
    assert band(derived) == pytest.approx(expected, rel=5e-4)  # four digits are written down
    assert all(name in BY_ID[derived].note for name in [*above, below])
    assert BY_ID[derived].note.startswith("derived, not printed")


@pytest.mark.parametrize(
    ("further", "printed"),
    [("epto.internet.growth", "epto.scale_log"), ("epto.internet.holes", "epto.holes")],
)
def test_claims_for_more_processes_have_the_bands_of_printed_ones(further: str, printed: str) -> None:
    assert band(further) == band(printed)
    assert BY_ID[further].note.startswith(f"derived, not printed: {printed} ")


def test_what_is_seen_is_at_most_the_bound() -> None:
    assert band("epto.bound") == (1.0, 0.0, 1.0)
    assert BY_ID["epto.bound"].note.startswith("derived, not printed: Figure 3")


def test_a_derived_claim_is_there_for_each_row() -> None:
    assert len(read_claims("derived.csv")) == 10


def test_a_claim_is_selected_by_its_id_or_a_prefix() -> None:
    claims = all_claims()
    assert [claim.id for claim in select_claims(["epto.holes"], claims)] == ["epto.holes"]
    micro = select_claims(["hydra.micro"], claims)
    assert len(micro) == 4
    assert all(claim.id.startswith("hydra.micro.") for claim in micro)
    # In the order of the file, and each once.
    both = select_claims(["epto.holes", "hydra", "hydra.micro"], claims)
    assert [claim.id for claim in both] == [
        c.id for c in claims if c.system == "hydra" or c.id == "epto.holes"
    ]
    assert select_claims([], claims) == claims


@pytest.mark.parametrize("unknown", ["hydra.mic", "nothing", "", "hydra.", "HYDRA"])
def test_an_unknown_claim_is_an_error_that_lists_what_there_is(unknown: str) -> None:
    with pytest.raises(LocalError, match=r"no claim '.*'; there are: .*hydra\.micro\.latency_vs_atomic"):
        select_claims(["hydra", unknown], all_claims())


def test_experiments_are_found_and_measure_known_claims() -> None:
    experiments = all_experiments()
    assert {"hydra-2a", "hydra-group-size", "hydra-2c"} <= {experiment.name for experiment in experiments}
    assert len({experiment.name for experiment in experiments}) == len(experiments)
    for experiment in experiments:
        assert experiment.claims
        assert set(experiment.claims) <= set(BY_ID)


def test_an_experiment_is_chosen_by_its_claims() -> None:
    chosen = measuring(["baseline.atomic_group_size", "hydra.skew.throughput"])
    assert [experiment.name for experiment in chosen] == ["hydra-group-size", "hydra-10"]
    assert [experiment.name for experiment in measuring(["hydra.txn.vs_eris"])] == ["hydra-6"]
    assert measuring(["llft.nondet_linear_us"]) == []
