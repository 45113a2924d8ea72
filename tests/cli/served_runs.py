"""A folder with two runs of services that keep their values: an honest one, and one that lies."""

from pathlib import Path

import msgspec
import pytest

from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from tests.sim.mutants_service import Lying, served_by

SCENARIO = Scenario(
    protocol="unreplicated",
    service="kv",
    senders=3,
    history=True,
    workload=WorkloadSpec(messages=60, reads=0.5, bytes=8),
)


@pytest.fixture
def served(tmp_path: Path) -> tuple[Path, Path]:
    """The folders of the honest run and of the other one, side by side."""
    lying = msgspec.structs.replace(SCENARIO, seed=1)
    broken = simulate(lying, served_by(Lying, lying.plan()))
    folder = tmp_path / "traces"
    return simulate(SCENARIO).write(folder), broken.write(folder)
