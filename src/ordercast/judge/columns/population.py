"""Which nodes are up at the end, which lost their state, and when each crashed.

A node is correct if it is up at the end of the run and never lost its state. A node that crashed and came
back with its saved state is correct.
"""

import numpy as np

from ordercast.core import NodeId
from ordercast.judge.columns.columns import KINDS, Ints
from ordercast.judge.columns.trace import Trace
from ordercast.judge.finding import Standing
from ordercast.trace import Kind


class Population:
    """The crashes and recoveries of a run."""

    def __init__(self, trace: Trace) -> None:
        self._lost = trace.lost
        self._last: dict[NodeId, Kind] = {}
        self.crashes: dict[NodeId, Ints] = {}
        """For each node that crashed, the rows in which it did."""
        crashes: dict[NodeId, list[int]] = {}
        for row in trace.rows(Kind.CRASH, Kind.RECOVER).tolist():
            node, kind = int(trace.node[row]), KINDS[trace.kind[row]]
            self._last[node] = kind
            if kind is Kind.CRASH:
                crashes.setdefault(node, []).append(row)
        self.crashes = {node: np.array(rows) for node, rows in crashes.items()}

    def correct(self, node: NodeId) -> bool:
        """Whether a node is up at the end and has never lost its state."""
        return self.standing(node) == "stayed"

    def standing(self, node: NodeId) -> Standing:
        """Whether a node is down at the end, and if not, whether it ever lost its state."""
        if self._last.get(node) is Kind.CRASH:
            return "down"
        return "lost" if node in self._lost else "stayed"
