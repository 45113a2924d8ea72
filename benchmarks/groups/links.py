"""How a process sends to groups and receives them, over each contender."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import ordercast
from benchmarks.groups.load import Load

BATCH = 1_000
BLOCK_MS = 100


class Link(ABC):
    """The way of one process to its groups."""

    def __init__(self, folder: Path, load: Load, node: int) -> None:
        self.folder = folder
        self.load = load
        self.node = node
        self.own = [group for group, members in enumerate(load.groups) if node in members]
        self.exits = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Connect."""
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Hang up."""
        await self.exits.aclose()

    @abstractmethod
    async def open(self) -> None:
        """Connect."""

    @abstractmethod
    async def send(self, due: Mapping[int, list[bytes]]) -> None:
        """Send messages to groups."""

    @abstractmethod
    def receive(self) -> AsyncIterator[list[bytes]]:
        """What comes, in its order."""


class RedisLink(Link):
    """A stream for each group."""

    _client: Any

    async def open(self) -> None:
        """One client, whose pool has a connection for each use."""
        import redis.asyncio

        self._client = redis.asyncio.Redis(port=self.load.port, protocol=2)
        self.exits.push_async_callback(self._client.aclose)

    async def send(self, due: Mapping[int, list[bytes]]) -> None:
        """One pipeline."""
        pipeline = self._client.pipeline(transaction=False)
        for group, payloads in due.items():
            for payload in payloads:
                pipeline.xadd(f"group-{group}", {"m": payload})
        await pipeline.execute()

    async def receive(self) -> AsyncIterator[list[bytes]]:
        """Read all streams at once, again and again."""
        last: dict[Any, Any] = {f"group-{group}".encode(): b"0" for group in self.own}
        while True:
            answer = await self._client.xread(last, count=BATCH, block=BLOCK_MS)
            for stream, entries in answer:
                last[stream] = entries[-1][0]
                yield [fields[b"m"] for _, fields in entries]


class AtomsLink(Link):
    """A host of a cluster whose groups overlap."""

    _group: ordercast.Group

    async def open(self) -> None:
        """Join one group; the host has its other groups anyway."""
        joining = ordercast.join(self.folder / "cluster.toml", self.to(self.own[0])[0], host=self.node)
        self._group = await self.exits.enter_async_context(joining)

    def to(self, group: int) -> tuple[str, ...]:
        """The groups of the cluster to which a message goes, those of this process first."""
        return (f"group{group}",)

    async def send(self, due: Mapping[int, list[bytes]]) -> None:
        """All messages to a group at once."""
        for group, payloads in due.items():
            await self._group.send_many(payloads, to=self.to(group))

    async def receive(self) -> AsyncIterator[list[bytes]]:
        """One after the other."""
        async for delivered in self._group:
            if isinstance(delivered, ordercast.Received):
                yield [delivered.payload]


class HydraLink(AtomsLink):
    """A host of a cluster in which each process is a group of its own."""

    def to(self, group: int) -> tuple[str, ...]:
        """All members."""
        members = sorted(self.load.groups[group], key=lambda node: (node != self.node, node))
        return tuple(f"process{node}" for node in members)


LINKS: dict[str, type[Any]] = {"redis": RedisLink, "hydra": HydraLink, "atoms": AtomsLink}
