"""PySyncObj with three members: a replicated map, written in the process of the leader.

A write gives a callback, and a task of the event loop drives the member; `benchmarks/peers/pysyncobj_raft.py`
says which settings were found best. Reads are local to the leader.
"""

import asyncio
import importlib.util
import logging
import multiprocessing
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.stage import die_with_parent, free_ports
from benchmarks.services.contender import REPLICAS, Contender, Figures, MeasureError
from benchmarks.services.load import Connection, drive

TICK_S = 0.001
FOLLOWER_TICK_S = 0.05
READY_S = 20.0
NEVER = 1_000_000_000


class PySyncObjMap(Contender):
    """The first member is in the program that calls."""

    name = "pysyncobj"

    def missing(self) -> str:
        """The package."""
        found = importlib.util.find_spec("pysyncobj")
        return "" if found is not None else "no package (pip install pysyncobj)"

    def measure(self, tasks: int, seconds: float, folder: Path) -> Figures:
        """Run two followers in processes of their own."""
        context, ports = multiprocessing.get_context("spawn"), free_ports(REPLICAS)
        followers = [
            context.Process(target=follow, args=(ports, index, tasks > 1), daemon=True)
            for index in range(1, REPLICAS)
        ]
        try:
            for follower in followers:
                follower.start()
            return asyncio.run(_measure(ports, tasks, seconds))
        finally:
            for follower in followers:
                follower.kill()
                follower.join()


def make_member(ports: list[int], index: int, *, batches: bool) -> tuple[Any, Any]:
    """A member, and its map."""
    from pysyncobj import SyncObj, SyncObjConf
    from pysyncobj.batteries import ReplDict

    logging.getLogger("pysyncobj").setLevel(logging.CRITICAL + 1)
    names = [f"127.0.0.1:{port}" for port in ports]
    patience_s = 0.3 if index == 0 else 5.0  # the first one is elected
    settings = SyncObjConf(
        autoTick=False,
        appendEntriesPeriod=TICK_S,
        appendEntriesUseBatch=batches,
        raftMinTimeout=patience_s,
        raftMaxTimeout=patience_s + 0.2,
        connectionTimeout=10.0,
        connectionRetryTime=0.05,
        logCompactionMinEntries=NEVER,
        logCompactionMinTime=NEVER,
    )
    table = ReplDict()
    return SyncObj(names[index], names[:index] + names[index + 1 :], settings, consumers=[table]), table


def follow(ports: list[int], index: int, batches: bool) -> None:
    """Be a member that follows, until the end."""
    die_with_parent()
    member, _ = make_member(ports, index, batches=batches)
    while True:
        member.doTick(FOLLOWER_TICK_S)


async def _measure(ports: list[int], tasks: int, seconds: float) -> Figures:
    member, table = make_member(ports, 0, batches=tasks > 1)
    end = time.monotonic() + READY_S
    while not (member.isReady() and member._isLeader()):
        member.doTick(TICK_S)
        if time.monotonic() > end:
            raise MeasureError("the members elect nobody")
    driving = asyncio.create_task(_drive_member(member))
    try:
        return await drive(lambda: _connect(table), tasks, seconds)
    finally:
        driving.cancel()
        member.destroy()


async def _drive_member(member: Any) -> None:
    while True:
        member.doTick(0.0)
        await asyncio.sleep(0)


async def _connect(table: Any) -> Connection:
    return MapConnection(table)


class MapConnection(Connection):
    """The map of the leader."""

    def __init__(self, table: Any) -> None:
        self._table = table

    async def put(self, key: str, value: str) -> None:
        """Write, and wait until it is applied here."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._table.set(key, value, callback=lambda _, error: _finish(done, error))
        await done

    async def get(self, key: str) -> str | None:
        """What the leader has."""
        found: str | None = self._table.get(key)
        return found


def _finish(done: "asyncio.Future[Any]", error: int) -> None:
    if not done.done():
        if error:
            done.set_exception(MeasureError(f"a write failed with code {error}"))
        else:
            done.set_result(None)
