"""The environment of one process in the simulator: its clock, its timers, its disk and its effects.

A node owns this state. The world brings events through the methods, and reads what it needs for the trace.
Every effect of the process is charged to the host and handed to the world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING
from zlib import crc32

from ordercast.core import (
    CARRIERS,
    Delivery,
    Env,
    Explanation,
    GroupId,
    Groups,
    LocalError,
    Member,
    Message,
    MessageId,
    Nanos,
    NodeId,
    Notice,
    Process,
    ProtocolFailed,
    Stateful,
    StateWanted,
    packet_text,
    protocol_failed,
)
from ordercast.kernel.backlog import Backlog
from ordercast.kernel.memberships import Memberships, Request
from ordercast.scenario.clock import Clock
from ordercast.scenario.faults import DiskTrouble
from ordercast.sim.disk import damage
from ordercast.sim.host import Host
from ordercast.trace import READ, TALLY, Event, Kind, given_event

if TYPE_CHECKING:
    from ordercast.sim.world import World


class NodeEnv(Env):
    """The simulator's side of one process."""

    __slots__ = (
        "_booted_at", "_bundles", "_last_save", "_on_message", "_scheduler", "_timer_count", "_timers",
        "_unsynced", "_watched", "_world", "arrival", "backlog", "clock", "forgot", "host",
        "memberships", "process", "saved",
    )  # fmt: skip

    process: Process

    def __init__(
        self, world: World, node: NodeId, host: Host, clock: Clock | None, backlog: Backlog, *, watched: bool
    ) -> None:
        """If `watched`, the world is told of every packet that arrives."""
        self.me = node
        self.now = 0
        self.rng = Random(f"{world.seed}/node/{node}")
        self.host = host
        self.clock = clock
        self.backlog = backlog
        self.memberships = Memberships(world.plan, node)
        self.saved: dict[str, bytes] = {}
        self.forgot = False
        self.arrival = self._arrive  # bound once, not for each packet
        self._world = world
        self._scheduler = world.scheduler
        self._watched = watched
        self._bundles = backlog.bundles
        self._booted_at: Nanos = -1
        self._timers: dict[str, int] = {}
        self._timer_count = 0
        self._unsynced: list[tuple[str, bytes | None]] = []
        self._last_save: tuple[str, bytes | None] | None = None

    # Effects of the process

    def send(self, to: NodeId, message: Message) -> None:
        """Charge the CPU and give the packet to the network."""
        if self._unsynced:
            self._unsynced.clear()
        world = self._world
        if world.through_codec:
            message = world.plan.codec.decode(world.plan.codec.encode(message))
        host = self.host
        target = world.envs[to].host
        if target is not host:
            host.charge(host.cpu.send_ns)
        world.transmit(self, host.free_at, to, message)

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Charge one send, or one per copy, and give the copies to the network; local copies are free."""
        if self.host.cpu.copies:
            for node in to:
                self.send(node, message)
            return
        if self._unsynced:
            self._unsynced.clear()
        world, host = self._world, self.host
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
        self._timer_count += 1
        token = self._timers[name] = self._timer_count
        wait = self.clock.true_duration(after) if self.clock else after
        self._scheduler.after(max(0, wait), self._on_timer, name, token)

    def cancel_timer(self, name: str) -> None:
        """Disarm a timer."""
        self._timers.pop(name, None)

    def deliver(self, delivery: Delivery) -> None:
        """Record it, and tell the workload."""
        if self._unsynced:
            self._unsynced.clear()
        if isinstance(delivery, CARRIERS):
            self._world.on_messages(self, delivery)
        else:
            assert isinstance(delivery, Notice), delivery
            self._world.on_notice(self, delivery)

    def save(self, name: str, state: bytes | None) -> None:
        """Keep the state. A crash may undo it until a later send or delivery has left."""
        cost, disk = self.host.cpu.save_ns, self.host.disk
        if disk is not None:
            cost += disk.cost(self._scheduler.now)
        self._last_save = (name, self.saved.get(name))
        self._unsynced.append(self._last_save)
        if state is None:
            self.saved.pop(name, None)
        else:
            self.saved[name] = bytes(state)
        self.host.charge(cost)

    def executed(self, operations: int) -> None:
        """Charge the CPU for operations of a service."""
        if cost := self.host.cpu.execute_ns:
            self.host.charge(cost * operations)

    def originate(self, groups: Groups, payload: bytes, *, read: bool = False) -> tuple[MessageId, Nanos]:
        """Record a submission of the process itself."""
        world, now, message = self._world, self._scheduler.now, self.backlog.reserve()
        receivers = sum(len(world.plan.groups[group]) for group in groups)
        label = READ if read else None
        world.note_call(message, payload, receivers, label)
        about = Event(now, self.now, self.me, Kind.SUBMIT, message, groups, submitted_ns=now, label=label)
        world.rows.append(about._replace(size=len(payload), digest=crc32(payload)))
        return message, now

    # Life

    def boot(self) -> None:
        """Begin a life as soon as the CPU is free."""
        if self.host.up:
            self.host.serve(0, self._start, ())

    def _start(self) -> None:
        if self.read_clock() <= self._booted_at:
            self.clock = self.clock or Clock()
            self.clock.hold(self._booted_at + 1)
            self.read_clock()
        self._booted_at = self.now
        try:
            self.process = self._world.plan.nodes[self.me].factory(self)
            self._on_message: Callable[[NodeId, Message], None] = self.process.on_message
            self.process.on_start(dict(self.saved))
        except Exception as error:
            raise self._failed("its start", error) from error

    def stop(self, rng: Random) -> None:
        """Stop: the host has crashed. Saves that nothing depended on yet may not have reached the disk."""
        self._timers.clear()
        self.backlog.clear()
        self.memberships.forget()
        self._world.applications.forget(self.me)
        if self._unsynced and rng.random() < 0.5:
            for name, old in reversed(self._unsynced):
                if old is None:
                    self.saved.pop(name, None)
                else:
                    self.saved[name] = old
        self._unsynced.clear()

    def lose_state(self) -> None:
        """Empty the disk; the node is in the groups that it was in at the start."""
        self._world.members.begin_again(self.me)
        self.saved.clear()
        self._last_save = None

    def forget(self) -> None:
        """The node comes back as a new member, and knows it."""
        self.forgot = True

    def damage(self, what: DiskTrouble, rng: Random) -> None:
        """Damage what is saved."""
        damage(self.saved, self._last_save, what, rng)

    # Events

    def read_clock(self) -> Nanos:
        """Update the time that the process sees."""
        now = self._scheduler.now
        self.now = self.clock.read(now) if self.clock else now
        return self.now

    def step_clock(self, by_ns: Nanos, stepped: list[Clock]) -> None:
        """Step the clock, unless it is in `stepped` already: processes of one host may share a clock."""
        self.clock = self.clock or Clock()
        if self.clock not in stepped:
            self.clock.read(self._scheduler.now)
            self.clock.step(by_ns)
            stepped.append(self.clock)

    def _arrive(self, source: NodeId, message: Message) -> None:
        """Take a packet at its host, as `Host.arrive` and `handle` do, but faster for most packets."""
        host, now = self.host, self._scheduler.now
        cost = host.cpu.receive_ns
        if self._watched or host.queue or host.free_at > now - cost or not host.up:
            host.arrive(self.handle, source, message)
            return
        host.busy_ns += cost
        host.free_at = now
        host.serving = True
        self.now = self.clock.read(now) if self.clock else now
        try:
            self._on_message(source, message)
        except Exception as error:
            raise self._failed(packet_text(source, message), error) from error
        if self._bundles:
            self.drain()
        host.serving = False

    def handle(self, source: NodeId, message: Message) -> None:
        """Handle a packet when the CPU is free for it."""
        now = self._scheduler.now
        self.now = self.clock.read(now) if self.clock else now
        if self._watched:
            self._world.on_packet(self, Kind.RECEIVE, source, message)
        try:
            self._on_message(source, message)
        except Exception as error:
            raise self._failed(packet_text(source, message), error) from error
        if self._bundles:
            self.drain()

    def _on_timer(self, name: str, token: int) -> None:
        """Run a due timer when the CPU is free, unless it was re-armed or cancelled."""
        if self._timers.get(name) == token:
            self.host.work(0, self._fire, name, token)

    def _fire(self, name: str, token: int) -> None:
        if self.host.up and self._timers.get(name) == token:
            del self._timers[name]
            self.read_clock()
            try:
                self.process.on_timer(name)
            except Exception as error:
                raise self._failed(f"its timer '{name}'", error) from error
            if self._bundles:
                self.drain()

    def drain(self) -> None:
        """Hand the backlog to the protocol, until its window is full."""
        bundles = self._bundles
        if not bundles:
            return
        self.read_clock()
        member = self._world.plan.member(self.process)
        while bundles:
            bundle = bundles[0]
            packed = self._offer(member)
            if packed is None:
                return
            self._world.remember(packed, bundle.first, bundle.times, bundle.payloads)

    def _offer(self, member: Member) -> bytes | None:
        """Offer the first bundle of the backlog to the protocol."""
        try:
            return self.backlog.offer(member)
        except LocalError:  # the protocol refuses it: the caller's fault
            raise
        except Exception as error:
            raise self._failed("a submission", error) from error

    def request(self, request: Request, group: GroupId) -> None:
        """Let the application ask to join or to leave a group; ignore it if that makes no sense now."""
        self.read_clock()
        try:
            receiver = self.memberships.ask(self.process, request, group)
        except LocalError:  # such as a second request, or a node that lost its state meanwhile
            return
        event = Event(self._scheduler.now, self.now, self.me, Kind(request), groups=(group,))
        self._world.rows.append(event)
        try:
            getattr(receiver, request)(group)
        except Exception as error:
            raise self._failed(f"a request to {request} group {group}", error) from error
        if self._bundles:
            self.drain()

    def give_state(self, wanted: StateWanted, data: bytes) -> None:
        """Let the application give a state that it was asked for."""
        self.read_clock()
        assert isinstance(self.process, Stateful)
        self._world.rows.append(given_event(self._scheduler.now, self.now, self.me, wanted, data, TALLY))
        try:
            self.process.give_state(wanted.group, wanted.config, data)
        except Exception as error:
            raise self._failed(f"the state of group {wanted.group}", error) from error

    def explain(self) -> Explanation:
        """What waits at the process."""
        try:
            return self.process.explain()
        except Exception as error:
            raise self._failed("a call of explain()", error) from error

    def _failed(self, event: str, error: Exception) -> ProtocolFailed:
        return protocol_failed(self.me, self._scheduler.now, event, error)
