"""kill -9 of a sequencer under load on real processes: what the command tells, and what both judges say."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command, ordercast

__all__ = ["ordercast"]  # a fixture

SEQUENCER = 5
SCENARIO = f"""
protocol = "hydra"
seed = 7
senders = 2
settle_ms = 700

[options]
suspect_ns = 200_000_000
replicas = 1

[workload]
messages = 900
rate_per_s = 400

[[fault]]
kind = "crash"
at_ms = 300
host = {SEQUENCER}
"""


@pytest.mark.usefixtures("here")
def test_service_resumes_and_both_judges_accept_the_trace(ordercast: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    outcome = ordercast("live", scenario, "--out", tmp_path / "traces", "--json")
    assert outcome.code == 0, outcome.out
    told = json.loads(outcome.out)
    assert told["violations"] == [] and told["submitted"] == 900
    (silence,) = told["silences"]
    assert silence["host"] == SEQUENCER and set(silence["receivers"]) == {"0", "1", "2"}
    assert all(gap is not None and gap > 0 for gap in silence["receivers"].values()), "all went on"
    for words in ((), ("--master", "local[2]")):
        judged = ordercast("check", tmp_path / "traces", *words, "--json")
        assert judged.code == 0, judged.out
        assert (judged.json()["runs"], judged.json()["violations"]) == (1, [])
        assert judged.json()["incomplete"] == []
