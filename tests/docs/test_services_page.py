"""The page about services goes as it says, on real processes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.cli import run
from ordercast.core import ServiceType
from ordercast.scenario import load_scenario
from ordercast.sim import simulate
from tests.docs.test_documents import ROOT, blocks, cluster_ended, quick
from tests.live.processes import PATIENCE_S

PAGE = "docs/services.md"


def commands(block: str) -> list[list[str]]:
    return [line.split()[1:] for line in block.splitlines()]


def test_the_page_goes_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    service, program, *_ = blocks(PAGE, "python")
    assert service == (ROOT / "examples" / "live" / "store.py").read_text()
    assert len([line for line in service.splitlines() if line]) <= 20
    Path("store.py").write_text(service)
    Path("use_store.py").write_text(program)
    start, end = blocks(PAGE, "")
    with cluster_ended():
        said = [_said(words, capsys) for words in commands(start)]
        assert said[-1] == "blue"
        done = subprocess.run(
            [sys.executable, "use_store.py"], capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
        assert done.stdout.splitlines() == ["round blue", "refused: there is no color"]
        said = [_said(words, capsys) for words in commands(end)]
        assert "red" in said and "kept every promise" in said[-1]


def _said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(quick(words)) == 0, f"{words}: {capsys.readouterr().err}"
    return capsys.readouterr().out.strip()


def test_the_declared_set_survives_a_snapshot() -> None:
    names: dict[str, Any] = {"ordercast": ordercast}
    (declared,) = [block for block in blocks(PAGE, "python") if "class Names" in block]
    method = "    @ordercast.read\n    def count(self) -> int:\n        return len(self.names)\n"
    init = "    def __init__(self) -> None:\n        self.names = set()\n"
    exec(declared + init + method, names)
    ServiceType.of(names["Names"]).spec()


def test_the_scenario_of_the_page_keeps_its_promises(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, text = blocks(PAGE, "toml")
    path = tmp_path / "service.toml"
    path.write_text(text)
    assert simulate(load_scenario(path)).violations == []
    assert run(["live", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["operations"]["answered"] == 500 and told["outages"]["longest_ns"] > 0


def test_the_simulation_of_the_page_keeps_its_promises() -> None:
    (program,) = [block for block in blocks(PAGE, "python") if "simulate(" in block]
    exec(program, {})
