"""The rows of a table by node: sorted once, for the record and for all properties."""

from functools import cached_property

import numpy as np
import pyarrow as pa

from ordercast.judge.columns.columns import Flags, Ints, by_key, factorize, filled, is_kind, kinds_of
from ordercast.trace import CARRYING, ORDERED


class NodeOrder:
    """All rows of a table sorted by node, each node's rows in the order of the table."""

    def __init__(self, table: pa.Table) -> None:
        self.kind = kinds_of(table["kind"])
        self.node: Ints = filled(table["node"])
        keys, high = self.node, int(self.node.max(initial=0))
        if high >= 1 << 16 or int(self.node.min(initial=0)) < 0:
            _, keys = factorize(self.node)
            high = int(keys.max())
        self.rows, self.starts = by_key(keys, high + 1)
        """The rows, and where each node begins."""

    @cached_property
    def delivered(self) -> tuple[Ints, Ints]:
        """The deliveries in order, sorted by node; and where each node begins."""
        return self.only(is_kind(self.kind, *ORDERED))

    @property
    def carried(self) -> Ints:
        """All deliveries of messages, in order or not, sorted by node."""
        flags = is_kind(self.kind, *CARRYING)
        in_order, _ = self.delivered
        return in_order if np.count_nonzero(flags) == len(in_order) else self.only(flags)[0]

    @property
    def nodes(self) -> Ints:
        """The nodes that have rows."""
        found: Ints = self.node[self.rows[self.starts[:-1][np.diff(self.starts) > 0]]]
        return found

    def only(self, flags: Flags) -> tuple[Ints, Ints]:
        """The rows with a flag, sorted by node; and where each node begins."""
        if flags.all():
            return self.rows, self.starts
        places = np.flatnonzero(flags[self.rows])
        return self.rows[places], np.searchsorted(places, self.starts)
