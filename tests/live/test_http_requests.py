"""Requests of HTTP from bytes: what is read, what is refused and how, and that no bytes do harm."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ordercast.net.http.request import HEAD_BYTES_MAX, BadRequest, HttpRequest, RequestReader

BODY_MAX = 1000
POST = b"POST /call/put?x=1 HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\nX-A:  b \r\nx-a: c\r\n\r\nhello"
GET = b"GET /a%20%C3%A9 HTTP/1.1\r\nHost: here\r\n\r\n"


def read(data: bytes, step: int = 0) -> list[HttpRequest]:
    """The requests in some bytes, which come together or in pieces of this size."""
    reader, found = RequestReader(BODY_MAX), []
    for start in range(0, len(data), step or len(data) or 1):
        reader.feed(data[start : start + (step or len(data))])
        while (head := reader.read_head()) is not None and (body := reader.read_body()) is not None:
            found.append(HttpRequest(head, body))
    return found


def outcome(data: bytes, step: int = 0) -> object:
    try:
        return read(data, step)
    except BadRequest as bad:
        return bad.status


def test_requests_are_read_one_after_the_other() -> None:
    post, get, again = read(POST + GET + POST)
    assert (post.head.method, post.head.path, post.head.query) == ("POST", "/call/put", "x=1")
    assert post.head.headers == {"host": "here", "content-length": "5", "x-a": "b, c"}
    assert (post.body, post.head.length, post.head.keep_alive) == (b"hello", 5, True)
    assert (get.head.method, get.head.path, get.body) == ("GET", "/a é", b"")
    assert again == post


@pytest.mark.parametrize("step", [1, 2, 3, 7, 50])
def test_it_does_not_matter_how_the_bytes_are_cut(step: int) -> None:
    assert read(POST + GET + POST, step) == read(POST + GET + POST)


@pytest.mark.parametrize(
    ("line", "keep_alive"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Close", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: te, close", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive", True),
        (b"GET / HTTP/1.0", False),
    ],
)
def test_how_long_a_connection_lasts(line: bytes, keep_alive: bool) -> None:
    (request,) = read(line + b"\r\n\r\n")
    assert request.head.keep_alive is keep_alive


def test_a_target_may_name_the_server_and_an_empty_line_may_come_before() -> None:
    (request,) = read(b"\r\nGET http://here:80/health HTTP/1.1\r\nHost: here\r\n\r\n", 1)
    assert request.head.path == "/health"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400),  # the first bytes of TLS
        (b"GET / HTTP/1.1\nHost: a\n\n", 400),
        (b"\n", 400),
        (b"\r\n\r\n\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /\r\nHost: a\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nx: a\x00b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nx: a\nb\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\nx", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ²\r\n\r\n".encode("latin-1"), 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            411,
        ),
        (b"GET /" + b"x" * HEAD_BYTES_MAX + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * 100 + b"\r\n", 431),
    ],
)
@pytest.mark.parametrize("step", [0, 1])
def test_what_is_refused(data: bytes, status: int, step: int) -> None:
    assert outcome(data, step) == status


def test_the_largest_head_is_read_and_one_more_byte_is_not() -> None:
    frame = b"GET / HTTP/1.1\r\nHost: a\r\nx: %s\r\n\r\n"
    room = HEAD_BYTES_MAX + 4 - len(frame % b"")
    (request,) = read(frame % (b"y" * room))
    assert len(request.head.headers["x"]) == room
    assert outcome(frame % (b"y" * (room + 1))) == 431


def test_spaces_without_end_cost_no_time() -> None:
    line = b"x:" + b" \t" * 7_000 + b"\x00" + b" " * 500
    assert outcome(b"GET / HTTP/1.1\r\nHost: a\r\n" + line + b"\r\n\r\n") == 400


PIECES = st.sampled_from(
    [
        b"GET", b"POST", b" ", b"/", b"/call/put", b" HTTP/1.1", b"\r\n", b"\n", b"\r", b"\r\n\r\n", b":",
        b"Host: a\r\n", b"Content-Length: 3\r\n", b"Content-Length:", b"Transfer-Encoding: chunked\r\n",
        b"abc", b"\x00", b"\xff", b"9" * 20, b"%zz", b"%00", b"Connection: close\r\n", POST, GET,
    ]
)  # fmt: skip
HOSTILE = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=20).map(b"".join))


@given(HOSTILE, st.integers(1, 40))
@example(POST + b"GET", 3)
def test_any_bytes_are_requests_or_one_refusal(data: bytes, step: int) -> None:
    """And the same ones however the bytes are cut, except that a refusal may come before earlier requests."""
    whole, cut = outcome(data), outcome(data, step)
    if isinstance(whole, list) and isinstance(cut, list):
        assert whole == cut
        assert all(request.head.path.startswith("/") for request in whole)
        assert all(len(request.body) == request.head.length <= BODY_MAX for request in whole)
    else:
        assert {type(whole), type(cut)} <= {int, list}
        assert isinstance(whole, int) == isinstance(cut, int)
        assert not isinstance(whole, int) or whole in (400, 411, 413, 431, 505)
