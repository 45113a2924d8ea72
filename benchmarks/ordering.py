"""What order costs a receiver, beyond its packets: Hydra and atomic multicast against a bare receiver.

One group of three receivers on the testbed of Hydra's evaluation, with closed-loop clients at saturation, is
simulated, and all that its busiest receiver is told is recorded: messages and timers, with its clock. Then
the same process takes the recorded events again, as fast as it can and without a network: its effects go
nowhere.
The bare receiver is that of unordered multicast, which delivers what comes.

A packet is what the bare receiver needs for one: taking it from a UDP socket, decoding and handling it. Order
is what a receiver needs for a delivered message beyond the handling of as many packets by the bare one. The
testbed charges it as that many packets of its own (`ordercast.experiments.hydra.calibration`). Times are CPU
times, and the best of several rounds counts: machines are noisy.

    python -m benchmarks.ordering [--messages N] [--rounds N] [--json]
"""

import argparse
import gc
import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from benchmarks.hydra import ListEnv
from ordercast.core import Env, Explanation, Message, Nanos, NodeId, Plan, Process
from ordercast.experiments.hydra.bench import count
from ordercast.experiments.hydra.testbed import ATOMIC, HYDRA, UNORDERED, hydra_options, microbenchmark
from ordercast.scenario.spec import Scenario
from ordercast.sim.build import build_world
from ordercast.sim.world import World

SYSTEMS = (UNORDERED, HYDRA, ATOMIC)
CLIENTS = 64
"""More than any of the three needs to be saturated."""
SEED = 1
BURST, BUFFER_BYTES = 100, 2_048


@dataclass
class Tape:
    """All that one process was told, in order: its clock, and the name of a timer or a packet."""

    events: list[tuple[Nanos, str, NodeId, Message | None]] = field(default_factory=list)
    deliveries: int = 0

    @property
    def packets(self) -> list[Message]:
        """The packets alone."""
        return [message for _, _, _, message in self.events if message is not None]


class Recorded(Process):
    """A process whose events are recorded."""

    def __init__(self, env: Env, inner: Process, tape: Tape) -> None:
        super().__init__(env)
        self._inner = inner
        self._tape = tape

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Start."""
        self._inner.on_start(saved)

    def on_message(self, source: NodeId, message: Message) -> None:
        """Record it, and pass it on."""
        self._tape.events.append((self.env.now, "", source, message))
        self._inner.on_message(source, message)

    def on_timer(self, name: str) -> None:
        """Record it, and pass it on."""
        self._tape.events.append((self.env.now, name, -1, None))
        self._inner.on_timer(name)

    def explain(self) -> Explanation:
        """What the process says."""
        return self._inner.explain()


def scenario_of(system: str) -> Scenario:
    """One group of three at saturation; Hydra as in Figure 2a."""
    options: dict[str, Any] = hydra_options(flush="solicited", flush_ns=0) if system == HYDRA else {}
    return microbenchmark(system, clients=CLIENTS, seed=SEED, options=options)


def record(system: str, messages: int) -> tuple[Plan, NodeId, Tape]:
    """Simulate, and return the tape of the receiver that was told most."""
    scenario = scenario_of(system)
    plan = scenario.plan()
    tapes = {node: Tape() for node in plan.groups[0]}
    nodes = tuple(
        replace(node, factory=_recording(node.factory, tapes[node.id])) if node.id in tapes else node
        for node in plan.nodes
    )
    world = build_world(scenario, replace(plan, nodes=nodes))
    _observe(world, tapes)
    world.run(20_000_000)  # leaders are elected and sequencers have their numbers
    count(scenario, world, clients=CLIENTS, messages=messages)
    busiest = max(tapes, key=lambda node: len(tapes[node].events))
    return plan, busiest, tapes[busiest]


def _recording(factory: Callable[[Env], Process], tape: Tape) -> Callable[[Env], Process]:
    return lambda env: Recorded(env, factory(env), tape)


def _observe(world: World, tapes: Mapping[NodeId, Tape]) -> None:
    def on_delivery(node: NodeId, message: object, groups: object) -> None:
        tapes[node].deliveries += 1

    world.observers.append(on_delivery)


def play(plan: Plan, node: NodeId, tape: Tape) -> float:
    """Seconds that the process needs for its tape."""
    env = ListEnv()
    env.me, env.rng = node, Random(f"{SEED}/node/{node}")
    process = plan.nodes[node].factory(env)
    process.on_start({})
    start = time.process_time()
    for now, timer, source, message in tape.events:
        env.now = now
        if message is None:
            process.on_timer(timer)
        else:
            process.on_message(source, message)
    took = time.process_time() - start
    if len(env.delivered) != tape.deliveries:
        raise SystemExit(f"it delivered {len(env.delivered)} messages, and {tape.deliveries} when recorded")
    return took


def take(packets: list[bytes]) -> float:
    """Seconds to take packets from a socket of this machine, sent in bursts that its buffer holds."""
    took = 0.0
    with socket.socket(type=socket.SOCK_DGRAM) as inward, socket.socket(type=socket.SOCK_DGRAM) as outward:
        inward.bind(("127.0.0.1", 0))
        outward.connect(inward.getsockname())
        for first in range(0, len(packets), BURST):
            burst = packets[first : first + BURST]
            for packet in burst:
                outward.send(packet)
            start = time.process_time()
            for _ in burst:
                inward.recv(BUFFER_BYTES)
            took += time.process_time() - start
    return took


def decode(plan: Plan, packets: list[bytes]) -> float:
    """Seconds to decode packets."""
    start = time.process_time()
    for packet in packets:
        plan.codec.decode(packet)
    return time.process_time() - start


def best(rounds: int, work: Callable[[], float]) -> float:
    """The shortest time of several rounds, without the garbage collector."""
    times = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        times.append(work())
        gc.enable()
    return min(times)


def measure(messages: int, rounds: int) -> dict[str, dict[str, float]]:
    """For each system the packets and the handling of a delivered message, and its order in packets."""
    taped = {system: record(system, messages) for system in SYSTEMS}
    played = {
        system: best(rounds, lambda: play(plan, node, tape)) / tape.deliveries * 1e9  # noqa: B023
        for system, (plan, node, tape) in taped.items()
    }
    packets = {system: len(tape.packets) / tape.deliveries for system, (_, _, tape) in taped.items()}
    bare, handling = taped[UNORDERED], played[UNORDERED] / packets[UNORDERED]
    encoded = [bare[0].codec.encode(message) for message in bare[2].packets]
    taking = best(rounds, lambda: take(encoded)) / len(encoded) * 1e9
    decoding = best(rounds, lambda: decode(bare[0], encoded)) / len(encoded) * 1e9
    packet = taking + decoding + handling
    return {
        system: {
            "packets_a_message": round(packets[system], 3),
            "handling_ns_a_message": round(took),
            "bare_packet_ns": round(packet),
            "order_in_packets": round((took - packets[system] * handling) / packet, 2),
        }
        for system, took in played.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    table = measure(arguments.messages, arguments.rounds)
    if arguments.json:
        print(json.dumps(table, indent=2))
        return
    print("receiver of        packets a message  handling (ns)  a bare packet (ns)  order (packets)")
    for system, row in table.items():
        print(
            f"{system:<17}  {row['packets_a_message']:>17}  {row['handling_ns_a_message']:>13}"
            f"  {row['bare_packet_ns']:>18}  {row['order_in_packets']:>15}"
        )


if __name__ == "__main__":
    main()
