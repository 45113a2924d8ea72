"""The judge over columns: each property as arrays, for traces of millions of events.

`judge_columns` judges a whole run; `parts.py` and `blocks.py` sum up runs that are too large for one piece.
It is a second opinion: the oracles of `judge.online` look at one event after the other, this at whole
columns, and the two share only the registry of properties and the form of a finding.
"""

from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.judge import ColumnJudge, judge_columns
from ordercast.judge.columns.trace import COLUMNS

__all__ = ["COLUMNS", "Case", "ColumnJudge", "Findings", "judge_columns"]
