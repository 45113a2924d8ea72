"""The two judges of traces: one goes event by event (`online`), the other over whole columns (`columns`).

`verdict(description, events)` and `audit(description, table)` return the findings of each judge on a run;
`Judge` takes the events as they come. Both judge simulated and live runs in the same way, only from the trace
and the run's description, by the properties that the run promises. They are written independently, so that
each tests the other: they share only the registry of properties and the form of a finding.
"""

from ordercast.judge.finding import (
    END_OF_RUN,
    VIOLATIONS_MAX,
    Damage,
    Holes,
    NodeHoles,
    Replay,
    Verdict,
    Violation,
)
from ordercast.judge.judges import (
    Judge,
    audit,
    judge,
    judge_selected,
    may_be_parted,
    properties_of,
    verdict,
)
from ordercast.judge.online.locks import locks_left
from ordercast.judge.property import Property, rows_of
from ordercast.judge.registry import PROPERTIES
from ordercast.judge.stored import Judged, audit_files, damaged, verdict_on_files

__all__ = [
    "END_OF_RUN",
    "PROPERTIES",
    "VIOLATIONS_MAX",
    "Damage",
    "Holes",
    "Judge",
    "Judged",
    "NodeHoles",
    "Property",
    "Replay",
    "Verdict",
    "Violation",
    "audit",
    "audit_files",
    "damaged",
    "judge",
    "judge_selected",
    "locks_left",
    "may_be_parted",
    "properties_of",
    "rows_of",
    "verdict",
    "verdict_on_files",
]
