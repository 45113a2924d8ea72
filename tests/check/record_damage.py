"""Ways to damage the record of a run, each with the rule that both judges must name."""

from collections.abc import Callable
from itertools import count

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.judge import Damage
from ordercast.judge.columns.node_order import NodeOrder
from ordercast.judge.columns.record import damage_of, examine_part
from ordercast.judge.online.record import examine
from ordercast.trace import FileRows, RunDescription

Rows = list[FileRows]


def by_rows(description: RunDescription, files: Rows) -> list[Damage]:
    """What the row by row judge says."""
    return examine(description, files)


def by_columns(description: RunDescription, files: Rows, rows: int = 1 << 40) -> list[Damage]:
    """What the judge over columns says, which sees parts of so many rows."""
    parts = []
    for file in files:
        for start in range(0, max(1, len(file.table)), rows):
            table = file.table.slice(start, rows)
            parts.append(examine_part(description, table, NodeOrder(table), file.name, start))
    return damage_of(description, parts)


def told(description: RunDescription, files: Rows) -> list[Damage]:
    """What all judges say, who must name the same rules, files, rows and nodes."""
    found = by_rows(description, files)
    for rows in (1 << 40, 37):
        others = by_columns(description, files, rows)
        assert {_place(one) for one in others} == {_place(one) for one in found}, (found, others, rows)
    return found


def _place(damage: Damage) -> tuple[object, ...]:
    return (damage.what, damage.file, damage.row, damage.node)


def replaced(table: pa.Table, name: str, row: int, value: object) -> pa.Table:
    """The table with another value in one cell."""
    values = table[name].to_pylist()
    values[row] = value
    column = pa.array(values, table.schema.field(name).type)
    return table.set_column(table.column_names.index(name), table.schema.field(name), column)


def without(table: pa.Table, *rows: int) -> pa.Table:
    """The table without some rows."""
    return table.take(np.setdiff1d(np.arange(len(table)), rows))


def split(table: pa.Table, files: int) -> Rows:
    """The rows of a run in several files, cut by time, as one host writes them."""
    cuts = np.linspace(0, len(table), files + 1).astype(int)
    return [
        FileRows(f"host-0000-{number:06d}.parquet", table.slice(first, last - first))
        for number, first, last in zip(count(), cuts, cuts[1:], strict=False)
    ]


def listing(description: RunDescription, files: Rows) -> RunDescription:
    """The description that lists these files."""
    return msgspec.structs.replace(description, files={rows.name: len(rows.table) for rows in files})


Damaging = Callable[[pa.Table], pa.Table]
