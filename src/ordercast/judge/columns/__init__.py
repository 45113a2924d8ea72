"""The vectorised judge: each property of `judge.online` as arrays, for traces of millions of events.

`audit(description, table)` gives the findings on a run. It is a second opinion: the oracles of `check` look
at one event after the other, this at whole columns, and the two share only the names of the properties and
the form of a finding. Spark tasks apply it run by run.
"""

from ordercast.judge.columns.judge import audit
from ordercast.judge.columns.trace import COLUMNS

__all__ = ["COLUMNS", "audit"]
