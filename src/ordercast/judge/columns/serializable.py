"""Serializable: the orders of all shards and of all clients have no cycle."""

from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.shard_orders import judge_orders


def serializable(case: Case, findings: Findings) -> None:
    """Judge answers, and these orders."""
    judge_orders(case, findings, strict=False)
