"""Metrics over HTTP for monitoring systems: ``GET /metrics`` and ``GET /health``, and nothing else.

This is a little HTTP/1.1 server instead of a dependency: it reads the head of a request, answers, and closes
the connection. It changes nothing, and by default it listens only on this machine.
"""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec

from ordercast.core import LocalError, exception_text
from ordercast.net.transports.address import Address

HEAD_BYTES_MAX = 8 << 10
CLIENTS_MAX = 32
PATIENCE_S = 5.0
"""Seconds for a whole request; a client that sends nothing is cut off after that."""

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_JSON = "application/json"
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

Health = Callable[[], tuple[bool, dict[str, object]]]
"""Whether the host is well, and details."""


class MetricsServer:
    """Serves the metrics of one host."""

    def __init__(self, address: Address, metrics: Callable[[], str], health: Health) -> None:
        self.address = address
        self._metrics = metrics
        self._health = health
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen; port 0 takes any free port, and `address` then has it."""
        try:
            self._server = await asyncio.start_server(self._accept, *self.address, limit=HEAD_BYTES_MAX)
        except OSError as error:
            raise LocalError(f"cannot serve metrics on {self.address}: {error.strerror}") from error
        self.address = Address(self.address.host, self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening."""
        if self._server is None:
            return
        self._server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            if len(self._clients) <= CLIENTS_MAX:  # beyond that, hang up without a word
                async with asyncio.timeout(PATIENCE_S):
                    writer.write(await self._answer(reader))
                    writer.write_eof()
                    # Closing with unread input would reset the connection, and the answer could be lost.
                    while await reader.read(HEAD_BYTES_MAX):
                        pass
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            pass  # the client has gone or is too slow, or the host stops
        finally:
            self._clients.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return _response(400, _TEXT, "the request is missing or too long\n")
        method, _, rest = head.split(b"\r\n", 1)[0].partition(b" ")
        path, _, version = rest.partition(b" ")
        if not version.startswith(b"HTTP/1."):
            return _response(400, _TEXT, "the request is not HTTP/1\n")
        if method not in (b"GET", b"HEAD"):
            return _response(
                405, _TEXT, "only GET and HEAD are allowed: GET /metrics, GET /health\n", "Allow: GET, HEAD"
            )
        status, kind, body = self._find(path.partition(b"?")[0])
        return _response(status, kind, body, with_body=method == b"GET")

    def _find(self, path: bytes) -> tuple[int, str, str]:
        try:
            if path == b"/metrics":
                return 200, _TEXT, self._metrics()
            if path == b"/health":
                well, content = self._health()
                return 200 if well else 503, _JSON, msgspec.json.encode(content).decode() + "\n"
        except Exception as error:  # a question must never stop the host
            return 500, _TEXT, f"a defect of ordercast: {exception_text(error)}\n"
        return 404, _TEXT, "not found; the paths are: /metrics, /health\n"


def _response(status: int, kind: str, body: str, header: str = "", with_body: bool = True) -> bytes:
    content = body.encode()
    head = [
        f"HTTP/1.1 {status} {_REASONS[status]}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(content)}",
        "Connection: close",
        *([header] if header else []),
    ]
    return "\r\n".join([*head, "", ""]).encode() + (content if with_body else b"")
