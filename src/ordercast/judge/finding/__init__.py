"""The results of both judges: violations, holes, damage, the verdict."""

from ordercast.judge.finding.damage import DAMAGES_MAX, Damage, What
from ordercast.judge.finding.holes import NAMED_MAX, Holes, NodeHoles, Standing
from ordercast.judge.finding.replay import Replay
from ordercast.judge.finding.verdict import Verdict
from ordercast.judge.finding.violation import (
    END_OF_RUN,
    VIOLATIONS_MAX,
    Violation,
    failed,
    in_order,
    listed,
    message_at,
    messages_named,
    nodes_named,
)

__all__ = [
    "DAMAGES_MAX",
    "END_OF_RUN",
    "NAMED_MAX",
    "VIOLATIONS_MAX",
    "Damage",
    "Holes",
    "NodeHoles",
    "Replay",
    "Standing",
    "Verdict",
    "Violation",
    "What",
    "failed",
    "in_order",
    "listed",
    "message_at",
    "messages_named",
    "nodes_named",
]
