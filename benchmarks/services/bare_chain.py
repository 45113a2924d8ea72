"""The way of a call through five Python processes, and nothing else: what such a way costs at least.

The same datagrams as with HydraPaxos: tasks whose calls fall due together share one, a sequencer passes it to
three replicas, which apply the writes, the first sends the results and the others a word, and a call ends
with the results and one word. But nothing is numbered, merged, checked, encrypted, repeated, synchronised or
measured, no process can fail, and of a call nothing is kept. So it is a ceiling for services in Python on
this machine, and no rival.
"""

import asyncio
import multiprocessing
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from benchmarks.peers.stage import die_with_parent
from benchmarks.services.contender import REPLICAS, Contender, Figures
from benchmarks.services.load import Connection, drive
from ordercast.net.host.loop import new_event_loop, run

Write = tuple[str, str | None]
"""A key, and its new value; None only reads it."""
Answer = asyncio.Future[str | None]
DATAGRAM_MAX = 1 << 16
_encode = msgspec.msgpack.Encoder().encode
_decode_call = msgspec.msgpack.Decoder(tuple[int, list[Write]]).decode
_decode_reply = msgspec.msgpack.Decoder(tuple[int, list[str | None] | None]).decode


class BareChain(Contender):
    """A program, a sequencer and three replicas."""

    name = "bare_chain"

    def measure(self, tasks: int, seconds: float, folder: Path) -> Figures:
        """Run the sequencer and the replicas in processes of their own."""
        context, sockets = multiprocessing.get_context("spawn"), [bound() for _ in range(2 + REPLICAS)]
        names = [one.getsockname() for one in sockets]
        roles: list[Role] = [Sequencer(sockets[1], names[2:])]
        roles += [Replica(one, names[0], first=one is sockets[2]) for one in sockets[2:]]
        processes = [context.Process(target=serve, args=(role,), daemon=True) for role in roles]
        try:
            for process in processes:
                process.start()
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                return runner.run(_measure(Program(sockets[0], names[1]), tasks, seconds))
        finally:
            for process in processes:
                process.kill()
                process.join()
            for one in sockets:
                one.close()


def bound() -> socket.socket:
    """A socket of the loopback interface."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setblocking(False)
    udp.bind(("127.0.0.1", 0))
    return udp


class Role(Protocol):
    """A process but the program."""

    udp: socket.socket

    def on_call(self, datagram: bytes) -> None:
        """A call has come."""


def serve(role: Role) -> None:
    """Handle calls until the end."""
    die_with_parent()
    run(_read_for_ever(role))


async def _read_for_ever(role: Role) -> None:
    add_reader(role.udp, role.on_call)
    await asyncio.Event().wait()


def add_reader(udp: socket.socket, on_datagram: Callable[[bytes], None]) -> None:
    """Handle what comes, one datagram for each time that the loop wakes up."""

    def on_readable() -> None:
        with suppress(BlockingIOError):
            on_datagram(udp.recv(DATAGRAM_MAX))

    asyncio.get_running_loop().add_reader(udp.fileno(), on_readable)


class Sequencer:
    """Passes calls on."""

    def __init__(self, udp: socket.socket, replicas: Sequence[Any]) -> None:
        self.udp = udp
        self._replicas = replicas

    def on_call(self, datagram: bytes) -> None:
        """Send a call to all replicas."""
        for replica in self._replicas:
            self.udp.sendto(datagram, replica)


class Replica:
    """Applies writes."""

    def __init__(self, udp: socket.socket, program: Any, *, first: bool) -> None:
        self.udp = udp
        self._program = program
        self._first = first
        self._data: dict[str, str] = {}

    def on_call(self, datagram: bytes) -> None:
        """Apply a call, and reply."""
        call, writes = _decode_call(datagram)
        results = [self._apply(key, value) for key, value in writes]
        self.udp.sendto(_encode((call, results if self._first else None)), self._program)

    def _apply(self, key: str, value: str | None) -> str | None:
        if value is None:
            return self._data.get(key)
        self._data[key] = value
        return None


class Program:
    """The calls of all tasks."""

    def __init__(self, udp: socket.socket, sequencer: Any) -> None:
        self._udp = udp
        self._sequencer = sequencer
        self._line: list[tuple[Write, Answer]] = []
        self._number = 0
        self._calls: dict[int, list[Answer]] = {}
        self._results: dict[int, list[str | None]] = {}
        self._words: set[int] = set()

    def start(self) -> None:
        """Take replies."""
        add_reader(self._udp, self._on_reply)

    def call(self, write: Write) -> Answer:
        """Call with the others of this turn."""
        loop = asyncio.get_running_loop()
        if not self._line:
            loop.call_soon(self._submit)
        answer: Answer = loop.create_future()
        self._line.append((write, answer))
        return answer

    def _submit(self) -> None:
        self._number += 1
        self._calls[self._number] = [answer for _, answer in self._line]
        self._udp.sendto(_encode((self._number, [write for write, _ in self._line])), self._sequencer)
        self._line = []

    def _on_reply(self, datagram: bytes) -> None:
        call, results = _decode_reply(datagram)
        if call not in self._calls:
            return
        if results is None:
            self._words.add(call)
        else:
            self._results[call] = results
        if call in self._words and call in self._results:
            self._words.discard(call)
            for answer, result in zip(self._calls.pop(call), self._results.pop(call), strict=True):
                if not answer.done():
                    answer.set_result(result)


class BareConnection(Connection):
    """The calls of one task."""

    def __init__(self, program: Program) -> None:
        self._program = program

    async def put(self, key: str, value: str) -> None:
        """Write, and wait for the answer."""
        await self._program.call((key, value))

    async def get(self, key: str) -> str | None:
        """What the first replica has."""
        return await self._program.call((key, None))


async def _measure(program: Program, tasks: int, seconds: float) -> Figures:
    program.start()

    async def connect() -> Connection:
        return BareConnection(program)

    return await drive(connect, tasks, seconds)
