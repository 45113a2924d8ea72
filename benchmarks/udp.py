"""Datagrams a second from one process to another over loopback, with the kernel's offload and without.

Both sides are the transport that live hosts use, in its event loop, without seals and protocols. The sender
keeps a bounded number of datagrams under way, and the receiver says how many came, so none is lost and the
speed is that of the slower side. With and without take turns; speeds are those of the best round, the ratio
is the median of the rounds: machines are noisy.

    python -m benchmarks.udp [--datagrams N] [--bytes N] [--rounds N] [--json]
"""

import argparse
import asyncio
import json
import multiprocessing
import socket
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from statistics import median

from ordercast.net.transports.address import Address
from ordercast.net.transports.transport import Datagram
from ordercast.net.transports.udp import UdpTransport

UNDER_WAY = 512
BURST = 64
"""Sent in a turn of the sender, and told in one word of the receiver."""
BUFFER_BYTES = 4 << 20
SECONDS_MAX = 60


def free_addresses() -> dict[int, Address]:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two,
    ):
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return {host: Address("127.0.0.1", sock.getsockname()[1]) for host, sock in ((0, one), (1, two))}


async def receive_all(transport: UdpTransport, datagrams: int, ready: Connection) -> None:
    """Count what comes and tell the sender, until all came."""
    count, told = 0, 0
    done = asyncio.Event()

    def receive(datagram: Datagram) -> None:
        nonlocal count
        count += 1

    def drained() -> None:
        nonlocal told
        if count - told >= BURST or count == datagrams:
            told = count
            transport.send(0, count.to_bytes(8, "little"))
            transport.flush()
        if count >= datagrams:
            done.set()

    await transport.start(receive, drained)
    ready.send(True)
    async with asyncio.timeout(SECONDS_MAX):
        await done.wait()
    await transport.close()


async def send_all(transport: UdpTransport, datagrams: int, size: int) -> float:
    """Send them, and return how many seconds it took until the receiver had them all."""
    acknowledged = 0
    heard = asyncio.Event()

    def receive(datagram: Datagram) -> None:
        nonlocal acknowledged
        acknowledged = max(acknowledged, int.from_bytes(datagram, "little"))

    await transport.start(receive, heard.set)
    payload, sent, begin = bytes(size), 0, time.perf_counter()
    async with asyncio.timeout(SECONDS_MAX):
        while acknowledged < datagrams:
            heard.clear()
            while sent < datagrams and sent - acknowledged + BURST <= UNDER_WAY:
                for _ in range(min(BURST, datagrams - sent)):
                    transport.send(1, payload)
                    sent += 1
                transport.flush()
            await heard.wait()
    seconds = time.perf_counter() - begin
    await transport.close()
    return seconds


def receiver(
    addresses: dict[int, Address], datagrams: int, size: int, offload: bool, ready: Connection
) -> None:
    transport = UdpTransport(1, addresses, size, BUFFER_BYTES, offload=offload)
    asyncio.run(receive_all(transport, datagrams, ready))


def measure(datagrams: int, size: int, offload: bool) -> float:
    """Datagrams a second."""
    context = multiprocessing.get_context("spawn")
    addresses = free_addresses()
    here, there = context.Pipe()
    process = context.Process(target=receiver, args=(addresses, datagrams, size, offload, there), daemon=True)
    process.start()
    try:
        if not here.poll(SECONDS_MAX):
            raise TimeoutError("the receiver did not start")
        transport = UdpTransport(0, addresses, size, BUFFER_BYTES, offload=offload)
        return datagrams / asyncio.run(send_all(transport, datagrams, size))
    finally:
        process.join(5)
        if process.is_alive():
            process.kill()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--datagrams", type=int, default=200_000)
    parser.add_argument("--bytes", type=int, default=1_400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    pairs = [
        (
            measure(options.datagrams, options.bytes, offload=True),
            measure(options.datagrams, options.bytes, offload=False),
        )
        for _ in range(options.rounds)
    ]
    result = {
        "with_offload": round(max(with_it for with_it, _ in pairs)),
        "without": round(max(without for _, without in pairs)),
        "ratio": round(median(with_it / without for with_it, without in pairs), 2),
    }
    if options.json:
        print(json.dumps(result))
        return
    print(
        f"datagrams of {options.bytes} bytes a second, {options.datagrams} of them, {options.rounds} rounds"
    )
    print(f"  with offload     {result['with_offload']:>10,}")
    print(f"  without          {result['without']:>10,}")
    print(f"  ratio (median)   {result['ratio']:>10}")


if __name__ == "__main__":
    main()
