"""Online oracles: a run's promises judged event by event, one property a file.

`judge(description, events)` gives the findings on a whole run; `Judge` takes the events as they
come. Both judge simulated and live runs alike, from the trace and the run's description alone.
"""

from ordercast.check.judge import ORACLES, PROPERTIES, Judge, judge, oracles_for
from ordercast.check.oracle import VIOLATIONS_MAX, Oracle
from ordercast.check.violation import END_OF_RUN, Violation

__all__ = [
    "END_OF_RUN",
    "ORACLES",
    "PROPERTIES",
    "VIOLATIONS_MAX",
    "Judge",
    "Oracle",
    "Violation",
    "judge",
    "oracles_for",
]
