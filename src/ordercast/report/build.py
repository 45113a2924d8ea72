"""The report: one HTML file made only from the tables of a folder.

The existing tables decide which sections it has. The same tables give the same bytes, so that a report can be
compared with an older one. It needs no Spark.
"""

from collections.abc import Callable
from pathlib import Path

from ordercast.core import LocalError
from ordercast.report import claims, faults, folder, runs
from ordercast.report.page import Html, page
from ordercast.report.stored_tables import StoredTables

REPORT = "report.html"

Section = Callable[[StoredTables], Html]

_OF_A_SWEEP: tuple[Section, ...] = (
    faults.failures,
    faults.violations,
    runs.points,
    runs.latencies,
    runs.throughputs,
    faults.recoveries,
    faults.judges,
)
# Its experiments draw figures of their own; those of a sweep would only hide them.
_OF_A_REPRODUCTION: tuple[Section, ...] = (
    claims.claims,
    faults.failures,
    faults.violations,
    claims.figures,
    runs.points,
    faults.judges,
)


_OF_A_FOLDER: tuple[Section, ...] = (
    folder.all_runs,
    faults.failures,
    faults.violations,
    folder.together,
    folder.each_run,
)


def has_tables(out: Path) -> bool:
    """Whether there is something in a folder that a report can be made of."""
    tables = StoredTables(out)
    return tables.has("runs") or tables.has("claims")


def report(out: Path, target: Path | None = None) -> Path:
    """Write `report.html` from the tables below a folder, into it or into another; returns where it is."""
    tables = StoredTables(out)
    if not has_tables(out):
        raise LocalError(f"{out}: nothing to report: the folder has neither a table 'runs' nor 'claims'")
    if tables.has("claims"):
        (title, lead), sections = claims.head(tables), _OF_A_REPRODUCTION
    elif tables.has("nodes"):
        (title, lead), sections = folder.head(tables), _OF_A_FOLDER
    else:
        (title, lead), sections = runs.head(tables), _OF_A_SWEEP
    text = page(title, lead, [section(tables) for section in sections])
    return _write(text, target or out)


def _write(text: str, folder: Path) -> Path:
    target, partial = folder / REPORT, folder / f".{REPORT}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        raise LocalError(f"cannot write {target}: {error.strerror or error}") from error
    return target
