"""A folder in which runs are good, violating, damaged and unreadable: every verdict is told."""

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.mixed_folder import DAMAGES, make_folder
from tests.cli.test_check import SWAPPED

WANTED = {name: verdict for name, (verdict, _, _) in DAMAGES.items()}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run for each case."""
    root = tmp_path_factory.mktemp("mixed")
    make_folder(root)
    return root


def check_verdicts(ordercast: Command, mixed: Path, *words: str) -> None:
    """Every run has its verdict, and what is wrong with it is told with its name."""
    outcome = ordercast("check", mixed, *words, "--json")
    assert outcome.code == 1
    content = outcome.json()
    assert {run["run"]: run["verdict"] for run in content["verdicts"]} == WANTED
    assert content["runs"] == len(WANTED)
    assert {(found["run"], found["property"]) for found in content["violations"]} == {
        ("violating", name) for name in SWAPPED
    }
    told = {found["run"]: found["detail"] for found in content["unreadable"]}
    for found in content["damaged"]:
        place = f"{found['file']}, row {found['row']}" if found["row"] is not None else found["file"]
        told.setdefault(found["run"], f"{place}: {found['detail']}")
    for name, (verdict, _, words_said) in DAMAGES.items():
        assert verdict in ("kept", "violated") or words_said in told[name]
    errors = outcome.err.strip().splitlines()
    assert len(errors) == sum(verdict == "unreadable" for verdict in WANTED.values())


def test_all_verdicts_are_told_as_json(ordercast: Command, mixed: Path) -> None:
    check_verdicts(ordercast, mixed)


def test_all_verdicts_are_told_in_words(ordercast: Command, mixed: Path) -> None:
    outcome = ordercast("check", mixed)
    assert outcome.code == 1
    assert "kept every promise: good, huge-seed (2 of 10 runs)" in outcome.out
    assert "total-order violated in violating\n" in outcome.out
    for name, (verdict, _, words) in DAMAGES.items():
        assert verdict != "damaged" or f"trace damaged in {name}\n" in outcome.out
        assert verdict != "unreadable" or any(
            line.startswith(f"ordercast: {name}: ") and words in line for line in outcome.err.splitlines()
        )


@pytest.mark.parametrize(
    ("names", "code"), [(["good", "truncated"], 2), (["good", "empty"], 1), (["good"], 0)]
)
def test_exit_codes(ordercast: Command, mixed: Path, tmp_path: Path, names: list[str], code: int) -> None:
    for name in names:
        shutil.copytree(mixed / name, tmp_path / name)
    assert ordercast("check", tmp_path).code == code
