"""Redis with two replicas: each write is followed by `WAIT 1`, until one replica has it too.

Nothing is on disk. The two commands are sent together, so a write takes one round trip of its connection.
"""

import asyncio
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.peers.contender import MeasureError as NoServer
from benchmarks.peers.stage import free_ports, server
from benchmarks.services.contender import REPLICAS, Contender, Figures, MeasureError
from benchmarks.services.load import Connection, drive

LINKED_S = 20.0


class RedisWait(Contender):
    """A primary and two replicas."""

    name = "redis_wait"

    def missing(self) -> str:
        """The server."""
        return (
            "" if shutil.which("redis-server") else "no redis-server (Debian: apt-get install redis-server)"
        )

    def measure(self, tasks: int, seconds: float, folder: Path) -> Figures:
        """Run the servers; each task has a connection to the primary."""
        ports = free_ports(REPLICAS)
        try:
            with ExitStack() as stack:
                for index, port in enumerate(ports):
                    own = folder / str(index)
                    own.mkdir()
                    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
                    command += ["--appendonly", "no", "--repl-diskless-sync-delay", "0"]
                    command += ["--replicaof", "127.0.0.1", str(ports[0])] if index else []
                    stack.enter_context(server(command, port, own))
                return asyncio.run(_measure(ports[0], tasks, seconds))
        except NoServer as error:
            raise MeasureError(str(error)) from error


async def _measure(port: int, tasks: int, seconds: float) -> Figures:
    async def connect() -> Connection:
        return await RedisConnection.open(port)

    async with asyncio.timeout(LINKED_S):
        first = await RedisConnection.open(port)
        while await first.copies("ready", "yes") < REPLICAS - 1:
            await asyncio.sleep(0.1)
    first.close()
    return await drive(connect, tasks, seconds)


class RedisConnection(Connection):
    """One connection to the primary."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "RedisConnection":
        """Connect."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def put(self, key: str, value: str) -> None:
        """Write, and wait for one replica."""
        self._writer.write(_command("SET", key, value) + _command("WAIT", "1", "0"))
        await self._expect(b"+OK")
        if not int((await self._line())[1:]):
            raise MeasureError("no replica has a write")

    async def copies(self, key: str, value: str) -> int:
        """Write, and tell how many replicas have it soon."""
        self._writer.write(_command("SET", key, value) + _command("WAIT", str(REPLICAS), "100"))
        await self._expect(b"+OK")
        return int((await self._line())[1:])

    async def get(self, key: str) -> str | None:
        """Read at the primary."""
        found = await self.command("GET", key)
        return None if found is None else found.decode()

    async def command(self, *words: str) -> Any:
        """Send a command; its answer, with bytes for texts."""
        self._writer.write(_command(*words))
        return await self._answer()

    async def _answer(self) -> Any:
        line = await self._line()
        match line[:1]:
            case b"$" if int(line[1:]) < 0:
                return None
            case b"$":
                return (await self._reader.readexactly(int(line[1:]) + 2))[:-2]
            case b"*":
                return [await self._answer() for _ in range(int(line[1:]))]
            case b":":
                return int(line[1:])
            case b"+":
                return line[1:]
        raise MeasureError(f"redis answers {line.decode(errors='replace')}")

    async def _expect(self, wanted: bytes) -> None:
        line = await self._line()
        if line != wanted:
            raise MeasureError(f"redis answers {line.decode(errors='replace')}")

    async def _line(self) -> bytes:
        return (await self._reader.readuntil(b"\r\n"))[:-2]

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


def _command(*words: str) -> bytes:
    parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
    return f"*{len(words)}\r\n{''.join(parts)}".encode()
