"""One process of a run: `python -m benchmarks.groups.member FOLDER NODE`. It sends and receives.

It says "ready" when its own first message has come back, begins when it is told to, and notes every message
that it sends and gets.
"""

import asyncio
import json
import struct
import sys
import time
from array import array
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.groups.links import LINKS, Link
from benchmarks.groups.load import Load
from benchmarks.peers.stage import die_with_parent

HEAD = struct.Struct("<qq")
PROBE = -1
TICK_S = 0.002
END_S = 30.0
"""How long after the end messages may still come."""


class Member:
    """Sends and receives, and notes it."""

    def __init__(self, link: Link, load: Load, node: int) -> None:
        self._link = link
        self._load = load
        self._node = node
        self._groups = [group for group, members in enumerate(load.groups) if node in members]
        self._sent = array("q")
        self._got = array("q")
        self._count = 0
        self._back = 0
        self._is_known = asyncio.Event()
        self._free = asyncio.Event()

    @property
    def counts(self) -> list[int]:
        """How many messages it has sent to each group."""
        sent = Counter(self._sent[1::3])
        return [sent[group] for group in range(len(self._load.groups))]

    async def receive(self) -> None:
        """Note whatever comes."""
        padding = self._load.size
        async for payloads in self._link.receive():
            now = time.time_ns()
            for payload in payloads:
                name, group = HEAD.unpack_from(payload)
                assert len(payload) == padding
                if name == PROBE - self._node:
                    self._is_known.set()
                elif name >= 0:
                    self._got.extend((name, group, now))
                    self._back += name >> 32 == self._node
            self._free.set()

    async def probe(self) -> None:
        """Send until something comes back, in each group: then the group works."""
        while not self._is_known.is_set():
            body = HEAD.pack(PROBE - self._node, 0).ljust(self._load.size, b"\0")
            await self._link.send({group: [body] for group in self._groups})
            await asyncio.sleep(0.2)

    async def send(self) -> None:
        """Send as the load says."""
        began = time.monotonic()
        end = began + self._load.seconds
        while (now := time.monotonic()) < end:
            if self._load.rate:
                await self._send(int((now - began) * self._load.rate) - self._count)
                await asyncio.sleep(TICK_S)
                continue
            self._free.clear()
            free = self._load.window - (self._count - self._back)
            if free <= 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._free.wait(), end - now)
            else:
                await self._send(free)

    async def _send(self, count: int) -> None:
        due: dict[int, list[bytes]] = {}
        for _ in range(count):
            group = self._groups[self._count % len(self._groups)]
            name = self._node << 32 | self._count
            due.setdefault(group, []).append(HEAD.pack(name, group).ljust(self._load.size, b"\0"))
            self._sent.extend((name, group, time.time_ns()))
            self._count += 1
        if due:
            await self._link.send(due)

    async def settle(self, counts: list[int]) -> None:
        """Until all that was sent to its groups has come."""
        limit = time.monotonic() + END_S
        wanted = sum(counts[group] for group in self._groups)
        while time.monotonic() < limit and len(self._got) < 3 * wanted:
            await asyncio.sleep(TICK_S)

    def keep(self, folder: Path, begun: int) -> None:
        """Leave the notes in the folder."""
        for name, rows in (("sent", self._sent), ("got", self._got)):
            np.save(folder / f"{name}-{self._node}.npy", np.array(rows, np.int64).reshape(-1, 3))
        np.save(folder / f"begun-{self._node}.npy", np.array([begun]))


async def be_member(folder: Path, node: int) -> None:
    """The life of the process."""
    load = msgspec.json.decode((folder / "load.json").read_bytes(), type=Load)
    async with LINKS[load.contender](folder, load, node) as link:
        member = Member(link, load, node)
        receiving = asyncio.ensure_future(member.receive())
        await _or_fail(member.probe(), receiving)
        await _turn("ready", member.counts)
        begun = time.time_ns()
        await _or_fail(member.send(), receiving)
        counts = await _turn("sent", member.counts)
        await _or_fail(member.settle(counts), receiving)
        receiving.cancel()
        member.keep(folder, begun)
        await _turn("done", member.counts)


async def _or_fail(doing: Coroutine[None, None, None], receiving: "asyncio.Future[None]") -> None:
    """Wait, but not longer than the receiving goes on."""
    task = asyncio.ensure_future(doing)
    await asyncio.wait([task, receiving], return_when=asyncio.FIRST_COMPLETED)
    (task if task.done() else receiving).result()


async def _turn(word: str, counts: list[int]) -> list[int]:
    """Say how far this process is, and wait until all others are: what have all of them sent?"""
    print(word, json.dumps(counts), flush=True)
    answer = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    found: list[int] = json.loads(answer)
    return found


if __name__ == "__main__":
    die_with_parent()
    asyncio.run(be_member(Path(sys.argv[1]), int(sys.argv[2])))
