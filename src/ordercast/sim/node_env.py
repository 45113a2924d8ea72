"""The simulator's side of one process: every effect is charged to the host and handed to the world."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from ordercast.core import (
    CARRIERS,
    Delivery,
    Env,
    Groups,
    Message,
    Nanos,
    NodeId,
    Notice,
    Process,
)
from ordercast.core.bundle import Item
from ordercast.sim.clock import Clock
from ordercast.sim.host import Host

if TYPE_CHECKING:
    from ordercast.sim.world import World


class NodeEnv(Env):
    """The simulator's side of one process."""

    __slots__ = ("backlog", "booted_at", "clock", "host", "process", "saved", "timers", "unsynced", "world")

    process: Process

    def __init__(self, world: World, node: NodeId, host: Host) -> None:
        self.world = world
        self.me = node
        self.now = 0
        self.booted_at: Nanos = -1
        self.rng = Random(f"{world.seed}/node/{node}")
        self.host = host
        self.clock: Clock | None = None
        self.timers: dict[str, int] = {}
        self.saved: dict[str, bytes] = {}
        self.unsynced: list[tuple[str, bytes | None]] = []
        self.backlog: deque[tuple[Groups, Item]] = deque()

    def send(self, to: NodeId, message: Message) -> None:
        """Charge the CPU and give the packet to the network."""
        if self.unsynced:
            self.unsynced.clear()
        world = self.world
        if world.through_codec:
            message = world.plan.codec.decode(world.plan.codec.encode(message))
        host = self.host
        target = world.envs[to].host
        if target is not host:
            host.charge(host.cpu.send_ns)
        world.transmit(self, host.free_at, to, message)

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Charge one send, or one a copy, and give the copies to the network; local ones are free."""
        if self.host.cpu.copies:
            for node in to:
                self.send(node, message)
            return
        if self.unsynced:
            self.unsynced.clear()
        world, host = self.world, self.host
        if world.through_codec:
            message = world.plan.codec.decode(world.plan.codec.encode(message))
        for node in to:
            if world.envs[node].host is not host:
                host.charge(host.cpu.send_ns)
                break
        for node in to:
            world.transmit(self, host.free_at, node, message)

    def set_timer(self, name: str, after: Nanos) -> None:
        """Arm a timer in the node's own time."""
        world = self.world
        world.timer_count += 1
        token = self.timers[name] = world.timer_count
        wait = self.clock.true_duration(after) if self.clock else after
        world.scheduler.after(max(0, wait), world.on_timer, self, name, token)

    def cancel_timer(self, name: str) -> None:
        """Disarm a timer."""
        self.timers.pop(name, None)

    def deliver(self, delivery: Delivery) -> None:
        """Record it, and tell the workload."""
        if self.unsynced:
            self.unsynced.clear()
        if isinstance(delivery, CARRIERS):
            self.world.on_messages(self, delivery)
        else:
            assert isinstance(delivery, Notice), delivery
            self.world.on_notice(self, delivery)

    def save(self, name: str, state: bytes | None) -> None:
        """Keep it; a crash may still undo it until something that depends on it has left."""
        self.unsynced.append((name, self.saved.get(name)))
        if state is None:
            self.saved.pop(name, None)
        else:
            self.saved[name] = bytes(state)
        self.host.charge(self.host.cpu.save_ns)
