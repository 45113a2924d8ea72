"""Messages delivered a second through the whole simulator, against the same model written in SimPy.

The model: senders with quasi-periodic arrivals multicast 64-byte messages to the receivers of one group;
a packet takes a random delay, costs CPU time on its way out and on its way in, and waits while the CPU
is busy; the receiver's handler recognises duplicates; every submission and delivery leaves a row in the
trace. Both sides run the same protocol code (`unordered`), so the ratio is that of the engines. They
take turns; speeds are those of the best round, the ratio is the median of the rounds: machines are noisy.

    python -m benchmarks.simulator [--messages N] [--receivers N] [--senders N] [--rounds N] [--json]
"""

import argparse
import gc
import json
import time
from collections.abc import Callable, Generator, Sequence
from random import Random
from statistics import median
from typing import Any
from zlib import crc32

import simpy

from ordercast.catalogue import find_protocol
from ordercast.core import (
    Delivered,
    Delivery,
    Deployment,
    Env,
    Groups,
    Member,
    Message,
    Nanos,
    NodeId,
    Plan,
    Process,
    message_id,
)
from ordercast.core.bundle import Item, pack, unpack
from ordercast.scenario.arrivals import QuasiPeriodic
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.destinations import Destinations
from ordercast.sim.latency import Uniform
from ordercast.sim.network import LatencyNetwork
from ordercast.sim.workload import OpenLoop
from ordercast.sim.world import World
from ordercast.trace import Kind

RECEIVE_NS, SEND_NS = 1_000, 1_000
LOW_NS, HIGH_NS = 20_000, 80_000
INTERVAL_NS = 20_000
PAYLOAD_BYTES = 64


def plan_for(receivers: int, senders: int) -> Plan:
    """The plan that both sides run."""
    protocol = find_protocol("unordered")
    return protocol.deploy(Deployment.disjoint(1, receivers, senders), protocol.options())


def run_ordercast(plan: Plan, messages: int) -> int:
    """The model on our simulator; returns the number of deliveries."""
    world = World(
        plan,
        1,
        lambda scheduler, rng: LatencyNetwork(scheduler, rng, Conditions(), Uniform(LOW_NS, HIGH_NS)),
        cpu=Cpu(receive_ns=RECEIVE_NS, send_ns=SEND_NS),
    )
    arrivals = [QuasiPeriodic(INTERVAL_NS) for _ in plan.senders]
    OpenLoop(world, Destinations([0]), messages, PAYLOAD_BYTES, arrivals).start()
    while world.scheduler.pending:
        world.run(world.now + 10_000_000)
    return world.delivered


class SimPyEnv(Env):
    """The driver of one process in SimPy: a store for each direction, and a process that serves it."""

    def __init__(self, model: "SimPyModel", node: NodeId) -> None:
        self.model = model
        self.me = node
        self.rng = Random(f"1/node/{node}")
        self.inbox = simpy.Store(model.simpy)
        self.outbox = simpy.Store(model.simpy)
        self.process: Process

    @property
    def now(self) -> Nanos:  # type: ignore[override]
        """Virtual time."""
        return int(self.model.simpy.now)

    def send(self, to: NodeId, message: Message) -> None:
        """Queue for the CPU."""
        self.outbox.put(((to,), message))

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Queue for the CPU, once."""
        self.outbox.put((to, message))

    def set_timer(self, name: str, after: Nanos) -> None:
        """Not used by this protocol."""

    def cancel_timer(self, name: str) -> None:
        """Not used by this protocol."""

    def save(self, name: str, state: bytes | None) -> None:
        """Not used by this protocol."""

    def deliver(self, delivery: Delivery) -> None:
        """Keep the row that our simulator keeps."""
        assert isinstance(delivery, Delivered)
        for message, submitted, payload in unpack(delivery.payload):
            self.model.rows.append(
                (
                    self.now, self.now, self.me, Kind.DELIVER, message, delivery.groups, None,
                    submitted, None, None, delivery.config, None, None, len(payload),
                    crc32(payload), None,
                )
            )  # fmt: skip

    def serve_out(self) -> Generator[simpy.Event, Any, None]:
        """Each packet takes CPU time and then sets out."""
        while True:
            targets, message = yield self.outbox.get()
            yield self.model.simpy.timeout(SEND_NS)
            for target in targets:
                self.model.simpy.process(self.model.carry(self.me, target, message))

    def serve_in(self) -> Generator[simpy.Event, Any, None]:
        """Each packet takes CPU time and is then handled."""
        while True:
            source, message = yield self.inbox.get()
            yield self.model.simpy.timeout(RECEIVE_NS)
            self.process.on_message(source, message)


class SimPyModel:
    """The same model with SimPy's processes, stores and timeouts."""

    def __init__(self, plan: Plan, messages: int) -> None:
        self.simpy = simpy.Environment()
        self.rows: list[tuple[object, ...]] = []
        self.rng = Random("1/network")
        self.remaining = messages
        self.count = 0
        self.envs = [SimPyEnv(self, node.id) for node in plan.nodes]
        for env, node in zip(self.envs, plan.nodes, strict=True):
            env.process = node.factory(env)
            env.process.on_start({})
            self.simpy.process(env.serve_in())
            self.simpy.process(env.serve_out())
        for sender in plan.senders:
            self.simpy.process(self.source(self.envs[sender]))

    def carry(self, source: NodeId, target: NodeId, message: Message) -> Generator[simpy.Event, Any, None]:
        """A packet on its way."""
        yield self.simpy.timeout(LOW_NS + int(self.rng.random() * (HIGH_NS - LOW_NS + 1)))
        yield self.envs[target].inbox.put((source, message))

    def source(self, env: SimPyEnv) -> Generator[simpy.Event, Any, None]:
        """A sender's application."""
        rng = Random(f"1/workload/{env.me}")
        destinations = Destinations([0])
        member = env.process
        assert isinstance(member, Member)
        filler, number = bytes(PAYLOAD_BYTES - 8), 0
        while self.remaining > 0:
            yield self.simpy.timeout(max(0, int(rng.gauss(INTERVAL_NS, INTERVAL_NS * 0.01))))
            if self.remaining <= 0:
                return
            self.remaining -= 1
            self.count += 1
            groups: Groups = destinations.choose(rng)
            payload = self.count.to_bytes(8, "little") + filler
            message = message_id(env.me, number)
            number += 1
            self.rows.append(
                (
                    env.now, env.now, env.me, Kind.SUBMIT, message, groups, None, env.now, None,
                    None, None, None, None, len(payload), crc32(payload), None,
                )
            )  # fmt: skip
            member.submit(groups, pack([Item(message, env.now, payload)]))


def run_simpy(plan: Plan, messages: int) -> int:
    """The model on SimPy; returns the number of deliveries."""
    model = SimPyModel(plan, messages)
    model.simpy.run()
    return sum(row[3] is Kind.DELIVER for row in model.rows)


def measure(run: Callable[[Plan, int], int], plan: Plan, messages: int) -> float:
    """Deliveries a second of CPU time."""
    gc.collect()
    start = time.process_time()
    delivered = run(plan, messages)
    elapsed = time.process_time() - start
    expected = messages * len(plan.groups[0])
    if delivered != expected:
        raise SystemExit(f"{run.__name__} delivered {delivered} of {expected} messages")
    return delivered / elapsed


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--messages", type=int, default=30_000)
    parser.add_argument("--receivers", type=int, default=3)
    parser.add_argument("--senders", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    plan = plan_for(options.receivers, options.senders)
    rounds = [
        (measure(run_ordercast, plan, options.messages), measure(run_simpy, plan, options.messages))
        for _ in range(options.rounds)
    ]
    ours, theirs = (max(speeds) for speeds in zip(*rounds, strict=True))
    result = {
        "messages": options.messages,
        "receivers": options.receivers,
        "delivered_per_s": round(ours),
        "simpy_delivered_per_s": round(theirs),
        "ratio_to_simpy": round(median(one / other for one, other in rounds), 2),
        "ratio_by_round": [round(one / other, 2) for one, other in rounds],
    }
    if options.json:
        print(json.dumps(result))
    else:
        print("\n".join(f"{name:<24}{value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
