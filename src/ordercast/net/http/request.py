"""Requests of HTTP/1.1 from bytes, without input or output (RFC 9112).

The reader is strict, because what two programs read differently is how requests are smuggled past one of
them: lines end with CR LF, a header has no space before its colon and no second line, a request has one
length, and nothing is sent in chunks. Whatever else comes is a `BadRequest`, after which the connection
cannot be used any more.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

HEAD_BYTES_MAX = 16 << 10
HEADERS_MAX = 100
BODY_BYTES_MAX = 0
"""By default a request has no body."""

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_LINE = re.compile(rb"(" + _TOKEN + rb") (?:https?://[^/?# ]*)?(/[!-~]*) HTTP/([0-9])\.([0-9])")
_NAME = re.compile(_TOKEN)
_NO_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""What is not allowed in the value of a header."""
_LENGTH = re.compile(r"[0-9]{1,15}")
_START = frozenset(b"!#$%&'*+.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-\r")
"""What a request may begin with: its method, or an empty line before it."""


class BadRequest(Exception):
    """Bytes that are no request, or not one that this server takes; it has the status of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class HttpHead(NamedTuple):
    """All of a request but its body."""

    method: str
    path: str
    """The path of the target, decoded, without the query."""
    query: str
    keep_alive: bool
    """Whether the connection may be used again."""
    headers: Mapping[str, str]
    """Names are in lower case; values that came several times are joined by commas."""
    length: int
    """Bytes of the body."""

    @property
    def expects_continue(self) -> bool:
        """Whether the client waits for a word before it sends the body."""
        return self.headers.get("expect", "").lower() == "100-continue"


class HttpRequest(NamedTuple):
    """A whole request."""

    head: HttpHead
    body: bytes


class RequestReader:
    """Reads the requests of one connection, one after the other, as their bytes come."""

    def __init__(self, body_bytes_max: int = BODY_BYTES_MAX) -> None:
        self._body_bytes_max = body_bytes_max
        self._buffer = bytearray()
        self._looked = 0
        """How far the end of the head was looked for."""
        self._skipped = False
        """Whether an empty line came before the head."""
        self._head: HttpHead | None = None

    @property
    def buffered(self) -> int:
        """Bytes that are not part of a read request yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take what has come."""
        self._buffer += data

    def read_head(self) -> HttpHead | None:
        """The head of the next request; None if it is not there yet. `BadRequest` if it never will be."""
        if self._head is None:
            if not self._skipped and self._buffer[:2] == b"\r\n":
                del self._buffer[:2]  # some clients end a body with an empty line that they do not count
                self._skipped, self._looked = True, 0
            end = self._buffer.find(b"\r\n\r\n", max(0, self._looked - 3), HEAD_BYTES_MAX + 4)
            if end < 0:
                self._look_ahead()
                return None
            self._head = self._checked(parse_head(bytes(self._buffer[:end])))
            del self._buffer[: end + 4]
        return self._head

    def read_body(self) -> bytes | None:
        """The body that belongs to the head; None if it is not all there. Then the next request begins."""
        assert self._head is not None
        length = self._head.length
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        self._head, self._looked, self._skipped = None, 0, False
        return body

    def _look_ahead(self) -> None:
        """Refuse at once what cannot become a head, so that nobody waits for the rest of it."""
        buffer = self._buffer
        if buffer and buffer[0] not in _START:
            raise BadRequest(400, "the request is not HTTP")
        line = buffer.find(b"\n")
        if line == 0 or (line > 0 and buffer[line - 1] != 13):
            raise BadRequest(400, "lines of a request end with CR LF")
        if len(buffer) > HEAD_BYTES_MAX:
            raise BadRequest(431, f"the head of a request has at most {HEAD_BYTES_MAX} bytes")
        self._looked = len(buffer)

    def _checked(self, head: HttpHead) -> HttpHead:
        if head.length > self._body_bytes_max:
            limit = self._body_bytes_max
            text = (
                f"the body has {head.length} bytes; the limit is {limit}" if limit else "no body is expected"
            )
            raise BadRequest(413, text)
        return head


def parse_head(raw: bytes) -> HttpHead:
    """The head in some bytes, without the empty line at its end; `BadRequest` if it is not one."""
    first, *lines = raw.split(b"\r\n")
    matched = _LINE.fullmatch(first)
    if matched is None:
        raise BadRequest(400, "the first line is not METHOD /PATH HTTP/1.1")
    method, target, major, minor = matched.groups()
    if major != b"1":
        raise BadRequest(505, "only HTTP/1.1 is spoken here")
    headers = _headers(lines)
    if "transfer-encoding" in headers:
        raise BadRequest(411, "send the body in one piece, with its Content-Length")
    if minor != b"0" and "host" not in headers:
        raise BadRequest(400, "the header Host is missing")
    path, _, query = target.decode("ascii").partition("?")
    options = {word.strip() for word in headers.get("connection", "").lower().split(",")}
    return HttpHead(
        method.decode("ascii"),
        _decoded(path),
        query,
        minor != b"0" and "close" not in options,
        headers,
        _length(headers.get("content-length")),
    )


def _headers(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > HEADERS_MAX:
        raise BadRequest(431, f"a request has at most {HEADERS_MAX} headers")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name):
            raise BadRequest(400, "a header is not NAME: VALUE")
        if _NO_VALUE.search(value):
            raise BadRequest(400, "the value of a header has a control character")
        key, text = name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")
        if key not in headers:
            headers[key] = text
        elif key in _ONCE:
            raise BadRequest(400, f"the header {name.decode('ascii')} comes twice")
        else:
            headers[key] += f", {text}"
    return headers


_ONCE = frozenset({"authorization", "content-length", "expect", "host", "idempotency-key"})
"""Headers that mean nothing certain if there are two."""


def _length(text: str | None) -> int:
    if text is None:
        return 0
    if not _LENGTH.fullmatch(text):
        raise BadRequest(400, "Content-Length is not a number of bytes")
    return int(text)


def _decoded(path: str) -> str:
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest(400, "the path is not UTF-8") from None
