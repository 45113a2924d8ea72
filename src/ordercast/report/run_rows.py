"""One run in the tables of a folder: its own rows, its nodes by name, its time axis."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core import MILLISECOND, SECOND
from ordercast.report.stored_tables import Row, StoredTables

DELIVERIES = ("deliver", "out-of-order")


class TimeAxis(NamedTuple):
    """The unit in which the times of a run are shown."""

    unit_ns: int
    unit: str

    def of(self, ns: float) -> float:
        """A time in this unit."""
        return ns / self.unit_ns


class RunRows:
    """The rows of one run, from each of the tables that show single runs."""

    def __init__(self, tables: StoredTables, run: Row) -> None:
        self.run = run
        self.name: str = run["run"]
        self.nodes = {row["node"]: row for row in self._rows(tables, "nodes")}
        self.changes = self._rows(tables, "changes")
        self.recoveries = self._rows(tables, "recoveries")
        self.windows = self._rows(tables, "window_latency")
        self.node_latency = {row["node"]: row for row in self._rows(tables, "node_latency")}
        self.shares = self._table(tables, "distribution")
        self.activity = self._table(tables, "activity")

    def _table(self, tables: StoredTables, name: str) -> pa.Table:
        whole = tables.table(name)
        return whole.filter(pc.equal(whole["run"], self.name))

    def _rows(self, tables: StoredTables, name: str) -> list[Row]:
        rows: list[Row] = self._table(tables, name).to_pylist()
        return rows

    @property
    def receivers(self) -> list[int]:
        """The members of groups, in order."""
        return [node for node, row in self.nodes.items() if row["groups"]]

    @property
    def time(self) -> TimeAxis:
        """Seconds for what takes some, milliseconds for what is shorter."""
        long = (self.run["duration_ns"] or 0) >= 2 * SECOND
        return TimeAxis(SECOND, "s") if long else TimeAxis(MILLISECOND, "ms")

    @property
    def end_ns(self) -> int:
        """When the last thing happened."""
        last: int = max([self.run["duration_ns"] or 0, *(row["time_ns"] for row in self.changes)])
        return last

    def when(self, ns: int) -> str:
        """A moment of the run, in words."""
        return f"{self.time.of(ns):.3f} {self.time.unit}"

    @property
    def window_ns(self) -> int:
        """How long the windows of `activity` are."""
        return int(self.activity["window_ns"][0].as_py()) if len(self.activity) else MILLISECOND

    def counts(self, kinds: tuple[str, ...], node: int | None = None) -> np.ndarray:
        """How many events of these kinds there were in each window, at one node or at all."""
        starts = self.activity["start_ns"].to_numpy() // self.window_ns
        counts = np.zeros(int(starts.max(initial=-1)) + 1)
        chosen = pc.is_in(self.activity["kind"], pa.array(kinds)).to_numpy()
        if node is not None:
            chosen = chosen & (self.activity["node"].to_numpy() == node)
        np.add.at(counts, starts[chosen], self.activity["events"].to_numpy()[chosen])
        return counts

    def host_name(self, host: int) -> str:
        """A host by the nodes that it runs."""
        names = [row["name"] for row in self.nodes.values() if row["host"] == host]
        return f"{', '.join(names[:4])}{', ...' if len(names) > 4 else ''} (host {host})"
