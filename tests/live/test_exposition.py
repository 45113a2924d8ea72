"""Metrics over HTTP: two pages, read only, within limits."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ordercast.net.metrics.metrics import Metrics
from ordercast.net.tools.exposition import metrics_server
from ordercast.net.transports.address import Address
from tests.live.processes import PATIENCE_S

Speak = Callable[[bytes], Awaitable[bytes]]


def serving(
    test: Callable[[Speak], Awaitable[None]],
    *,
    health: Callable[[], tuple[bool, dict[str, object]]] = lambda: (True, {"status": "running"}),
    metrics: Callable[[], str] = lambda: Metrics().prometheus(),
) -> None:
    """Run a test beside a server on a port that was free."""

    async def running() -> None:
        server = metrics_server(Address("127.0.0.1", 0), metrics, health)
        await server.start()

        async def speak(request: bytes) -> bytes:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(request)
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer

        try:
            await test(speak)
        finally:
            await server.close()

    asyncio.run(asyncio.wait_for(running(), PATIENCE_S))


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode()


def test_metrics_are_served_as_collectors_expect() -> None:
    async def test(speak: Speak) -> None:
        head, _, body = (await speak(get("/metrics?now"))).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4")
        assert f"Content-Length: {len(body)}".encode() in head
        assert b"\nordercast_latency_seconds_count 0\n" in body

    serving(test)


@pytest.mark.parametrize(("well", "status"), [(True, b"200 OK"), (False, b"503 Service Unavailable")])
def test_health_is_told_by_the_status(well: bool, status: bytes) -> None:
    async def test(speak: Speak) -> None:
        answer = await speak(get("/health"))
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert answer.endswith(b'{"host":3}\n')

    serving(test, health=lambda: (well, {"host": 3}))


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/"), 404),
        (get("/metrics/.."), 404),
        (b"POST /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n", 405),
        (b"GET /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 1\r\n\r\nx", 413),
        (b"GET /metrics\r\n\r\n", 400),
    ],
    ids=["root", "elsewhere", "post", "body", "no version"],
)
def test_anything_else_is_refused(request_bytes: bytes, status: int) -> None:
    async def test(speak: Speak) -> None:
        assert (await speak(request_bytes)).startswith(f"HTTP/1.1 {status} ".encode())

    serving(test)


def test_a_question_for_the_head_alone_has_no_body() -> None:
    async def test(speak: Speak) -> None:
        answer = await speak(get("/metrics").replace(b"GET", b"HEAD"))
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert answer.endswith(b"\r\n\r\n")

    serving(test)


def test_a_defect_is_told_and_the_server_lives_on() -> None:
    def broken() -> str:
        raise ZeroDivisionError("ouch")

    async def test(speak: Speak) -> None:
        assert b"500 Internal Server Error" in await speak(get("/metrics"))
        assert b"200 OK" in await speak(get("/health"))

    serving(test, metrics=broken)
