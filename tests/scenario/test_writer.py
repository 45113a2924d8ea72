"""A scenario that is written to a file loads again as the same scenario."""

from pathlib import Path

import pytest

from ordercast.catalogue import protocol_names
from ordercast.core import LocalError
from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import (
    BackgroundSpec,
    BurstSpec,
    LinksSpec,
    MatrixSpec,
    NetworkSpec,
    PhaseSpec,
    Scenario,
    SubmissionSpec,
    WorkloadSpec,
)
from ordercast.scenario.swarm import swarm_scenario
from ordercast.scenario.writer import scenario_toml, write_scenario

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.toml"))


def again(scenario: Scenario, folder: Path) -> Scenario:
    """The scenario, written and loaded."""
    write_scenario(folder / "again.toml", scenario, "A comment\nof two lines")
    return load_scenario(folder / "again.toml")


@pytest.mark.parametrize("protocol", protocol_names())
def test_every_scenario_of_the_swarm_survives(protocol: str, tmp_path: Path) -> None:
    for seed in range(40):
        scenario = swarm_scenario(protocol, seed)
        assert again(scenario, tmp_path) == scenario


def test_special_scenarios_survive(tmp_path: Path) -> None:
    background = BackgroundSpec(0.5, burst=BurstSpec(3, 10.0))
    links = LinksSpec("fat-tree", role_gbps={"switch": 1.5})
    listed = (SubmissionSpec(), SubmissionSpec(at_ms=1.25, sender=2, groups=(0, 1), bytes=0))
    for scenario in (
        Scenario(protocol='quoted "name" \x7f \n ü'),
        Scenario(protocol="x", options={"a b": [1, 2.5, "x"], "below": {"deep": {"flag": True}}, "e": {}}),
        Scenario(protocol="x", network=NetworkSpec(loss=1e-5, latency=links, background=background)),
        Scenario(protocol="x", workload=WorkloadSpec(phase=(PhaseSpec(rate_per_s=0.0), PhaseSpec(at_ms=1)))),
        Scenario(protocol="x", workload=WorkloadSpec(kind="listed", submission=listed)),
        Scenario(protocol="x", membership=((0, 1), (1, 2)), seed=1 << 70),
    ):
        assert again(scenario, tmp_path) == scenario


def test_what_is_the_default_is_left_out_and_the_comment_comes_first() -> None:
    assert scenario_toml(Scenario(protocol="x", seed=3), "why") == '# why\nprotocol = "x"\nseed = 3\n'


def test_a_path_stays_that_of_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    scenario = Scenario(protocol="x", network=NetworkSpec(latency=MatrixSpec("delays.npz")))
    loaded = again(scenario, tmp_path / "elsewhere")
    assert loaded.network.latency == MatrixSpec(str(tmp_path / "delays.npz"))


def test_a_file_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"cannot be written: No such file"):
        write_scenario(tmp_path / "no" / "where.toml", Scenario(protocol="x"))
