"""The report: one HTML file made of the tables of a folder, and of nothing else.

Which sections it has depends on which tables there are. The same tables give the same bytes, so that a report
can be compared with an older one. It needs no Spark.
"""

from collections.abc import Callable
from pathlib import Path

from ordercast.core import LocalError
from ordercast.pipeline import report_claims, report_faults, report_runs
from ordercast.pipeline.page import Html, page
from ordercast.pipeline.stored_tables import StoredTables

REPORT = "report.html"

Section = Callable[[StoredTables], Html]

_OF_A_SWEEP: tuple[Section, ...] = (
    report_faults.failures,
    report_faults.violations,
    report_runs.points,
    report_runs.latencies,
    report_runs.throughputs,
    report_faults.recoveries,
    report_faults.judges,
)
# Its experiments draw figures of their own; those of a sweep would only hide them.
_OF_A_REPRODUCTION: tuple[Section, ...] = (
    report_claims.claims,
    report_faults.failures,
    report_faults.violations,
    report_claims.figures,
    report_runs.points,
    report_faults.judges,
)


def report(out: Path) -> Path:
    """Write `report.html` into a folder, from the tables below it; returns where it is."""
    tables = StoredTables(out)
    if not tables.has("runs") and not tables.has("claims"):
        raise LocalError(f"{out}: nothing to report on: there is neither a table 'runs' nor 'claims' in it")
    if tables.has("claims"):
        (title, lead), sections = report_claims.head(tables), _OF_A_REPRODUCTION
    else:
        (title, lead), sections = report_runs.head(tables), _OF_A_SWEEP
    text = page(title, lead, [section(tables) for section in sections])
    target, partial = out / REPORT, out / f".{REPORT}"
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        raise LocalError(f"cannot write {target}: {error.strerror or error}") from error
    return target
