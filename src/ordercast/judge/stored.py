"""Both judges on runs from disk: first the record, then the promises.

If rows are missing, doubled or at wrong places, promises are not judged: a delivery that is not on record may
have happened. If only the hash does not match, all rows are there, and they are judged as they are.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from ordercast.judge.columns.node_order import NodeOrder
from ordercast.judge.columns.record import damage_of, examine_part
from ordercast.judge.finding import Damage, Replay, Verdict
from ordercast.judge.judges import audit, verdict
from ordercast.judge.online.record import examine
from ordercast.trace import FileRows, RunDescription, events_of, merged, trace_hash


class Judged(NamedTuple):
    """The verdict on a run, and its rows in order of time; None if its promises were not judged."""

    verdict: Verdict
    table: pa.Table | None = None


def verdict_on_files(
    description: RunDescription, files: Sequence[FileRows], replay: Replay | None = None
) -> Judged:
    """Judge a run row by row; the files have all columns."""
    damage = examine(description, files)
    if damage:
        return Judged(damaged(damage))
    table = merged(files)
    found = verdict(description, events_of(table), replay=replay)
    return Judged(found._replace(damage=_altered(description, files, table)), table)


def audit_files(
    description: RunDescription, files: Sequence[FileRows], replay: Replay | None = None
) -> Judged:
    """Judge a run over its columns; the files have all columns if the description has a hash."""
    orders = [NodeOrder(rows.table) for rows in files]
    parts = [
        examine_part(description, rows.table, order, rows.name)
        for rows, order in zip(files, orders, strict=True)
    ]
    damage = damage_of(description, parts)
    if damage:
        return Judged(damaged(damage))
    table = merged(files)
    order = orders[0] if table is files[0].table else None
    found = audit(description, table, order=order, replay=replay)
    return Judged(found._replace(damage=_altered(description, files, table)), table)


def damaged(damage: Sequence[Damage]) -> Verdict:
    """The verdict on a run whose promises cannot be judged, because its record is damaged."""
    return Verdict([], {}, damage=tuple(damage))


def _altered(description: RunDescription, files: Sequence[FileRows], table: pa.Table) -> tuple[Damage, ...]:
    if description.trace_hash is None or description.trace_hash == trace_hash(table):
        return ()
    detail = "the events do not match the hash in run.json: they were changed after they were written"
    return (Damage("hash", detail, files[0].name if len(files) == 1 else ""),)
