"""A folder of runs of all kinds (good, violating, damaged, unreadable), with the verdict on each."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from tests.check.record_damage import replaced, without
from tests.cli.test_check import Rewrite, rewrite_files, swap

GROUPS_MANY = 100_000


def _rewrite(change: Rewrite) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "events.parquet"
        pq.write_table(change(pq.ParquetFile(path).read()), path)

    return damage


def _describe(**changes: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


def _truncate(folder: Path) -> None:
    path = folder / "events.parquet"
    path.write_bytes(path.read_bytes()[:-200])


def _pipe(folder: Path) -> None:
    (folder / "events.parquet").unlink()
    os.mkfifo(folder / "events.parquet")


def _violate(folder: Path) -> None:
    rewrite_files(folder, swap)


def _many_groups(table: pa.Table) -> pa.Table:
    return replaced(table, "groups", 50, list(range(GROUPS_MANY)))


DAMAGES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "good": ("kept", lambda folder: None, ""),
    "huge-seed": ("kept", _describe(seed=1 << 64), ""),
    "violating": ("violated", _violate, "total-order"),
    "empty": ("damaged", _rewrite(lambda table: table.slice(0, 0)), "events.parquet: the file has 0 rows"),
    "lost-row": ("damaged", _rewrite(lambda table: without(table, 100)), "lacks step"),
    "changed": (
        "damaged",
        _rewrite(lambda table: replaced(table, "config", 100, 9)),
        "do not match the hash",
    ),
    "many-groups": ("damaged", _rewrite(_many_groups), f"row 50: the row has {GROUPS_MANY} groups"),
    "truncated": ("unreadable", _truncate, "not a readable Parquet file"),
    "column-twice": (
        "unreadable",
        _rewrite(lambda table: table.append_column("digest", table["digest"])),
        "has the column digest more than once",
    ),
    "named-pipe": ("unreadable", _pipe, "not a regular file"),
}
"""For each run: its verdict, what happened to it, and what is said about it."""


def make_folder(root: Path) -> None:
    """Write all these runs, each into a folder with its name."""
    for seed, (name, (_, damage, _)) in enumerate(DAMAGES.items()):
        workload = WorkloadSpec(messages=60)
        run = simulate(Scenario(protocol="atomic_multicast", seed=seed, groups=2, workload=workload))
        folder = run.write(root / "written")
        folder.rename(root / name)
        damage(root / name)
        _describe_name(root / name, name)
    (root / "written").rmdir()


def _describe_name(folder: Path, name: str) -> None:
    """Give the run the name of its folder, in its description and, where they can be read, in its rows."""
    _describe(run=name)(folder)
    if DAMAGES[name][0] == "unreadable":
        return
    path = folder / "events.parquet"
    table = pq.ParquetFile(path).read()
    words = pa.array([name] * len(table), pa.string()).dictionary_encode()
    index = table.column_names.index("run")
    pq.write_table(table.set_column(index, table.schema.field("run"), words), path)
