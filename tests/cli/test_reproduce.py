"""`ordercast reproduce` and `ordercast report`: what they take, what they say, and how they end."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import typer

from ordercast.cli.app import build_app, run_app
from ordercast.experiments.published import all_claims
from ordercast.pipeline import reproduce as job
from ordercast.pipeline import session
from ordercast.pipeline.claims import Claim, ClaimResult, Measurement, judged, unmeasured
from ordercast.pipeline.reproduce import Reproduction, Work
from tests.report.report_tables import sweep_tables


class Job:
    """Takes the place of the job: remembers what it was asked, and answers with the values given."""

    def __init__(self, out: Path) -> None:
        self.values: dict[str, float] = {}
        self.broken = 0
        self.works: list[Work] = []
        self.claims: list[Claim] = []
        self.out = out

    def __call__(
        self, spark: object, works: list[Work], claims: list[Claim], out: Path, report: object
    ) -> Reproduction:
        self.works, self.claims, self.out = works, claims, out
        results: list[ClaimResult] = []
        for claim in claims:
            value = self.values.get(claim.id)
            measured = None if value is None else Measurement(claim=claim.id, value=value, note="as it was")
            results.append(judged(claim, measured) if measured else unmeasured(claim))
        return Reproduction(results, out / "report.html", self.broken)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Job:
    stand_in = Job(tmp_path)
    monkeypatch.setattr(job, "reproduce", stand_in)

    class NoSpark:
        def __init__(self, *args: object) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *args: object) -> None: ...

    monkeypatch.setattr(session, "running_spark", NoSpark)
    return stand_in


def test_json_is_all_there_is_on_standard_output(
    stand_in: Job, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stand_in.values = {"baseline.atomic_group_size": 0.5}
    wanted = ["baseline.atomic_group_size", "llft.nondet_linear_us"]
    assert run_app(["reproduce", *wanted, "--out", str(tmp_path), "--json"]) == 0
    claims = json.loads(capsys.readouterr().out)["claims"]
    assert [claim["id"] for claim in claims if claim["measured"] is None] == ["llft.nondet_linear_us"]
    assert claims[-1] == {
        "id": "baseline.atomic_group_size",
        "published": 0.6593,
        "accept_low": 0.32,
        "accept_high": 1.224,
        "measured": 0.5,
        "met": True,
        "note": "as it was",
    }
    assert claims[0]["note"] == "no experiment yet"
    assert claims[0]["met"] is None
    assert [work.name for work in stand_in.works] == ["hydra-group-size"]


def test_a_missed_claim_is_exit_code_1(
    stand_in: Job, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stand_in.values = {"baseline.atomic_group_size": 7.0}
    assert run_app(["reproduce", "baseline", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "baseline.atomic_group_size         7   published 0.6593, accepted 0.32 to 1.224: missed\n" in said
    assert "\n  as it was\n" in said
    assert "4 not measured" in said
    assert f"report: {tmp_path / 'report.html'}" in said.replace("\n", "")


def test_a_broken_promise_is_exit_code_1(
    stand_in: Job, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    stand_in.broken = 2
    assert run_app(["reproduce", "epto", "--out", str(tmp_path)]) == 1
    assert "2 runs broke a promise or failed" in capsys.readouterr().out


def test_without_a_name_all_claims_are_selected(stand_in: Job, tmp_path: Path) -> None:
    assert run_app(["reproduce", "--quick", "--out", str(tmp_path)]) == 0
    assert stand_in.claims == all_claims()
    assert {work.name for work in stand_in.works} >= {"hydra-2a", "hydra-group-size", "hydra-2c"}


def test_quick_is_less(stand_in: Job, tmp_path: Path) -> None:
    sizes = []
    for more in ([], ["--quick"]):
        run_app(["reproduce", "baseline", "--out", str(tmp_path), *more])
        sizes.append(sum(len(work.cases) for work in stand_in.works))
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        (["baseline"], "baseline"),
        (["baseline", "epto.bound", "--quick"], "baseline-epto.bound-quick"),
        (["--quick"], "all-quick"),
        (["baseline", "--out", "mine"], None),
    ],
)
def test_without_a_folder_each_selection_has_its_own(
    stand_in: Job,
    arguments: list[str],
    folder: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_app(["reproduce", *arguments, "--json"]) == 0
    assert stand_in.out == (Path(".ordercast", "reproduced", folder) if folder else Path("mine"))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["reproduce", "hydra.nothing", "--out", "out"], "no claim 'hydra.nothing'; there are: "),
        (["reproduce", "--data", "absent", "--out", "out"], "--data absent: no such folder"),
        (["report", "absent"], "absent: no such folder"),
        (["report"], "Missing argument"),
    ],
)
def test_bad_input_is_exit_code_2(
    arguments: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_app(arguments) == 2
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert captured.out == ""
    assert not (tmp_path / "out").exists()


def test_report_makes_the_report_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sweep_tables(tmp_path)
    assert run_app(["report", str(tmp_path)]) == 0
    said = Path(capsys.readouterr().out.replace("\n", ""))
    assert said == tmp_path / "report.html"
    assert "Runs by point" in said.read_text()


def test_help_teaches_with_examples() -> None:
    command = typer.main.get_command(build_app())
    assert {"reproduce", "report"} <= set(command.commands)  # type: ignore[attr-defined]
    for name in ("reproduce", "report"):
        assert "ordercast reproduce baseline" in command.commands[name].help  # type: ignore[attr-defined]


def test_help_loads_neither_spark_nor_a_plotting_library() -> None:
    program = (
        "import sys\nfrom ordercast.cli.app import run_app\nrun_app(['reproduce', '--help'])\n"
        "import json\nprint(json.dumps([m for m in ('pyspark', 'matplotlib') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert msgspec.json.decode(done.stdout.splitlines()[-1]) == []
    assert "--quick" in done.stdout
