"""Simulates the scenarios of a sweep, each in a Spark task, and never repeats a finished run.

A task writes the trace of each run itself and yields one row of numbers about it, so traces never pass
through Spark. A finished run is one folder below `traces`. The folder appears there by a rename, together
with a manifest: the row, the findings, and checksums. A task that finds a complete run of the same scenario
yields that row and simulates nothing. The result of a run depends only on its scenario, so a sweep that was
stopped and continued ends with the same tables as one that was not.
"""

import fcntl
import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal
from zlib import crc32

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, StructField, StructType

from ordercast.core import LocalError, exception_text
from ordercast.judge import Violation
from ordercast.pipeline.package import PACKAGE
from ordercast.pipeline.schemas import FINDING, RUNS
from ordercast.scenario.spec import Scenario
from ordercast.sim.run import Run
from ordercast.sim.run import simulate as run_scenario

TRACES = "traces"
UNFINISHED = ".unfinished"
"""The folder of runs that are being written."""
MANIFEST = "manifest.json"
FORMAT = 2

SIMULATED = StructType([*RUNS.fields, StructField("findings", ArrayType(FINDING, False), False)])
"""A row of `runs` with what the oracles found in it."""

Simulate = Callable[[Scenario], Run]

LAYERS = (
    "catalogue", "components", "core", "judge", "kernel", "protocols", "replication", "scenario", "services",
    "sim", "toml_file", "trace", "transactions",
)  # fmt: skip
"""The packages and modules of ordercast that a run can depend on: the simulator's, and what it may import."""
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run: the columns of `runs` that its simulation fills."""

    status: Literal["kept", "violated", "failed"]
    error: str | None = None
    source: str | None = None
    folder: str | None = None
    trace_hash: str | None = None
    events: int | None = None
    submitted: int | None = None
    delivered: int | None = None
    dropped: int | None = None
    complete: bool | None = None
    ending: str | None = None
    duration_ns: int | None = None
    packets_lost: int | None = None
    overflowed: int | None = None
    refused: int | None = None
    timed_out: int | None = None
    answered: int | None = None
    unknown: int | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of a finished run, stored beside its trace."""

    format: int = FORMAT
    basis: str
    """What the run depended on besides its scenario, see `basis_of`."""
    scenario: str
    files: dict[str, int]
    """CRC-32 of the trace's files."""
    outcome: RunOutcome
    findings: list[Violation]


def simulate(
    scenarios: DataFrame,
    out: Path,
    *,
    tasks: int,
    basis: str,
    lock: Path | None = None,
    simulate_one: Simulate = run_scenario,
) -> DataFrame:
    """Run the rows of `scenarios` into `out`, in so many tasks; gives a row of `SIMULATED` for each.

    Seeds come from the rows, so how they are dealt out makes no difference to what comes of them. `lock` is a
    file that the driver has locked: when it is free, the driver is gone, and no further run is begun.
    """
    work = _SimulationTask(str(out.absolute()), basis, lock, simulate_one)
    return scenarios.repartition(tasks).mapInArrow(work, SIMULATED)


def basis_of(files: Iterable[Path]) -> str:
    """A digest of the code that simulates and judges, and of these data files.

    When one of them changes, runs that are on disk are not those that would be made now.
    """
    sources = [path for layer in LAYERS for path in (PACKAGE / layer).rglob("*.py")]
    sources += [path for layer in LAYERS if (path := PACKAGE / f"{layer}.py").exists()]
    digest = hashlib.sha256()
    try:
        for path in [*sorted(sources), *sorted(files)]:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    except OSError as error:
        raise LocalError(f"{error.filename}: cannot be read: {error.strerror}") from error
    return digest.hexdigest()


class _SimulationTask:
    """What a task does: plain data and functions only, because it travels to the executors."""

    def __init__(self, out: str, basis: str, lock: Path | None, simulate_one: Simulate) -> None:
        self._out = out
        self._basis = basis
        self._lock = lock
        self._simulate = simulate_one

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Simulate the rows one by one; each is handed on as soon as it is there."""
        schema = to_arrow_schema(SIMULATED)
        for batch in batches:
            for row in batch.to_pylist():
                outcome, findings = self._result(row["run"], row["scenario"])
                row |= msgspec.to_builtins(outcome) | {"findings": msgspec.to_builtins(findings)}
                yield pa.RecordBatch.from_pylist([row], schema=schema)

    def _result(self, name: str, scenario: str) -> tuple[RunOutcome, list[Violation]]:
        out = Path(self._out)
        if found := self._finished(out, name, scenario):
            return found.outcome, found.findings
        if self._lock and _is_free(self._lock):
            # Java may take seconds to notice that it should end.
            raise LocalError("the driver has exited")
        if not (out / UNFINISHED).is_dir():
            raise LocalError(
                f"the executors cannot see {out}; --out must be a folder that all machines share"
            )
        try:
            run = self._simulate(msgspec.json.decode(scenario, type=Scenario))
        except Exception as error:
            # A failure is not kept: without memory or a file now, the run may succeed the next time.
            return RunOutcome(status="failed", error=_ADDRESS.sub("0x...", exception_text(error))), []
        # Whatever fails from here on is not the run's fault, and must not pass for its result.
        return self._keep(out, name, scenario, run)

    def _finished(self, out: Path, name: str, scenario: str) -> Manifest | None:
        folder = out / TRACES / name
        try:
            manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
            same = (manifest.format, manifest.basis, manifest.scenario) == (FORMAT, self._basis, scenario)
            whole = same and _check_sums(folder) == manifest.files
        except (OSError, msgspec.MsgspecError):
            return None
        return manifest if whole else None

    def _keep(self, out: Path, name: str, scenario: str, run: Run) -> tuple[RunOutcome, list[Violation]]:
        summary = run.summary()
        outcome = RunOutcome(
            status="violated" if run.violations else "kept",
            source=run.description.source,
            folder=f"{TRACES}/{name}",
            **{key: getattr(summary, key) for key in _SUMMED},
        )
        with tempfile.TemporaryDirectory(dir=out / UNFINISHED, ignore_cleanup_errors=True) as scratch:
            folder = run.write(Path(scratch))
            manifest = Manifest(
                basis=self._basis,
                scenario=scenario,
                files=_check_sums(folder),
                outcome=outcome,
                findings=run.violations,
            )
            (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
            target = out / TRACES / name
            if target.exists():
                target.rename(Path(scratch) / "old")
            try:
                folder.rename(target)
            except OSError:
                # Another attempt at this task may have been faster; then there is nothing left to do.
                if not self._finished(out, name, scenario):
                    raise
        return outcome, run.violations


_SUMMED = [
    name for name in RunOutcome.__struct_fields__ if name not in {"status", "error", "source", "folder"}
]


def _is_free(lock: Path) -> bool:
    """Whether nobody has locked this file."""
    try:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # somebody has, or it cannot be told
        return False
    return True


def _check_sums(folder: Path) -> dict[str, int]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): crc32(path.read_bytes())
        for path in files
        if path.name != MANIFEST and not path.name.startswith(".")
    }


def clear_unfinished(out: Path) -> None:
    """Make an empty folder for unfinished runs; no other job may use `out` at the same time."""
    try:
        if (out / UNFINISHED).exists():
            shutil.rmtree(out / UNFINISHED)
        (out / UNFINISHED).mkdir(parents=True)
        (out / TRACES).mkdir(exist_ok=True)
    except OSError as error:
        raise LocalError(f"cannot write to {out}: {error.strerror}") from error
