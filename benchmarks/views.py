"""What view-synchronous multicast sends, by the size of the group: for a message and for a change of view.

One of the members sends 100 messages of 100 bytes while nothing fails. Then the last member crashes, is
excluded, and comes back as a new one. Packets are counted one a copy; bytes are those of the encoded protocol
messages. Time is simulated, with a delay of 1 ms and hosts that need no time, so results do not depend
on the machine.

    python -m benchmarks.views [--members 3 10 50 200] [--json]
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ordercast.components.membership.messages import BeginChange
from ordercast.core import MILLISECOND, Message, Nanos, NodeId, Notice
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.spec import ConstantSpec, NetworkSpec, Scenario
from ordercast.sim.build import build_world
from ordercast.sim.world import World

MESSAGES = 100
PAYLOAD = bytes(100)
CRASH_MS, RESTART_MS, END_MS = 100, 300, 400


class Count:
    """Packets and bytes by type of message, from one time to another."""

    def __init__(self, world: World) -> None:
        self.packets: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.began: Nanos = 0
        """When the last change of the view began."""
        self.installed: Nanos = 0
        """When the last member installed a view."""
        self._world = world
        self._transmit, self._on_notice = world.transmit, world.on_notice
        self._codec = world.plan.codec
        self._sizes: dict[int, tuple[Message, int]] = {}
        world.transmit = self._count  # type: ignore[method-assign]
        world.on_notice = self._note  # type: ignore[method-assign]

    def _note(self, env: Any, notice: Notice) -> None:
        self.installed = self._world.now
        self._on_notice(env, notice)

    def _count(self, env: Any, departure: Nanos, to: NodeId, message: Message) -> None:
        name = type(message).__name__
        if isinstance(message, BeginChange):
            self.began = self._world.now
        known = self._sizes.get(env.me)
        if known is None or known[0] is not message:  # copies of one multicast follow each other
            known = self._sizes[env.me] = (message, len(self._codec.encode(message)))
        self.packets[name] += to != env.me
        self.bytes[name] += known[1] if to != env.me else 0
        self._transmit(env, departure, to, message)

    def take(self) -> tuple[Counter[str], Counter[str]]:
        """What was counted since the last call."""
        taken = self.packets, self.bytes
        self.packets, self.bytes = Counter(), Counter()
        return taken


def measure(members: int) -> dict[str, Any]:
    """The costs in a group of so many members."""
    scenario = Scenario(
        protocol="view_synchronous",
        receivers=members,
        senders=1,
        colocated=True,
        cpu=Cpu(receive_ns=0, send_ns=0),
        network=NetworkSpec(latency=ConstantSpec(1000)),
    )
    world = build_world(scenario, scenario.plan())
    count = Count(world)
    world.run(0)
    for number in range(MESSAGES):
        world.run(number * MILLISECOND // 2)
        world.submit(0, (0,), PAYLOAD)
    world.run((CRASH_MS - 1) * MILLISECOND)
    calm = count.take()
    changes = [_change(world, count, at_ms) for at_ms in (CRASH_MS, RESTART_MS)]
    return {
        "members": members,
        "message": _each(calm, "Data", MESSAGES),
        "heartbeat": _each(calm, "Beat", calm[0]["Beat"]),
        "exclusion": changes[0],
        "return": changes[1],
    }


def _each(counted: tuple[Counter[str], Counter[str]], name: str, times: int) -> dict[str, float]:
    packets, sizes = counted
    return {"packets": packets[name] / times, "bytes": sizes[name] / times}


def _change(world: World, count: Count, at_ms: int) -> dict[str, Any]:
    """Let a member fail or come back at a time: what the change of the view takes."""
    host = world.plan.nodes[-1].host
    world.run(at_ms * MILLISECOND)
    count.take()
    if at_ms == CRASH_MS:
        world.crash(host)
    else:
        world.restart(host)
    world.run((RESTART_MS if at_ms == CRASH_MS else END_MS) * MILLISECOND - 1)
    packets, sizes = count.take()
    return {
        "packets": sum(packets.values()) - packets["Beat"],
        "bytes": sum(sizes.values()) - sizes["Beat"],
        "noticed_ms": count.began / MILLISECOND - at_ms,
        "changed_ms": (count.installed - count.began) / MILLISECOND,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--members", type=int, nargs="+", default=[3, 10, 50, 200])
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    found = [measure(members) for members in chosen.members]
    if chosen.json:
        print(json.dumps(found, indent=1))
        return
    for one in found:
        print(one)


if __name__ == "__main__":
    main()
