"""Reads recorded arrival times from a CSV file."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ordercast.core import MICROSECOND, SECOND, LocalError, Nanos


def read_arrivals(path: Path) -> list[Nanos]:
    """The times of a recording, in nanoseconds since its start."""
    try:
        with path.open(newline="") as file:
            cells = [row[0] for row in csv.reader(file) if row]
        if cells and not _is_time(cells[0]):
            cells = cells[1:]  # a header
        times = [_time_ns(cell) for cell in cells]
        if cells and not _is_number(cells[0]):
            first = min(times)
            times = [time - first for time in times]
        if min(times, default=0) < 0:
            raise ValueError("a time is before the start of the recording")
        return times
    except (OSError, ValueError, OverflowError, csv.Error) as error:
        raise LocalError(f"{path}: not a list of arrival times: {error}") from error


def _time_ns(cell: str) -> Nanos:
    """Seconds, or a date and time."""
    if _is_number(cell):
        return round(float(cell) * SECOND)
    # A time without a zone counts as UTC: only differences matter, whatever the zone of this machine is.
    since = datetime.fromisoformat(cell).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1) * MICROSECOND


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_time(cell: str) -> bool:
    try:
        _time_ns(cell)
    except ValueError:
        return False
    return True
