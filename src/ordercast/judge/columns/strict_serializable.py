"""Strict serializable: the orders of all shards and real time have no cycle."""

from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.columns.shard_orders import judge_orders


def strict_serializable(case: Case, findings: Findings) -> None:
    """Judge answers, and these orders."""
    judge_orders(case, findings, strict=True)
