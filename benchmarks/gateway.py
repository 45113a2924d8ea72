"""The gateway on this machine: requests a second, against a bare echo by HTTP in the same run.

Some connections each send a request with a value of 64 bytes, and the next one when it is answered. Servers
take turns in each round, each a process of its own, all on loopback and without TLS:

bare       gives back each body without looking at the rest of the request: what Python's sockets allow
server     the strict HTTP server that the gateway stands on, giving back each body
PROTOCOL   `ordercast gateway` to the service `echo` with three replicas (`unreplicated`: one server), which
           checks the token and the arguments, and calls an operation for each request; with `keyed`, each
           request has an Idempotency-Key of its own

Every answer is compared with what was sent. The program that sends takes time of the same cores.

python -m benchmarks.gateway [--connections N] [--seconds S] [--rounds N] [--json]
"""

import argparse
import asyncio
import base64
import itertools
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ordercast.net.http.request import HttpHead, HttpRequest
from ordercast.net.http.response import HttpResponse, text_response
from ordercast.net.http.server import HttpLimits, HttpServer
from ordercast.net.transports.address import Address, free_ports

VALUE_BYTES = 64
PROTOCOLS = ("unreplicated", "hydra_paxos", "llft")
BARE, SERVER, KEYED = "bare", "server", "hydra_paxos, keyed"
WARM_UP_S = 0.5


class Served(NamedTuple):
    """A server that runs: where, and what its clients send besides."""

    port: int
    path: str = "/"
    token: str = ""
    keyed: bool = False


class Figures(NamedTuple):
    """What one server did in one round."""

    per_s: float
    p50_us: float
    p99_us: float


class Bare(asyncio.Protocol):
    """Gives back bodies; a request is what ends with a body of the length that the first one had."""

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        length = int(head.rpartition(b"Content-Length: ")[2]) if end else 0
        if end and len(body) >= length:
            self._buffer = body[length:]
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length + body[:length])


class EchoSite:
    """Gives back bodies."""

    def screen(self, head: HttpHead) -> HttpResponse | None:
        return None

    async def answer(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, request.body)

    def malformed(self, status: int, text: str) -> HttpResponse:
        return text_response(status, text)


def serve_bare(port: int) -> None:
    """Serve for ever."""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(main())


def serve_site(port: int) -> None:
    """Serve for ever."""

    async def main() -> None:
        limits = HttpLimits(connections=1024, body_bytes_max=1 << 20)
        await HttpServer(Address("127.0.0.1", port), EchoSite(), limits).start()
        await asyncio.Event().wait()

    asyncio.run(main())


@contextmanager
def echo(serve: Callable[[int], None]) -> Iterator[Served]:
    """An echo in a process of its own."""
    (port,) = free_ports(1)
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(port,), daemon=True)
    process.start()
    try:
        yield Served(port)
    finally:
        process.kill()
        process.join()


@contextmanager
def gateway(protocol: str, connections: int, *, keyed: bool = False) -> Iterator[Served]:
    """A cluster of processes, and a gateway to it."""
    command = (sys.executable, "-m", "ordercast.cli")
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as exits:

        def run(*words: str) -> None:
            subprocess.run([*command, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        replicas = "1" if protocol == "unreplicated" else "3"
        first = str(_free_range(16))
        run("cluster", "init", "--service", "echo", "--protocol", protocol, "--replicas", replicas,
            "--clients", "1", "--port", first)  # fmt: skip
        exits.callback(run, "cluster", "down", "--settle", "0")
        run("cluster", "up")
        words = ("gateway", "--address", f"127.0.0.1:{port}", "--connections", str(2 * connections))
        process = subprocess.Popen(
            [*command, *words, "--keys", "10000000"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        exits.callback(process.wait)
        exits.callback(process.terminate)
        assert process.stdout is not None and process.stdout.readline()
        token = Path(folder, "gateway.token").read_text().splitlines()[-1]
        yield Served(port, "/v1/all/echo", token, keyed)


def _free_range(count: int) -> int:
    """The first of so many free ports in a row."""
    while (ports := free_ports(count))[-1] != ports[0] + count - 1:
        pass
    return ports[0]


class Sender:
    """One connection, which sends a request and waits for its answer, again and again."""

    def __init__(self, served: Served, name: int) -> None:
        self._served = served
        self._name = name
        self._numbers = itertools.count()
        self.took_ns: list[int] = []

    async def send(self, until: float) -> None:
        """Send until a time of the clock `perf_counter`; `AssertionError` if an answer is wrong."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._served.port)
        while time.perf_counter() < until:
            request, value = self._request()
            start = time.perf_counter_ns()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
            content = await reader.readexactly(length)
            self.took_ns.append(time.perf_counter_ns() - start)
            assert head.startswith(b"HTTP/1.1 200 ") and value in content, (head, content)
        writer.close()

    def _request(self) -> tuple[bytes, bytes]:
        """The next request, and what its answer must have."""
        number = next(self._numbers)
        value = base64.b64encode(f"{self._name}-{number}".ljust(VALUE_BYTES * 3 // 4).encode())
        body = b'["%s"]' % value
        lines = [f"POST {self._served.path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
        lines += [f"Authorization: Bearer {self._served.token}"] if self._served.token else []
        lines += [f"Idempotency-Key: {self._name}-{number}-{id(self)}"] if self._served.keyed else []
        lines += [f"Content-Length: {len(body)}", "", ""]
        return "\r\n".join(lines).encode() + body, value


def measure(served: Served, connections: int, seconds: float) -> Figures:
    """Send through all connections for a time."""

    async def send(for_s: float) -> list[int]:
        senders = [Sender(served, name) for name in range(connections)]
        until = time.perf_counter() + for_s
        await asyncio.gather(*(sender.send(until) for sender in senders))
        return sorted(took for sender in senders for took in sender.took_ns)

    asyncio.run(_when_it_listens(served.port))
    asyncio.run(send(WARM_UP_S))
    start = time.perf_counter()
    took = asyncio.run(send(seconds))
    per_s = len(took) / (time.perf_counter() - start)
    return Figures(per_s, took[len(took) // 2] / 1e3, took[len(took) * 99 // 100] / 1e3)


async def _when_it_listens(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return


def main() -> None:
    """Measure all servers in turns, and print the medians of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    servers: dict[str, Callable[[], AbstractContextManager[Served]]] = {
        BARE: partial(echo, serve_bare),
        SERVER: partial(echo, serve_site),
        **{name: partial(gateway, name, wanted.connections) for name in PROTOCOLS},
        KEYED: partial(gateway, "hydra_paxos", wanted.connections, keyed=True),
    }
    found: dict[str, list[Figures]] = {name: [] for name in servers}
    for _round, (name, server) in itertools.product(range(wanted.rounds), servers.items()):
        with server() as served:
            found[name].append(measure(served, wanted.connections, wanted.seconds))
    rows = {
        name: Figures(*(median(column) for column in zip(*figures, strict=True)))
        for name, figures in found.items()
    }
    if wanted.json:
        print(json.dumps({name: row._asdict() for name, row in rows.items()}, indent=2))
        return
    for name, row in rows.items():
        share = row.per_s / rows[BARE].per_s
        times = f"p50 {row.p50_us:7,.0f} us  p99 {row.p99_us:7,.0f} us"
        print(f"{name:20} {row.per_s:8,.0f}/s {share:5.2f} of bare  {times}")


if __name__ == "__main__":
    main()
