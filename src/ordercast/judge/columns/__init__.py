"""The judge over columns: it judges each property with arrays, for traces of millions of events.

`judge_columns` judges a whole run; `parts.py` and `blocks.py` summarise runs that are too large for one
piece. This judge is a second opinion: the oracles of `judge.online` look at one event after the other, this
judge at whole columns. The two share only the registry of properties and the form of a finding.
"""

from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.judge import ColumnJudge, judge_columns
from ordercast.judge.columns.trace import COLUMNS, STORED

__all__ = ["COLUMNS", "STORED", "Case", "ColumnJudge", "Findings", "judge_columns"]
