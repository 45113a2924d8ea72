"""Histories of operations, judged by their values alone: is there an order that explains all answers?

`read_history` reads a file, and `judge_history` judges a `History` from anywhere. `transactions` judges those
on several lists at once, and `judge_balances` those of a bank. Nothing here knows traces
or protocols: whoever has the operations of clients, with times and values, makes a `History` of them.
"""

from ordercast.judge.histories.bank import Balances, BankJudgement, judge_balances
from ordercast.judge.histories.files import Recorded, read_history, read_recorded
from ordercast.judge.histories.history import History
from ordercast.judge.histories.judgement import Counterexample, Judgement, explained, judge_history
from ordercast.judge.histories.models import IMPOSSIBLE, Model, Register, State, TextMap, TextStore
from ordercast.judge.histories.operation import Operation, Value, shown
from ordercast.judge.histories.search import PLACEMENTS_MAX, Found, Stuck, Watch, search

__all__ = [
    "History",
    "Operation",
    "Value",
    "Model",
    "Register",
    "TextMap",
    "TextStore",
    "State",
    "IMPOSSIBLE",
    "read_history",
    "read_recorded",
    "Recorded",
    "Balances",
    "BankJudgement",
    "judge_balances",
    "judge_history",
    "Judgement",
    "Counterexample",
    "explained",
    "search",
    "Found",
    "Stuck",
    "Watch",
    "PLACEMENTS_MAX",
    "shown",
]
