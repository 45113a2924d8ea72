"""One connection of a client: its requests are read and answered one after the other.

State      | the client has                        | how long it may stay
-----------|---------------------------------------|------------------------------------------------
HANDSHAKE  | connected, and TLS is not agreed yet  | `request_s`
IDLE       | no request under way                  | `idle_s`; `request_s` before its first request
READING    | sent a part of a request              | `request_s` from its first byte
ANSWERING  | a request under way                   | as long as the site takes
SENDING    | not taken the answer yet              | `request_s`
LEAVING    | its last answer                       | `LINGER_S`, so that the answer is not lost
GONE       | hung up                               |

A client that stays longer is hung up on; in READING it is told so (408).
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING

from ordercast.net.http.request import BadRequest, HttpHead, HttpRequest, RequestReader
from ordercast.net.http.response import CONTINUE, HttpResponse, text_response

if TYPE_CHECKING:
    from ordercast.net.http.server import HttpServer

LINGER_S = 1.0
"""Closing with unread input would reset the connection, and the last answer could be lost."""
AHEAD_BYTES_MAX = 64 << 10
"""A client may send so much of further requests before the one under way is answered."""

log = logging.getLogger(__name__)


class ConnectionState(Enum):
    """How far a connection has come with a request."""

    HANDSHAKE = auto()
    IDLE = auto()
    READING = auto()
    ANSWERING = auto()
    SENDING = auto()
    LEAVING = auto()
    GONE = auto()


S = ConnectionState
WAITING = frozenset({S.HANDSHAKE, S.IDLE, S.READING})
"""States in which the server waits for the client, and owes it nothing."""


class HttpConnection(asyncio.Protocol):
    """A connection; the server owns the limits, and the site gives the answers."""

    def __init__(self, server: "HttpServer") -> None:
        self._server = server
        self._limits = server.limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = RequestReader(server.limits.body_bytes_max)
        self._head: HttpHead | None = None
        """The head of the request that is being read, if the site admits it."""
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False
        """The client sends no more."""
        self._full = False
        """The client does not take what was written."""
        self.known = False
        """Whether the site has admitted a request of this client."""
        self.state = S.GONE

    @property
    def waiting(self) -> bool:
        """Whether it may be hung up on without breaking off an answer."""
        return self.state in WAITING

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not self._server.enter(self):
            transport.abort()
            return
        if self._server.tls is None:
            self._enter(S.IDLE, self._limits.request_s)
        else:
            # Done here and not by `create_server`, so that handshakes count as connections.
            transport.pause_reading()
            self._enter(S.HANDSHAKE, self._limits.request_s)
            self._server.spawn(self._secure(transport, self._server.tls))

    async def _secure(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        try:
            secured = await self._loop.start_tls(
                transport, self, context, server_side=True, ssl_handshake_timeout=self._limits.request_s
            )
        except OSError:  # no TLS, a wrong one, too slow, or gone
            transport.abort()
            self.connection_lost(None)
            return
        if self.state is S.HANDSHAKE:
            self._transport = secured
            self._enter(S.IDLE, self._limits.request_s)
            self._guard(self._advance)
        elif secured is not None:
            secured.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is closed; a request under way goes on, and nobody hears its answer."""
        self._enter(S.GONE)
        self._server.leave(self)

    def data_received(self, data: bytes) -> None:
        """Some bytes have come."""
        if self.state in (S.LEAVING, S.GONE):
            return
        self._reader.feed(data)
        if self.state is S.HANDSHAKE:
            return  # the first request may come before this program knows that the handshake is done
        if self.state in (S.ANSWERING, S.SENDING):
            if self._reader.buffered > AHEAD_BYTES_MAX and self._transport is not None:
                self._transport.pause_reading()
            return
        self._guard(self._advance)

    def eof_received(self) -> bool:
        """The client sends no more, but may wait for an answer."""
        self._ended = True
        if self.state in (S.ANSWERING, S.SENDING):
            return self._server.tls is None  # with TLS there are no half-closed connections
        return False

    def pause_writing(self) -> None:
        """The client takes no more for now."""
        self._full = True

    def resume_writing(self) -> None:
        """The client has taken enough of the answer for the next one."""
        self._full = False
        if self.state is S.SENDING:
            self._guard(self._turn_to_next)

    def hang_up(self) -> None:
        """Close at once, if nothing is under way; otherwise after the answer."""
        if self.state is S.READING:
            self._refuse(self._server.site.malformed(503, "the server is stopping"))
        elif self.state is S.IDLE:
            self._leave(unread=False)
        elif self.state is S.HANDSHAKE:
            self.abort()
        self._ended = True

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()
        if self.state is S.HANDSHAKE:
            self.connection_lost(None)  # the transport tells nobody before the handshake is done

    def _guard(self, step: Callable[[], None]) -> None:
        """A defect in a step closes this connection, and must not stop the program."""
        try:
            step()
        except Exception:
            log.exception("a defect of ordercast: a connection was closed")
            self.abort()

    def _advance(self) -> None:
        """Read on, and have the next request answered when it is whole."""
        try:
            request = self._read()
        except BadRequest as bad:
            self._refuse(self._server.site.malformed(bad.status, str(bad)))
            return
        if request is not None:
            self._enter(S.ANSWERING)
            self._server.spawn(self._answer(request))

    def _read(self) -> HttpRequest | None:
        reader = self._reader
        if self._head is None:
            if self.state is S.IDLE and reader.buffered:
                self._enter(S.READING, self._limits.request_s)
            head = reader.read_head()
            if head is None:
                return None
            refusal = self._server.site.screen(head)
            if refusal is not None:  # before the body: strangers cannot make us keep one
                self._refuse(refusal, head)
                return None
            self._head = head
            self._server.know(self)
            if head.expects_continue and reader.buffered < head.length and self._transport is not None:
                self._transport.write(CONTINUE)
        body = reader.read_body()
        if body is None:
            return None
        head, self._head = self._head, None
        return HttpRequest(head, body)

    def _refuse(self, response: HttpResponse, head: HttpHead | None = None) -> None:
        """Answer what is not read to its end, and close."""
        self._ended = True
        self._send(response, head, unread=True)

    async def _answer(self, request: HttpRequest) -> None:
        try:
            response = await self._server.site.answer(request)
        except Exception:
            log.exception("a defect of ordercast: a request could not be answered")
            response = text_response(500, "a defect of ordercast; its log says more")
        self._guard(lambda: self._send(response, request.head, unread=self._reader.buffered > 0))

    def _send(self, response: HttpResponse, head: HttpHead | None, *, unread: bool) -> None:
        self._server.count(response.status)
        if self._transport is None or self.state is S.GONE:
            return
        last = self._ended or head is None or not head.keep_alive or self._server.closing
        with_content = head is None or head.method != "HEAD"
        self._transport.write(response.pack(keep_alive=not last, with_content=with_content))
        if last:
            self._leave(unread=unread)
        elif self._full:
            self._enter(S.SENDING, self._limits.request_s)
        else:
            self._turn_to_next()

    def _turn_to_next(self) -> None:
        """The answer is out: go on with what the client has sent meanwhile."""
        assert self._transport is not None
        if self._ended or self._server.closing:
            self._leave(unread=False)
            return
        self._enter(S.IDLE, self._limits.idle_s)
        self._transport.resume_reading()
        if self._reader.buffered:
            self._advance()

    def _leave(self, *, unread: bool) -> None:
        """Close when the client has the answer, or after a while."""
        assert self._transport is not None
        self._enter(S.LEAVING, LINGER_S if unread else self._limits.request_s)
        if not unread:
            self._transport.close()
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()

    def _enter(self, state: ConnectionState, for_s: float | None = None) -> None:
        """Go to a state, which may last so long."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.state = state
        if for_s is not None:
            self._timer = self._loop.call_later(for_s, self._guard, self._expire)

    def _expire(self) -> None:
        if self.state is S.READING:
            seconds = f"{self._limits.request_s:g}"
            self._refuse(self._server.site.malformed(408, f"the request did not come within {seconds} s"))
        elif self.state is S.IDLE:
            self._leave(unread=False)
        else:
            self.abort()
