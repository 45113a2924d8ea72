"""The HTTP server on real sockets: answers in order, limits, slow and hostile clients, and its end."""

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ordercast.core import LocalError
from ordercast.net.http import connection
from ordercast.net.http.connection import ConnectionState as S
from ordercast.net.http.request import HttpHead, HttpRequest
from ordercast.net.http.response import HttpResponse, text_response
from ordercast.net.http.server import HttpLimits, HttpServer
from ordercast.net.transports.address import Address
from tests.live.processes import PATIENCE_S

HERE = Address("127.0.0.1", 0)
SHORT = HttpLimits(connections=3, body_bytes_max=2 << 20, request_s=0.2, idle_s=0.3)
LONG = HttpLimits(connections=3, body_bytes_max=2 << 20, request_s=60, idle_s=60)


class Parrot:
    """Gives back bodies; `/wait` waits until it is told, `/no` is not admitted, `/bad` is a defect."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.under_way = 0

    def screen(self, head: HttpHead) -> HttpResponse | None:
        return text_response(401, "not you") if head.path == "/no" else None

    async def answer(self, request: HttpRequest) -> HttpResponse:
        if request.head.path == "/bad":
            raise ZeroDivisionError("ouch")
        if request.head.path == "/wait":
            self.under_way += 1
            await self.told.wait()
        return HttpResponse(200, request.body or request.head.path.encode())

    def malformed(self, status: int, text: str) -> HttpResponse:
        return text_response(status, text)


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Visited:
    """A server that runs, its site, and clients of it."""

    def __init__(self, server: HttpServer, site: Parrot) -> None:
        self.server, self.site = server, site
        self.opened: list[asyncio.StreamWriter] = []

    async def connect(self, **more: Any) -> Streams:
        reader, writer = await asyncio.open_connection(*self.server.address, **more)
        self.opened.append(writer)
        return reader, writer

    async def speak(self, data: bytes) -> bytes:
        """All that is answered to some bytes, until the server hangs up."""
        reader, writer = await self.connect()
        writer.write(data)
        return await reader.read()


def visit(
    test: Callable[[Visited], Awaitable[None]],
    limits: HttpLimits = LONG,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Run a test beside a server on a port that was free; no defect may be reported to the loop."""
    defects: list[object] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: defects.append(context))
        site = Parrot()
        server = HttpServer(HERE, site, limits, tls)
        await server.start()
        visited = Visited(server, site)
        try:
            await test(visited)
        finally:
            await server.close()
            for writer in visited.opened:
                writer.close()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
    assert defects == []


def ask(path: str, body: bytes = b"", *lines: str) -> bytes:
    head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *lines])
    return f"{head}\r\n\r\n".encode() + body


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The next answer on a connection that stays open."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length)


async def settled(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.005)


def test_many_requests_on_one_connection_are_answered_in_order() -> None:
    async def test(visited: Visited) -> None:
        reader, writer = await visited.connect()
        for number in range(20):
            writer.write(ask("/", b"%d" % number))
            assert await answer_of(reader) == (200, b"%d" % number)
        writer.write(b"".join(ask("/", b"%d" % number) for number in range(50)))
        assert [await answer_of(reader) for _ in range(50)] == [(200, b"%d" % n) for n in range(50)]
        assert visited.server.answers == {200: 70}

    visit(test)


def test_a_client_that_sends_far_ahead_is_slowed_down_and_answered() -> None:
    async def test(visited: Visited) -> None:
        reader, writer = await visited.connect()
        writer.write(ask("/wait", b"first") + b"".join(ask("/", b"x" * 50_000) for _ in range(100)))
        await settled(lambda: visited.site.under_way == 1)
        await asyncio.sleep(0.05)
        (served,) = visited.server.clients
        assert served._reader.buffered < 2 * connection.AHEAD_BYTES_MAX + (1 << 18)
        visited.site.told.set()
        assert await answer_of(reader) == (200, b"first")
        assert [(await answer_of(reader))[1] for _ in range(100)] == [b"x" * 50_000] * 100

    visit(test)


def test_a_last_request_is_answered_and_the_connection_closed() -> None:
    async def test(visited: Visited) -> None:
        answer = await visited.speak(ask("/", b"hi", "Connection: close"))
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nConnection: close\r\n" in answer
        assert (await visited.speak(b"GET /x HTTP/1.0\r\n\r\n")).endswith(b"\r\n\r\n/x")
        assert (await visited.speak(b"HEAD /x HTTP/1.0\r\n\r\n")).endswith(b"\r\n\r\n")
        reader, writer = await visited.connect()
        writer.write(ask("/", b"half-closed"))
        writer.write_eof()
        assert (await reader.read()).endswith(b"half-closed")
        await settled(lambda: not visited.server.connections)

    visit(test)


def test_what_is_malformed_is_answered_once_and_the_others_do_not_notice() -> None:
    async def test(visited: Visited) -> None:
        reader, writer = await visited.connect()
        answer = await visited.speak(b"GET / HTTP/1.1\r\n\r\n" + ask("/"))
        assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1") == 1
        assert answer.endswith(b"\r\n\r\nthe header Host is missing\n")
        assert (await visited.speak(ask("/bad", b"", "Connection: close"))).startswith(b"HTTP/1.1 500 ")
        writer.write(ask("/", b"still here"))
        assert await answer_of(reader) == (200, b"still here")

    visit(test)


def test_a_refused_client_is_told_although_it_sends_a_large_body() -> None:
    async def test(visited: Visited) -> None:
        begin, body = ask("/no", b"x" * (1 << 20)).split(b"\r\n\r\n")
        reader, writer = await visited.connect()
        writer.write(begin + b"\r\n\r\n")
        writer.write(body)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert (await visited.speak(ask("/", b"x" * (3 << 20)))).startswith(b"HTTP/1.1 413 ")

    visit(test)


def test_a_client_that_waits_for_a_word_gets_it_only_if_it_is_admitted() -> None:
    async def test(visited: Visited) -> None:
        reader, writer = await visited.connect()
        head, _, body = ask("/", b"y" * 5_000, "Expect: 100-continue").partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert await answer_of(reader) == (200, body)
        head, _, _ = ask("/no", b"y" * 5_000, "Expect: 100-continue").partition(b"\r\n\r\n")
        assert (await visited.speak(head + b"\r\n\r\n")).startswith(b"HTTP/1.1 401 ")

    visit(test)


def test_slow_clients_are_hung_up_on_whatever_they_are_slow_at() -> None:
    async def test(visited: Visited) -> None:
        silent, _ = await visited.connect()
        assert await silent.read() == b""
        assert (await visited.speak(ask("/", b"abc")[:-1])).startswith(b"HTTP/1.1 408 ")
        reader, writer = await visited.connect()
        for byte in ask("/", b"drop by drop"):  # each in time, all of them not
            writer.write(bytes([byte]))
            await asyncio.sleep(0.02)
            if reader.at_eof() or reader._buffer:  # type: ignore[attr-defined]
                break
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        idle, writer = await visited.connect()
        writer.write(ask("/", b"once"))
        assert (await idle.read()).endswith(b"once")
        await settled(lambda: not visited.server.connections)

    visit(test, SHORT)


def test_who_does_not_take_its_answer_is_hung_up_on() -> None:
    async def test(visited: Visited) -> None:
        _, writer = await visited.connect(limit=1)
        for _ in range(8):
            writer.write(ask("/", b"z" * (2 << 20)))
        await settled(lambda: visited.server.answers[200] > 0)
        await settled(lambda: not visited.server.connections)
        assert visited.server.answers[200] < 8

    visit(test, SHORT)


def test_strangers_who_hold_all_places_keep_nobody_out() -> None:
    async def test(visited: Visited) -> None:
        first, writer = await visited.connect()
        writer.write(ask("/", b"known"))
        await answer_of(first)
        held = [await visited.connect() for _ in range(10)]
        for _, stranger in held:
            stranger.write(b"GET / HTT")
        assert (await visited.speak(ask("/", b"in", "Connection: close"))).endswith(b"in")
        writer.write(ask("/", b"still known"))
        assert await answer_of(first) == (200, b"still known"), "strangers give up their places first"
        assert visited.server.connections <= 3

    visit(test)


def test_a_place_with_a_request_under_way_is_nobody_elses() -> None:
    async def test(visited: Visited) -> None:
        waiting = [await visited.connect() for _ in range(3)]
        for _, writer in waiting:
            writer.write(ask("/wait", b"mine"))
        await settled(lambda: visited.site.under_way == 3)
        with suppress(ConnectionError):  # as good
            assert await visited.speak(ask("/")) == b""
        visited.site.told.set()
        for reader, _ in waiting:
            assert await answer_of(reader) == (200, b"mine")

    visit(test)


def test_a_client_that_goes_while_its_request_is_under_way_harms_nobody() -> None:
    async def test(visited: Visited) -> None:
        _, writer = await visited.connect()
        writer.write(ask("/wait"))
        await settled(lambda: visited.site.under_way == 1)
        writer.transport.abort()
        assert await visited.speak(ask("/", b"next", "Connection: close"))
        visited.site.told.set()
        await settled(lambda: visited.server.answers[200] == 2 and not visited.server.connections)

    visit(test)


def test_the_end_waits_for_requests_under_way_but_not_for_ever() -> None:
    async def test(visited: Visited) -> None:
        idle, _ = await visited.connect()
        under_way, writer = await visited.connect()
        writer.write(ask("/wait", b"in time"))
        half, halfway = await visited.connect()
        halfway.write(ask("/wait", b"cut off")[:-1])
        states = {S.IDLE, S.READING, S.ANSWERING}
        await settled(lambda: {one.state for one in visited.server.clients} == states)
        visited.server.stop_listening()
        assert await idle.read() == b""
        assert (await half.read()).startswith(b"HTTP/1.1 503 ")
        with pytest.raises(ConnectionError):
            await visited.connect()
        closing = asyncio.create_task(visited.server.close(60))
        await asyncio.sleep(0.02)
        visited.site.told.set()
        answer = await under_way.read()
        assert answer.endswith(b"in time") and b"Connection: close" in answer
        await closing

    visit(test)

    async def too_late(visited: Visited) -> None:
        reader, writer = await visited.connect()
        writer.write(ask("/wait"))
        await settled(lambda: visited.site.under_way == 1)
        await visited.server.close(0.05)
        with suppress(ConnectionError):  # as good
            assert await reader.read() == b""

    visit(too_late)


def test_an_address_that_is_taken_is_told_in_words() -> None:
    async def test(visited: Visited) -> None:
        taken = HttpServer(visited.server.address, visited.site, LONG)
        with pytest.raises(LocalError, match=f"cannot listen on 127.*:{taken.address.port}: Address already"):
            await taken.start()

    visit(test)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    write_certificate(cert, key)
    return cert, key


def write_certificate(cert: Path, key: Path) -> None:
    """A certificate of this machine that it has signed itself."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )  # fmt: skip


def test_requests_are_answered_over_tls_and_handshakes_are_limited(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(cert, key)
    trusting = ssl.create_default_context(cafile=str(cert))

    async def test(visited: Visited) -> None:
        reader, writer = await visited.connect(ssl=trusting)
        writer.write(ask("/", b"secret") + ask("/", b"again", "Connection: close"))
        assert await answer_of(reader) == (200, b"secret")
        assert (await reader.read()).endswith(b"again")
        assert (await visited.speak(ask("/", b"plain"))).find(b"HTTP") < 0
        held = [await visited.connect() for _ in range(10)]  # none of them begins its handshake
        await settled(lambda: visited.server.connections == 3)
        reader, writer = await visited.connect(ssl=trusting)
        writer.write(ask("/no", b"x" * 100_000))
        assert (await reader.read()).startswith(b"HTTP/1.1 401 ")
        for stranger, _ in held:
            assert await stranger.read() == b""
        await settled(lambda: not visited.server.connections)

    limits = HttpLimits(connections=3, body_bytes_max=2 << 20, request_s=2, idle_s=2)
    visit(test, limits, serving)
