"""Histories of transactions on lists, judged by the dependencies that their values show.

`judge_transactions` judges a `Transactions` from anywhere: a file, or the values of a run.
"""

from ordercast.judge.histories.transactions.judgement import (
    Anomaly,
    TransactionJudgement,
    judge_transactions,
)
from ordercast.judge.histories.transactions.steps import Step
from ordercast.judge.histories.transactions.transaction import Append, Fate, Read, Transaction, Transactions

__all__ = [
    "Anomaly",
    "Append",
    "Fate",
    "Read",
    "Step",
    "Transaction",
    "TransactionJudgement",
    "Transactions",
    "judge_transactions",
]
