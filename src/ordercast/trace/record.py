"""What the description of a run says about its record: its files, its submissions, the lengths of lists."""

import re
from collections.abc import Iterator, Mapping

from ordercast.core import Consistency
from ordercast.trace.description import RunDescription

LIST_SLACK = 64
"""How many more groups than the run has a row may name, before it counts as damaged instead of wrong."""
BACKLOG_MAX = 100_000
"""A simulated sender may refuse a message only if more than so many wait: up to here none is refused."""
_NUMBERED = re.compile(r"(.*?)(\d+)(\.parquet)")
_NAMED_MAX = 3


_SHARDED = (Consistency.SERIALIZABLE, Consistency.STRICT_SERIALIZABLE)


def list_length_max(description: RunDescription) -> int:
    """The longest list of groups or numbers that a row of this run may have."""
    return len(description.groups) + LIST_SLACK


def expected_submissions(description: RunDescription, *, sure: bool) -> tuple[int, int] | None:
    """The least and the most messages that a run may have submitted, without probes; None if unknown.

    Only the simulator's scenario says it. A message counts there even if its sender is down, so the number is
    exact only if the run finished and no node crashed (`sure`). Recorded arrivals may end before it, and a
    workload with phases may fall silent. Clients of shards submit more: they conclude general transactions.
    """
    wanted = description.messages_wanted
    if wanted is None or description.guarantees.consistency in _SHARDED:
        return None
    workload = description.scenario["workload"]
    assert isinstance(workload, dict)
    steady = workload.get("kind") in ("poisson", "periodic", "closed") and not workload.get("phase")
    exact = sure and steady and description.complete and wanted <= BACKLOG_MAX
    return (wanted if exact else 0), wanted


def wrong_count(submissions: int, expected: tuple[int, int] | None) -> str:
    """What is wrong with the number of submissions, in words; empty if nothing is."""
    if expected is None or expected[0] <= submissions <= expected[1]:
        return ""
    least, most = expected
    limit = most if least == most else f"at most {most}"
    return f"the run has {submissions} submissions, but its scenario says {limit}"


def missing_files(description: RunDescription, rows: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The files of a run that are missing or have another number of rows than its description says."""
    for name, wanted in (description.files or {}).items():
        if name not in rows:
            yield name, f"the file is missing; run.json says that it has {wanted} rows"
        elif rows[name] != wanted:
            yield name, f"the file has {rows[name]} rows, but run.json says {wanted}"


def missing_between(before: str, after: str, rows: Mapping[str, int]) -> str:
    """Which numbered files are missing between two, in words; empty if none is known to be."""
    end = _NUMBERED.fullmatch(after)
    if end is None:
        return ""
    start = _NUMBERED.fullmatch(before)
    first = int(start[2]) + 1 if start is not None and start[1] == end[1] else 0
    names = [f"{end[1]}{number:0{len(end[2])}d}{end[3]}" for number in range(first, int(end[2]))]
    lost = [name for name in names[:_NAMED_MAX] if name not in rows]
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    if not lost:
        return ""
    return f"; there is no {', '.join(lost)}{more}"
