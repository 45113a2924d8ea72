"""The page about transactions goes as it says, on real processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.cli import run
from tests.docs.test_documents import ROOT, blocks, cluster_ended, quick
from tests.live.processes import PATIENCE_S

PAGE = "docs/transactions.md"


def test_the_bank_goes_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    bank, program, _ = blocks(PAGE, "python")
    assert bank == (ROOT / "examples" / "live" / "bank.py").read_text()
    assert len([line for line in bank.splitlines() if line]) <= 30
    Path("bank.py").write_text(bank)
    Path("use_bank.py").write_text(program)
    (start,) = blocks(PAGE, "")
    with cluster_ended():
        for line in start.splitlines():
            assert run(quick(line.split()[1:])) == 0, f"{line}: {capsys.readouterr().err}"
        done = subprocess.run(
            [sys.executable, "use_bank.py"], capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
        assert done.stdout.split() == ["60", "10"]


def test_the_scenario_of_the_page_keeps_every_promise() -> None:
    exec(blocks(PAGE, "python")[-1], {})
