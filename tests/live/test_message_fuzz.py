"""A holder of the key that speaks nonsense: messages changed at random, in valid frames, to every process.

Such messages may be well-formed and mean something, and then they have their meaning: nobody can tell them
from true ones. But no process may fall over them, for a host stops at an error in a handler.

Not covered: numbers far beyond true ones in the messages of protocols that count. They are refused, or cost a
receiver so much each turn that it takes long to be done with them; that has tests of its own, in
`tests/sim/test_hostile.py`, `tests/hydra/test_far_ahead.py` and `tests/consensus/test_claims.py`.
"""

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest

from ordercast.catalogue import find_protocol, protocol_names
from ordercast.core import Deployment, HostId, NodeId, Order, Plan
from ordercast.net.host.live_host import LiveHost
from ordercast.net.transports.transport import Datagram
from tests.deep import deep_after
from tests.live.live_lab import Lab, lab, run
from tests.live.wires import until

Frame = tuple[HostId, NodeId, tuple[NodeId, ...], bytes]
INJECTED = 6_000
NEAR = 300
ODD = (0, 1, 2, 3, 255, 256, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, -1, -(2**63))


def plan_of(protocol: str) -> Plan:
    found = find_protocol(protocol)
    return found.deploy(Deployment.disjoint(1, 3, 3, colocated=True), found.options())


def tap(live: LiveHost, frames: list[Frame]) -> None:
    """Take down what a host reads."""
    inner = live.wire._read
    assert inner is not None

    def read(host: HostId, source: NodeId, destinations: tuple[NodeId, ...], body: Datagram) -> None:
        frames.append((host, source, destinations, bytes(body)))
        inner(host, source, destinations, body)

    live.wire._read = read


def changed(rng: Random, body: bytes) -> bytes:
    """A message with some bytes, or some values, changed."""
    if rng.random() < 0.3:
        data = bytearray(body)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data[: rng.randrange(1, len(data) + 1)] if rng.random() < 0.2 else data)
    return msgspec.msgpack.encode(altered(rng, msgspec.msgpack.decode(body)))


def far_ahead(value: Any, true: Any) -> bool:
    """Whether an integer in a message is far above the one in its place in a true one."""
    if isinstance(value, list | tuple):
        others = true if isinstance(true, list | tuple) else ()
        places = range(len(value))
        return any(far_ahead(value[at], others[at] if at < len(others) else 0) for at in places)
    return isinstance(value, int) and value > NEAR + (true if isinstance(true, int) else 0)


def altered(rng: Random, value: Any) -> Any:
    """A value with one of its parts replaced by an odd one."""
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        return [altered(rng, part) if number == place else part for number, part in enumerate(value)]
    if isinstance(value, list):
        return rng.choice(([], value + value, value[::-1], value[:-1]))
    if isinstance(value, int):
        return rng.choice((*ODD, value + 1, value - 1, -value)) if rng.random() < 0.9 else value
    if isinstance(value, bytes):
        return rng.choice((b"", rng.randbytes(40), value[:-1], value + b"\0"))
    return rng.choice((None, 0, "", [], value))


@pytest.mark.parametrize("protocol", protocol_names())
@pytest.mark.parametrize("seed", deep_after(1, range(3)))
def test_no_process_falls_over_a_message_that_no_correct_peer_sends(protocol: str, seed: int) -> None:
    async def main() -> None:
        made, frames = Lab(plan_of(protocol)), list[Frame]()
        async with lab(made):
            for live in made.hosts.values():
                tap(live, frames)
            for number in range(60):
                for sender in made.plan.senders:
                    made.submit(sender, b"message %d" % number)
                await asyncio.sleep(0.002)
            await until(lambda: len(frames) > 100)
            await asyncio.sleep(0.2)
            true, rng = list(frames), Random(seed)
            counts = made.plan.guarantees.order is not Order.NONE
            injected = inject(made, true, rng, counts=counts)
            await until(lambda: made.count("malformed") > INJECTED // 10 or made.failures() != [])
            await asyncio.sleep(0.2)  # for what may come of it
            assert made.failures() == []
            assert injected > INJECTED // 3
            assert made.count("handler_errors") == 0

    run(main())


def is_far_ahead(bad: bytes, body: bytes) -> bool:
    """The same of bytes, which may be no message at all."""
    try:
        return far_ahead(msgspec.msgpack.decode(bad), msgspec.msgpack.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
        return False


def inject(made: Lab, true: list[Frame], rng: Random, *, counts: bool) -> int:
    """Hand changed messages to the hosts that they are for; how many that were."""
    injected = 0
    for number in range(INJECTED):
        host, source, destinations, body = rng.choice(true)
        bad = changed(rng, body)
        if counts and is_far_ahead(bad, body):
            continue
        for target in {made.plan.nodes[node].host for node in destinations} - {host}:
            made.hosts[target]._nodes.on_frame(host, source, destinations, bad)
            if number % 50 == 0:
                made.hosts[target].end_turn()
            failure = made.hosts[target].failure
            if failure is not None:
                raise AssertionError(f"{made.plan.codec.decode(bad)} of node {source}") from failure
        injected += 1
    return injected
