"""One Redis server, whose scripts run a transaction at once: a ceiling, for nothing is replicated."""

import asyncio
from pathlib import Path
from typing import Any

from benchmarks.peers.contender import MeasureError as NoServer
from benchmarks.peers.stage import free_ports, server
from benchmarks.services.contender import MeasureError
from benchmarks.services.redis_wait import RedisConnection, RedisWait
from benchmarks.transactions.contender import Contender, Figures, Session
from benchmarks.transactions.load import drive
from benchmarks.transactions.store import POSTS_MAX, Drawn
from ordercast.services.sharded import START

MOVE = f"""
for place, by in ipairs({{-ARGV[1], ARGV[1]}}) do
  redis.call('SET', KEYS[place], (redis.call('GET', KEYS[place]) or {START}) + by)
end"""
NOTE = f"""
for _, key in ipairs(KEYS) do
  redis.call('RPUSH', key, ARGV[1])
  redis.call('LTRIM', key, -{POSTS_MAX}, -1)
end"""
ADD = "for _, key in ipairs(KEYS) do redis.call('SETNX', key .. '/made', '') end"
READ = """
local found = {}
for place, key in ipairs(KEYS) do found[place] = redis.call('LRANGE', key, 0, -1) end
return found"""


class RedisScript(Contender):
    """One server, in memory."""

    name = "redis_script"

    def missing(self) -> str:
        """As the comparison of services says."""
        return RedisWait().missing()

    def measure(self, workload: str, tasks: int, seconds: float, folder: Path) -> Figures:
        """Run the server; each task has a connection."""
        (port,) = free_ports(1)
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        command += ["--appendonly", "no"]
        try:
            with server(command, port, folder):
                return asyncio.run(_measure(port, workload, tasks, seconds))
        except NoServer as error:
            raise MeasureError(str(error)) from error


async def _measure(port: int, workload: str, tasks: int, seconds: float) -> Figures:
    async def open_session() -> Session:
        session = RedisSession(await RedisConnection.open(port))
        await session.load()
        return session

    return await drive(open_session, workload, tasks, seconds)


class RedisSession(Session):
    """One connection."""

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._scripts: dict[str, str] = {}
        self.close = connection.close  # type: ignore[method-assign]

    async def load(self) -> None:
        """Give the scripts to the server."""
        for script in (MOVE, NOTE, ADD, READ):
            loaded = await self._connection.command("SCRIPT", "LOAD", script)
            self._scripts[script] = loaded.decode()

    async def run(self, drawn: Drawn) -> int:
        """Nothing is ever aborted."""
        match drawn:
            case ("read", (key,)):
                await self._connection.command("GET", key)
            case ("write", (key, value)):
                await self._connection.command("SET", key, value)
            case ("move" | "general move", (source, target, amount)):
                await self._run(MOVE, [source, target], str(amount))
            case ("add_user", keys):
                await self._run(ADD, [*keys])
            case ("follow", (followed, followers, user)):
                await self._run(NOTE, [followed, followers], user)
            case ("post", (timelines, text)):
                await self._run(NOTE, [*dict.fromkeys(timelines)], text)
            case ("timeline", (timelines,)):
                await self._run(READ, timelines)
        return 0

    async def _run(self, script: str, keys: list[str], *arguments: str) -> Any:
        return await self._connection.command(
            "EVALSHA", self._scripts[script], str(len(keys)), *keys, *arguments
        )

    async def total(self, keys: list[str]) -> int:
        """In one command."""
        found = await self._connection.command("MGET", *keys)
        return sum(START if value is None else int(value) for value in found)
