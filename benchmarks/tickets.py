"""What protocols that order by tickets send for a message, by the size of the group.

Ten members send a message of 100 bytes every 5 ms each; the others only receive. Packets take 10 ms. With
`hybrid` the ten stay active, and the others become passive. `static_hybrid` has two active members, which
divide the others among them. Traffic is counted for 100 ms when nothing changes any more. Packets are counted
one a copy; bytes are those of the encoded protocol messages. Hosts need no time, so results do not depend on
the machine. 200 members take some minutes.

    python -m benchmarks.tickets [--members 10 50 200] [--protocols hybrid] [--json]
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ordercast.components.membership.messages import Beat, Data
from ordercast.components.ticketing.messages import (
    ENVELOPES,
    DataMessage,
    Echo,
    Envelope,
    Probe,
    Progress,
    Tickets,
)
from ordercast.core import MILLISECOND, Message, Nanos, NodeId
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.spec import ConstantSpec, NetworkSpec, Scenario
from ordercast.sim.build import build_world
from ordercast.sim.world import World

PROTOCOLS = ("token_site", "symmetric", "static_hybrid", "hybrid")
KINDS = ("data", "tickets alone", "clocks alone", "heartbeats", "progress", "probes", "other")
SENDERS = 10
PAYLOAD = bytes(100)
DELAY_MS, INTERVAL_MS, COUNTED_MS = 10, 5, 100
STEADY_MS = 200
"""When all roles are found and all that was sent before is delivered."""
DRAIN_MS = 60
"""How long it takes until the last message is delivered."""
DIRECT = {Beat: "heartbeats", Progress: "progress", Probe: "probes", Echo: "probes"}


class Ledger:
    """Packets, bytes and tickets by kind."""

    def __init__(self, world: World) -> None:
        self.packets: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.tickets: Counter[str] = Counter()
        """Tickets in the envelopes of a kind, one a multicast."""
        self._transmit, self._codec = world.transmit, world.plan.codec
        self._last: dict[NodeId, tuple[Message, str, int]] = {}
        world.transmit = self._count  # type: ignore[method-assign]

    def _count(self, env: Any, departure: Nanos, to: NodeId, message: Message) -> None:
        last = self._last.get(env.me)
        if last is None or last[0] is not message:  # copies of one multicast follow each other
            last = self._last[env.me] = (message, self._enter(message), len(self._codec.encode(message)))
        self.packets[last[1]] += to != env.me
        self.bytes[last[1]] += last[2] if to != env.me else 0
        self._transmit(env, departure, to, message)

    def _enter(self, message: Message) -> str:
        """The kind of a message; enter its tickets."""
        if not isinstance(message, Data):
            return DIRECT.get(type(message), "other")
        envelope = ENVELOPES.decode(message.payload)
        assert isinstance(envelope, Envelope)
        kind = kind_of(envelope)
        self.tickets[kind] += len(envelope.header.tickets)
        return kind

    def clear(self) -> None:
        """Forget what was counted."""
        for counter in (self.packets, self.bytes, self.tickets):
            counter.clear()


def kind_of(envelope: Envelope) -> str:
    """What an envelope was sent for."""
    if isinstance(envelope, DataMessage):
        return "data"
    if isinstance(envelope, Tickets):
        return "tickets alone" if envelope.header.tickets else "clocks alone"
    return "other"


def options_of(protocol: str, members: int) -> dict[str, Any]:
    """The timeouts of live clusters, except that members that adapt find their roles at once."""
    views = {"heartbeat_ns": 100 * MILLISECOND, "suspect_ns": 1500 * MILLISECOND}
    options: dict[str, Any] = {"silence_ns": 5 * MILLISECOND, "samples": 1, "views": views}
    if protocol == "static_hybrid":
        options |= {"active": [0, 1], "sequencers": {node: node % 2 for node in range(2, members)}}
    return options


def measure(protocol: str, members: int, counted_ms: int = COUNTED_MS) -> dict[str, Any]:
    """The traffic of a protocol in a group of so many members."""
    scenario = Scenario(
        protocol=protocol,
        receivers=members,
        senders=members,
        colocated=True,
        options=options_of(protocol, members),
        cpu=Cpu(receive_ns=0, send_ns=0),
        network=NetworkSpec(latency=ConstantSpec(DELAY_MS * 1000)),
    )
    world = build_world(scenario, scenario.plan())
    ledger = Ledger(world)
    _load(world, 0, STEADY_MS)
    ledger.clear()
    before = world.submitted
    _load(world, STEADY_MS, STEADY_MS + counted_ms)
    found = _account(world, ledger, world.submitted - before)
    world.run((STEADY_MS + counted_ms + DRAIN_MS) * MILLISECOND)
    assert world.delivered == world.submitted * members, "every member delivers every message"
    return found


def _load(world: World, begin_ms: int, end_ms: int) -> None:
    """Let members send from one time to another, in turn."""
    step = INTERVAL_MS * MILLISECOND // SENDERS
    for number in range(begin_ms * SENDERS // INTERVAL_MS, end_ms * SENDERS // INTERVAL_MS):
        world.run(number * step)
        world.submit(number % SENDERS, (0,), PAYLOAD)
    world.run(end_ms * MILLISECOND - 1)


def _account(world: World, ledger: Ledger, messages: int) -> dict[str, Any]:
    members = len(world.plan.nodes)
    active = world.envs[0].process.ordering.configuration.actives  # type: ignore[attr-defined]
    return {
        "protocol": world.plan.protocol,
        "members": members,
        "active": len(active),
        "messages": messages,
        "tickets": {kind: ledger.tickets[kind] / messages for kind in KINDS if ledger.tickets[kind]},
        "per_multicast": _each(ledger, messages),
        "per_delivery": _each(ledger, messages * members),
    }


def _each(ledger: Ledger, times: int) -> dict[str, dict[str, float]]:
    """Packets and bytes of each kind, divided."""
    counted = {kind: (ledger.packets[kind], ledger.bytes[kind]) for kind in KINDS if ledger.packets[kind]}
    counted["all"] = (ledger.packets.total(), ledger.bytes.total())
    return {
        kind: {"packets": packets / times, "bytes": sizes / times}
        for kind, (packets, sizes) in counted.items()
    }


def _show(found: dict[str, Any]) -> None:
    """Print one measurement."""
    tickets = ", ".join(f"{count:.2f} in {kind}" for kind, count in found["tickets"].items())
    print(f"{found['protocol']}, {found['members']} members, {found['active']} active; tickets: {tickets}")
    for kind, each in found["per_multicast"].items():
        one = found["per_delivery"][kind]
        print(
            f"  {kind:14} a message: {each['packets']:10,.1f} packets {each['bytes']:14,.0f} bytes;"
            f" a delivery: {one['packets']:8,.2f} packets {one['bytes']:10,.0f} bytes"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--members", type=int, nargs="+", default=[10, 50, 200])
    parser.add_argument("--protocols", nargs="+", default=PROTOCOLS, choices=PROTOCOLS)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    found = [measure(protocol, size) for size in chosen.members for protocol in chosen.protocols]
    if chosen.json:
        print(json.dumps(found, indent=1))
        return
    for one in found:
        _show(one)


if __name__ == "__main__":
    main()
