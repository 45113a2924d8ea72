"""The server: it accepts connections up to a limit, has their requests answered, and ends cleanly.

When all places are taken, a new client gets that of one that keeps the server waiting: first of those that
have not sent an admitted request yet, the one that came first, then of those that have. So strangers who
hold connections open keep nobody out. If every place has a request under way, the newcomer is hung up on.
"""

import asyncio
import os
import ssl
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Protocol

import msgspec

from ordercast.core import LocalError
from ordercast.net.http.connection import HttpConnection
from ordercast.net.http.request import BODY_BYTES_MAX, HttpHead, HttpRequest
from ordercast.net.http.response import HttpResponse
from ordercast.net.transports.address import Address


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What clients may take."""

    connections: int = 32
    body_bytes_max: int = BODY_BYTES_MAX
    request_s: float = 5.0
    """For a whole request from its first byte, for a TLS handshake, and for taking an answer."""
    idle_s: float = 30.0
    """Between two requests."""


class Site(Protocol):
    """What a server serves."""

    def screen(self, head: HttpHead) -> HttpResponse | None:
        """The refusal of a request before its body is read; None if it is admitted."""

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request that was admitted."""

    def malformed(self, status: int, text: str) -> HttpResponse:
        """The answer to what is no request, or came too late or too large."""


class HttpServer:
    """Serves a site at an address."""

    def __init__(
        self, address: Address, site: Site, limits: HttpLimits, tls: ssl.SSLContext | None = None
    ) -> None:
        self.address = address
        self.site = site
        self.limits = limits
        self.tls = tls
        self.closing = False
        """Whether it ends: each connection closes after the answer under way."""
        self.answers: Counter[int] = Counter()
        """How many answers there were, by status."""
        self._server: asyncio.Server | None = None
        self._strangers: dict[HttpConnection, None] = {}
        """Connections without an admitted request, the oldest first."""
        self._known: dict[HttpConnection, None] = {}
        """The others; the one whose latest request is the oldest comes first."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._strangers) + len(self._known)

    @property
    def clients(self) -> list[HttpConnection]:
        """All connections: first those that have not sent an admitted request."""
        return [*self._strangers, *self._known]

    async def start(self) -> None:
        """Listen; port 0 takes any free port, and `address` then has it."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: HttpConnection(self), *self.address, backlog=max(100, self.limits.connections)
            )
        except OSError as error:
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
            raise LocalError(f"cannot listen on {self.address}: {why}") from error
        self.address = Address(self.address.host, self._server.sockets[0].getsockname()[1])

    def stop_listening(self) -> None:
        """Accept nobody any more, and let those go who have nothing under way."""
        self.closing = True
        if self._server is not None:
            self._server.close()
        for connection in self.clients:
            connection.hang_up()

    async def close(self, grace_s: float = 0.0) -> None:
        """Stop listening, let requests under way end for so long, and close everything."""
        self.stop_listening()
        if grace_s and self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if grace_s and self.connections:
            await asyncio.sleep(0)  # answers that were written leave with the next turn
        for connection in self.clients:
            connection.abort()

    def enter(self, connection: HttpConnection) -> bool:
        """Give a new connection a place; False if there is none."""
        if self.closing or (self.connections >= self.limits.connections and not self._make_room()):
            return False
        self._strangers[connection] = None
        return True

    def know(self, connection: HttpConnection) -> None:
        """A connection has sent an admitted request."""
        self._strangers.pop(connection, None)
        self._known.pop(connection, None)
        self._known[connection] = None

    def leave(self, connection: HttpConnection) -> None:
        """A connection is closed."""
        self._strangers.pop(connection, None)
        self._known.pop(connection, None)

    def _make_room(self) -> bool:
        for places in (self._strangers, self._known):
            for connection in places:
                if connection.waiting:
                    del places[connection]
                    connection.abort()
                    return True
        return False

    def count(self, status: int) -> None:
        """Count an answer."""
        self.answers[status] += 1

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Work on a request in a task of its own."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
