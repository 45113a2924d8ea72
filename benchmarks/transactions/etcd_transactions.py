"""etcd's transactions: reads in one, and writes in another if no key has changed since."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.services.etcd import ELECTED_S, Etcd, EtcdConnection, await_leader, from_base64, to_base64
from benchmarks.transactions.contender import Contender, Figures, Session
from benchmarks.transactions.load import drive
from benchmarks.transactions.store import Drawn, change_of
from ordercast.services.sharded import START

OPERATIONS_MAX = 100
"""etcd takes 128 operations in a transaction."""


class EtcdTransactions(Contender):
    """Three members; tasks are spread over them."""

    def __init__(self, *, in_memory: bool) -> None:
        self._servers = Etcd(in_memory=in_memory)
        self.name = self._servers.name

    def missing(self) -> str:
        """As the comparison of services says."""
        return self._servers.missing()

    def measure(self, workload: str, tasks: int, seconds: float, folder: Path) -> Figures:
        """Run three members."""

        async def measure(ports: list[int]) -> Figures:
            turns = count()

            async def open_session() -> Session:
                return EtcdSession(await EtcdConnection.open(ports[next(turns) % len(ports)]))

            async with asyncio.timeout(ELECTED_S):
                await await_leader(ports[0])
            return await drive(open_session, workload, tasks, seconds)

        return self._servers.with_members(folder, measure)


class EtcdSession(Session):
    """One connection."""

    def __init__(self, connection: EtcdConnection) -> None:
        self._connection = connection
        self.close = connection.close  # type: ignore[method-assign]

    async def run(self, drawn: Drawn) -> int:
        """Single keys need no transaction there, and what only reads needs one."""
        match drawn:
            case ("read", (key,)):
                await self._connection.get(key)
                return 0
            case ("write", (key, value)):
                await self._connection.put(key, value)
                return 0
            case ("timeline", (timelines,)):
                await self._read(timelines)
                return 0
        change, aborted = change_of(drawn), 0
        while True:
            values, revisions = await self._read(change.keys)
            if await self._write(revisions, change.write(values)):
                return aborted
            aborted += 1

    async def _read(self, keys: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
        """The values of those keys that have one, and the revisions of all."""
        ranges = [{"requestRange": {"key": to_base64(key)}} for key in dict.fromkeys(keys)]
        answer = await self._connection.post("txn", {"success": ranges})
        # Its name differs between versions of the gateway.
        found = [only.get("kvs", []) for one in answer["responses"] for only in one.values()]
        pairs = {from_base64(kvs[0]["key"]): kvs[0] for kvs in found if kvs}
        values = {key: json.loads(from_base64(one["value"])) for key, one in pairs.items()}
        return values, {key: pairs[key]["mod_revision"] if key in pairs else "0" for key in keys}

    async def _write(self, revisions: Mapping[str, str], values: Mapping[str, Any]) -> bool:
        """Write, if all keys have these revisions."""
        compare = [
            {"key": to_base64(key), "target": "MOD", "result": "EQUAL", "mod_revision": revision}
            for key, revision in revisions.items()
        ]
        puts = [
            {"requestPut": {"key": to_base64(key), "value": to_base64(json.dumps(value))}}
            for key, value in values.items()
        ]
        answer = await self._connection.post("txn", {"compare": compare, "success": puts})
        return bool(answer.get("succeeded"))

    async def total(self, keys: list[str]) -> int:
        """In several transactions: nobody writes any more."""
        parts = [keys[place : place + OPERATIONS_MAX] for place in range(0, len(keys), OPERATIONS_MAX)]
        found = [(await self._read(part))[0] for part in parts]
        return sum(values.get(key, START) for values, part in zip(found, parts, strict=True) for key in part)
