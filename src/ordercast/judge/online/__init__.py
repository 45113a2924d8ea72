"""Online oracles: a run's promises judged event by event, one property a file.

`judge(description, events)` gives the findings on a whole run, `verdict` also how many more there
were; `Judge` takes the events as they come. All judge simulated and live runs alike, from the trace
and the run's description alone.
"""

from ordercast.judge.online.holes import Holes, NodeHoles
from ordercast.judge.online.judge import ORACLES, PROPERTIES, Judge, Verdict, judge, oracles_for, verdict
from ordercast.judge.online.oracle import VIOLATIONS_MAX, Oracle
from ordercast.judge.online.violation import END_OF_RUN, Violation

__all__ = [
    "END_OF_RUN",
    "ORACLES",
    "PROPERTIES",
    "VIOLATIONS_MAX",
    "Holes",
    "Judge",
    "NodeHoles",
    "Oracle",
    "Verdict",
    "Violation",
    "judge",
    "oracles_for",
    "verdict",
]
