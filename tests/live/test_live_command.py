"""`ordercast live` and `--from-trace`, as a user meets them."""

import json
from pathlib import Path

import pytest

from ordercast.cli import run
from ordercast.scenario.spec import Scenario

SCENARIO = """
protocol = "hydra"
seed = 4
settle_ms = 500

[cpu]
receive_ns = 1000

[workload]
messages = 60
rate_per_s = 200

[[fault]]
kind = "crash"
at_ms = 100
host = 0
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO)
    return path


def test_a_live_run_is_told_judged_and_written(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["live", str(scenario), "--out", str(tmp_path / "traces"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["protocol"], told["seed"], told["submitted"], told["violations"]) == ("hydra", 4, 60, [])
    assert told["ignored"] == ["the costs of CPUs are not imitated: work takes its real time on this machine"]
    (silence,) = told["silences"]
    assert silence["host"] == 0 and set(silence["receivers"]) == {"0", "1", "2"}
    assert silence["receivers"]["0"] is None, "it did not come back"
    assert run(["check", str(tmp_path / "traces")]) == 0
    assert "kept every promise" in capsys.readouterr().out
    assert run(["live", "--from-trace", told["out"], "--seed", "9"]) == 0
    again = capsys.readouterr().out
    assert "hydra, live, seed 9" in again and "60 messages" in again
    assert "longest silence: node 0 forever, node 1" in again
    assert run(["simulate", "--from-trace", told["out"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["submitted"] == 60
    assert run(["replay", told["out"]]) == 2
    assert "a live run cannot be replayed; use ordercast simulate --from-trace" in " ".join(
        capsys.readouterr().err.split()
    )


def test_what_is_wrong_is_told_in_a_line_before_anything_starts(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["live"]) == 2
    assert "nothing to run: name a scenario file" in capsys.readouterr().err
    assert run(["live", str(scenario), "--from-trace", str(tmp_path)]) == 2
    assert "not both" in capsys.readouterr().err
    scenario.write_text(SCENARIO.replace("host = 0", "host = 77"))
    assert run(["live", str(scenario)]) == 2
    assert "scenario.toml, line 16: fault[0].host: there is no host 77" in " ".join(
        capsys.readouterr().err.split()
    )
    assert run(["simulate", "--from-trace", str(tmp_path / "nothing")]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_another_protocol_runs_in_place_of_that_of_the_scenario(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asked(Exception):
        """Carries the scenario that would be run."""

    def ask(chosen: Scenario, out: Path | None, progress: object) -> None:
        raise Asked(chosen)

    monkeypatch.setattr("ordercast.cli.live.run_live", ask)
    monkeypatch.setenv("ORDERCAST_DEBUG", "1")
    scenario.write_text(SCENARIO + "[options]\nsequencers = 3\n")
    options: list[object] = []
    for words in ([str(scenario)], [str(scenario), "--protocol", "epto"], ["--protocol", "unordered"]):
        with pytest.raises(Asked) as asked:
            run(["live", *words])
        (chosen,) = asked.value.args
        options.append((chosen.protocol, chosen.options, chosen.workload.messages))
    assert options == [("hydra", {"sequencers": 3}, 60), ("epto", {}, 60), ("unordered", {}, 100)]
