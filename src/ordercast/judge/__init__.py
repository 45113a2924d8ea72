"""The judges of traces: one goes event by event (`online`), one over whole columns (`columns`).

`verdict(description, events)` and `audit(description, table)` give what each found in a run; `Judge` takes
the events as they come. Both judge simulated and live runs alike, from the trace and the run's description
alone, by the properties that the registry has for what the run promises. They are written apart, so that each
is the other's test: they share the registry and the form of a finding, no more.
"""

from ordercast.judge.finding import END_OF_RUN, VIOLATIONS_MAX, Holes, NodeHoles, Verdict, Violation
from ordercast.judge.judges import (
    Judge,
    audit,
    judge,
    judge_selected,
    may_be_parted,
    properties_of,
    verdict,
)
from ordercast.judge.property import Property, rows_of
from ordercast.judge.registry import PROPERTIES

__all__ = [
    "END_OF_RUN",
    "PROPERTIES",
    "VIOLATIONS_MAX",
    "Holes",
    "Judge",
    "NodeHoles",
    "Property",
    "Verdict",
    "Violation",
    "audit",
    "judge",
    "judge_selected",
    "may_be_parted",
    "properties_of",
    "rows_of",
    "verdict",
]
