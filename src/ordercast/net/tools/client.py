"""A synchronous client of the control socket, for the command line."""

import contextlib
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from ordercast.core import HostId, LocalError, MessageId, NodeId
from ordercast.net.cluster.socket_file import find_socket
from ordercast.net.tools.facts import HostFact
from ordercast.net.tools.requests import (
    Explain,
    GroupName,
    Impair,
    ReadMetrics,
    Request,
    Status,
    Stop,
    Submit,
    Tail,
)
from ordercast.net.transports.impair import Impairment

ANSWER_BYTES_MAX = 64 << 20
_FULL_WAIT_S = 0.002
_FULL_WAIT_MAX_S = 0.1

Content = TypeVar("Content")


class NoAnswer(LocalError):
    """A host is not up, or does not answer."""


class ControlClient:
    """A connection to one host."""

    def __init__(self, host: HostId, path: Path, timeout_s: float = 5.0) -> None:
        self.host = host
        self._timeout_s = timeout_s
        self._buffer = bytearray()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(find_socket(path)))
        except OSError as error:
            self._socket.close()
            raise self._silent(error) from error

    def __enter__(self) -> Self:
        """Use the client in a `with` statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up."""
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def status(self) -> dict[str, Any]:
        """The identity and the state of the host."""
        return self._ask(Status(), dict[str, Any])

    def metrics(self) -> dict[str, Any]:
        """The metrics of the host."""
        return self._ask(ReadMetrics(), dict[str, Any])

    def explain(self, message: MessageId | None = None) -> HostFact:
        """What waits at the nodes of the host."""
        return self._ask(Explain(message), HostFact)

    def impair(self, impairment: Impairment) -> None:
        """Impair the host's datagrams; `LocalError` if it was not started with --impair."""
        self._ask(Impair(impairment), dict[str, Any])

    def stop(self) -> None:
        """Stop the host in good order; it stops after its answer."""
        self._ask(Stop(), dict[str, Any])

    def submit(
        self, groups: Sequence[GroupName], payloads: list[bytes], node: NodeId | None = None
    ) -> MessageId:
        """Submit messages; waits while the host's backlog is full. Returns the identity of the first."""
        deadline = time.monotonic() + self._timeout_s
        pause = _FULL_WAIT_S
        request = Submit(tuple(groups), payloads, node)
        while True:
            answer = self._ask(request, dict[str, Any])
            if "first" in answer:
                return int(answer["first"])
            if time.monotonic() > deadline:
                waited = f"{self._timeout_s:g} s"
                raise NoAnswer(
                    f"host {self.host} has had no room for {waited}: run `ordercast why` to see what waits"
                )
            time.sleep(pause)
            pause = min(2 * pause, _FULL_WAIT_MAX_S)

    def tail(
        self, groups: Sequence[GroupName] = (), node: NodeId | None = None, count: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Deliveries from now on, one line each; ends when the host ends or after `count` messages."""
        yield self._ask(Tail(tuple(groups), node, count), dict[str, Any])
        self._socket.settimeout(None)  # there may be nothing to tell for any time
        while True:
            line = self._read_line()
            if line is None:
                return
            content = self._decode(line, dict[str, Any])
            if "end" in content:
                return
            yield content

    def _ask(self, request: Request, kind: type[Content]) -> Content:
        try:
            with contextlib.suppress(BrokenPipeError):  # it has hung up, and may have said why
                self._socket.sendall(msgspec.json.encode(request) + b"\n")
            line = self._read_line()
        except OSError as error:
            raise self._silent(error) from error
        if line is None:
            raise NoAnswer(f"host {self.host} hung up")
        answer = self._decode(line, dict[str, msgspec.Raw])
        if "ok" in answer:
            return self._decode(answer["ok"], kind)
        complaint = self._decode(answer["error"], str) if "error" in answer else "no reason given"
        raise LocalError(f"host {self.host}: {complaint}")

    def _decode(self, line: bytes | msgspec.Raw, kind: type[Content]) -> Content:
        try:
            return msgspec.json.decode(line, type=kind)
        except msgspec.DecodeError as error:
            raise NoAnswer(f"host {self.host} sent an invalid answer: {error}") from error

    def _read_line(self) -> bytes | None:
        """The next line; None when the host has hung up."""
        start = 0
        while (end := self._buffer.find(b"\n", start)) < 0:
            start = len(self._buffer)
            if start > ANSWER_BYTES_MAX:
                raise NoAnswer(f"host {self.host} sent an answer longer than {ANSWER_BYTES_MAX} bytes")
            more = self._socket.recv(1 << 16)
            if not more:
                return None
            self._buffer += more
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _silent(self, error: OSError) -> NoAnswer:
        if isinstance(error, PermissionError):
            return NoAnswer(f"only the user who runs host {self.host} may use its control socket")
        if isinstance(error, TimeoutError):
            return NoAnswer(f"host {self.host} has not answered for {self._timeout_s:g} s: is it stuck?")
        return NoAnswer(f"host {self.host} does not answer: is it up? Run `ordercast cluster status`")
