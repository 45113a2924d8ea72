"""The rows of a table by node: one sort, which the record and all properties share."""

import numpy as np

from ordercast.judge.columns.columns import Flags, Ints, by_key, factorize


class NodeOrder:
    """All rows of a table sorted by node, each node's rows in the order of the table."""

    def __init__(self, node: Ints) -> None:
        low, high = int(node.min(initial=0)), int(node.max(initial=0))
        keys = node
        if low < 0 or high >= 1 << 16:
            _, keys = factorize(node)
            high = int(keys.max())
        self.rows, self.starts = by_key(keys, high + 1)
        """The rows, and where each node begins."""

    def without(self, left_out: Flags) -> tuple[Ints, Ints]:
        """The same without some rows."""
        if not left_out.any():
            return self.rows, self.starts
        kept = ~left_out[self.rows]
        return self.rows[kept], np.concatenate([[0], np.cumsum(kept)])[self.starts]
