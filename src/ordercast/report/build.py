"""The report: one HTML file made of the tables of a folder, and of nothing else.

Which sections it has depends on which tables there are. The same tables give the same bytes, so that a report
can be compared with an older one. It needs no Spark.
"""

from collections.abc import Callable
from pathlib import Path

from ordercast.core import LocalError
from ordercast.report import claims, faults, runs
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


def report(out: Path) -> Path:
    """Write `report.html` into a folder, from the tables below it; returns where it is."""
    tables = StoredTables(out)
    if not tables.has("runs") and not tables.has("claims"):
        raise LocalError(f"{out}: nothing to report on: there is neither a table 'runs' nor 'claims' in it")
    if tables.has("claims"):
        (title, lead), sections = claims.head(tables), _OF_A_REPRODUCTION
    else:
        (title, lead), sections = runs.head(tables), _OF_A_SWEEP
    text = page(title, lead, [section(tables) for section in sections])
    target, partial = out / REPORT, out / f".{REPORT}"
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        raise LocalError(f"cannot write {target}: {error.strerror or error}") from error
    return target
