"""The simulated world: hosts, clocks, a network, and the processes of a plan, in virtual time.

One seed decides everything: each node, the network and the workload have random streams of their own,
derived from it by name. A packet costs service time on its way out of a host and on its way in; work
that finds the CPU busy waits its turn. Handlers run at the end of their service time.
"""

from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from random import Random
from zlib import crc32

import pyarrow as pa

from ordercast.core import (
    Carrier,
    Explanation,
    Groups,
    HostId,
    LocalError,
    Message,
    MessageId,
    Nanos,
    NodeId,
    Notice,
    Plan,
    RemoteError,
    message_id,
)
from ordercast.core.bundle import MESSAGE_BYTES_MAX, Item, bundle_size, pack, unpack
from ordercast.sim.clock import Clock
from ordercast.sim.host import Cpu, Host
from ordercast.sim.latency import Constant
from ordercast.sim.network import Conditions, LatencyNetwork, Network, Packet
from ordercast.sim.node_env import NodeEnv
from ordercast.sim.scheduler import Action, Scheduler
from ordercast.trace import KIND_OF, LOST, SAVED, SETTLING, Event, Kind, build_table, notice_event

BACKLOG_MAX = 100_000
UNPACKED_MAX = 4096
DEPARTURE_SLACK_NS = 50_000
"""Packets that wait no longer than this for their turn to leave count as gone with their handler."""
PACKET_OVERHEAD_BYTES = 46
"""Ethernet, IP and UDP headers, where the size of packets matters."""

_item = tuple.__new__  # half the cost of the named tuple's own constructor
_SUBMIT = Kind.SUBMIT

NetworkFactory = Callable[[Scheduler, Random], Network]
Observer = Callable[[NodeId, MessageId, Groups], None]


def lan(scheduler: Scheduler, rng: Random) -> Network:
    """The network a world has unless told otherwise: 50 microseconds, no misfortunes."""
    return LatencyNetwork(scheduler, rng, Conditions(), Constant(50_000))


class World:
    """Runs a plan."""

    def __init__(
        self,
        plan: Plan,
        seed: int = 0,
        network: NetworkFactory = lan,
        *,
        cpu: Cpu | Mapping[HostId, Cpu] = Cpu(),  # noqa: B008  (frozen)
        clocks: Mapping[HostId, Clock] | None = None,
        record_packets: bool = False,
        through_codec: bool = False,
        bundle_bytes: int = 0,
    ) -> None:
        self.plan = plan
        self.seed = seed
        self.scheduler = Scheduler()
        self.network = network(self.scheduler, Random(f"{seed}/network"))
        self.rng = Random(f"{seed}/world")
        self.through_codec = through_codec
        self.bundle_bytes = bundle_bytes
        self.rows: list[tuple[object, ...]] = []
        self.observers: list[Observer] = []
        self.expected = 0
        self.delivered = 0
        self.dropped = 0
        self.submitted = 0
        self.refused = 0
        self.timer_count = 0
        self._record_packets = record_packets
        self._arrival = self._arrive  # bound once, not for each packet
        self._next_message = {node: message_id(node, 0) for node in plan.senders}
        self._fan_out: dict[Groups, int] = {}
        self._unpacked: dict[bytes, list[tuple[MessageId, Nanos, int, int]]] = {}
        self.hosts: dict[HostId, Host] = {}
        for node in plan.nodes:
            own = cpu if isinstance(cpu, Cpu) else cpu.get(node.host, Cpu())
            self.hosts.setdefault(node.host, Host(node.host, own, self.scheduler))
        self.envs = [NodeEnv(self, node.id, self.hosts[node.host]) for node in plan.nodes]
        for env in self.envs:
            env.clock = (clocks or {}).get(env.host.id)
            self.scheduler.at(0, self._boot, env)

    # Time

    def run(self, until: Nanos) -> None:
        """Let the world go on up to a time."""
        self.scheduler.run(until)

    @property
    def now(self) -> Nanos:
        """True time, which no process sees."""
        return self.scheduler.now

    def _read_clock(self, env: NodeEnv) -> Nanos:
        now = self.scheduler.now
        env.now = env.clock.read(now) if env.clock else now
        return env.now

    def _boot(self, env: NodeEnv) -> None:
        if env.host.up:
            env.host.serve(0, self._start, (env,))

    def _start(self, env: NodeEnv) -> None:
        if self._read_clock(env) <= env.booted_at:
            env.clock = env.clock or Clock()
            env.clock.hold(env.booted_at + 1)
            self._read_clock(env)
        env.booted_at = env.now
        env.process = self.plan.nodes[env.me].factory(env)
        env.process.on_start(dict(env.saved))

    # Applications

    def submit(self, node: NodeId, groups: Groups, payload: bytes) -> MessageId | None:
        """The application at a sender submits a message now; None if the sender is down or swamped."""
        if node not in self._next_message:
            raise LocalError(f"node {node} is not a sender of this plan")
        receivers = self._fan_out.get(groups) or self._receivers(groups)
        size = len(payload)
        if size > MESSAGE_BYTES_MAX:
            raise LocalError(f"message of {size} bytes, the limit is {MESSAGE_BYTES_MAX}")
        env = self.envs[node]
        if not env.host.up:
            return None
        if len(env.backlog) >= BACKLOG_MAX:
            self.refused += 1
            return None
        message = self._next_message[node]
        self._next_message[node] = message + 1
        now = self.scheduler.now
        self.submitted += 1
        self.expected += receivers
        clock = env.clock.read(now) if env.clock else now
        self.rows.append(
            (
                now, clock, node, _SUBMIT, message, groups, None, now,
                None, None, None, None, None, size, crc32(payload), None,
            )
        )  # fmt: skip
        env.backlog.append((groups, _item(Item, (message, now, payload))))
        env.host.work(0, self._drain, env)
        return message

    def _receivers(self, groups: Groups) -> int:
        if groups not in self._fan_out:
            unknown = [group for group in groups if group not in self.plan.groups]
            if unknown:
                raise LocalError(f"there is no group {unknown[0]}")
            if not groups or list(groups) != sorted(set(groups)):
                raise LocalError(f"a message goes to different groups in ascending order, not to {groups}")
            members = {node for group in groups for node in self.plan.groups[group]}
            self._fan_out[groups] = len(members)
        return self._fan_out[groups]

    def _drain(self, env: NodeEnv) -> None:
        """Hand the backlog of a sender to its protocol, until that says that its window is full."""
        if not env.backlog:
            return
        self._read_clock(env)
        member = self.plan.member(env.process)
        backlog = env.backlog
        while backlog:
            groups, first = backlog[0]
            items = self._bundle(backlog) if self.bundle_bytes else [first]
            packed = pack(items)
            taken = member.submit(groups, packed)
            if taken is None:
                raise LocalError(f"submit() of {type(member).__name__} returns neither True nor False")
            if not taken:
                return
            self._remember(packed, items)
            for _ in items:
                backlog.popleft()

    def _bundle(self, backlog: deque[tuple[Groups, Item]]) -> list[Item]:
        """The messages at the head of a backlog that go to the same groups and fit into a packet."""
        groups, first = backlog[0]
        items, room = [first], self.bundle_bytes - bundle_size(len(first.payload))
        for other_groups, item in islice(backlog, 1, None):
            room -= bundle_size(len(item.payload))
            if other_groups != groups or room < 0:
                break
            items.append(item)
        return items

    def on_messages(self, env: NodeEnv, delivery: Carrier) -> None:
        """A process handed a packet of messages to its application."""
        kind = KIND_OF[type(delivery)]
        stamp, groups = delivery.stamp, delivery.groups
        items = self._unpacked.get(delivery.payload)
        if items is None:
            try:
                items = self._unpack(delivery.payload)
            except RemoteError as error:
                self._record(env, kind, groups=groups, label=str(error))
                return
        if stamp is None:
            numbers = clock = issuer = None
        else:
            numbers, clock, issuer = stamp.numbers or None, stamp.clock, stamp.issuer
        now = self.scheduler.now
        for message, submitted, size, digest in items:
            self.delivered += 1
            # By position and in place, here and in `submit`: a call for each row would cost some 60 ns.
            self.rows.append(
                (
                    now, env.now, env.me, kind, message, groups, numbers, submitted,
                    clock, issuer, delivery.config, None, delivery.sender, size, digest, None,
                )
            )  # fmt: skip
            for observer in self.observers:
                observer(env.me, message, groups)

    def _unpack(self, payload: bytes) -> list[tuple[MessageId, Nanos, int, int]]:
        """Identity, time of submission, size and digest of the messages in a packet.

        All receivers of a packet deliver the same bytes, so the answer is remembered for a while.
        """
        return self._remember(payload, unpack(payload))

    def _remember(self, payload: bytes, items: list[Item]) -> list[tuple[MessageId, Nanos, int, int]]:
        if len(self._unpacked) >= UNPACKED_MAX:
            self._unpacked.clear()
        facts = [(message, when, len(data), crc32(data)) for message, when, data in items]
        self._unpacked[payload] = facts
        return facts

    def on_notice(self, env: NodeEnv, notice: Notice) -> None:
        """A process told its application something that is no message."""
        now = self.scheduler.now
        clock = env.clock.read(now) if env.clock else now
        event = notice_event(now, clock, env.me, notice)
        if event.kind in SETTLING:
            self.dropped += 1
        self.rows.append(event)

    def explain(self) -> dict[NodeId, Explanation]:
        """What every living process waits for."""
        return {env.me: env.process.explain() for env in self.envs if env.host.up}

    # Packets, timers and the CPU

    def transmit(self, env: NodeEnv, departure: Nanos, to: NodeId, message: Message) -> None:
        """Bring a packet to another process: over the network, or past it on the same host."""
        if to < 0:
            raise LocalError(f"node {env.me} sends to node {to}, which is not there")
        target = self.envs[to]
        if self._record_packets:
            self._record(env, Kind.SEND, peer=to, label=type(message).__name__)
        if target.host is env.host:
            env.host.work(0, self._handle, target, env.me, message)
            return
        size = 0
        if self.network.needs_size:
            size = len(self.plan.codec.encode(message)) + PACKET_OVERHEAD_BYTES
        link = (env.host.id, target.host.id)
        args = (target, env.me, message)
        packet = Packet(link, size, target.host.cpu.receive_ns, self._arrival, args)
        if departure - self.scheduler.now > DEPARTURE_SLACK_NS:
            self._await_departure(env.host, departure, packet)
        elif not self.network.transmit(departure, packet) and self._record_packets:
            self._record(env, Kind.LOSE, peer=to, label=type(message).__name__)

    def _await_departure(self, host: Host, departure: Nanos, packet: Packet) -> None:
        """Give a packet to the network when it leaves its host, if that is up and not paused then."""
        self.scheduler.at(departure, self._depart, host, host.lives, host.paused_ns, packet)

    def _depart(self, host: Host, lives: int, paused_ns: Nanos, packet: Packet) -> None:
        if host.lives != lives:
            self.network.lost += 1
        elif host.paused_ns > paused_ns:
            late = host.paused_ns - paused_ns
            self.scheduler.after(late, self._depart, host, lives, host.paused_ns, packet)
        else:
            self.network.transmit(self.scheduler.now, packet)

    def _arrive(self, env: NodeEnv, source: NodeId, message: Message) -> None:
        """A packet is at its host: the way through `Host.arrive` and `_handle`, short for most packets."""
        host, now = env.host, self.scheduler.now
        cost = host.cpu.receive_ns
        if self._record_packets or host.queue or host.free_at > now - cost or not host.up:
            host.arrive(self._handle, env, source, message)
            return
        host.busy_ns += cost
        host.free_at = now
        host.serving = True
        env.now = env.clock.read(now) if env.clock else now
        env.process.on_message(source, message)
        if env.backlog:
            self._drain(env)
        host.serving = False

    def _handle(self, env: NodeEnv, source: NodeId, message: Message) -> None:
        now = self.scheduler.now
        env.now = env.clock.read(now) if env.clock else now
        if self._record_packets:
            self._record(env, Kind.RECEIVE, peer=source, label=type(message).__name__)
        env.process.on_message(source, message)
        if env.backlog:
            self._drain(env)

    def on_timer(self, env: NodeEnv, name: str, token: int) -> None:
        """A timer is due; it runs when the CPU has time, unless it was re-armed or cancelled."""
        if env.timers.get(name) == token:
            env.host.work(0, self._fire, env, name, token)

    def _fire(self, env: NodeEnv, name: str, token: int) -> None:
        if env.host.up and env.timers.get(name) == token:
            del env.timers[name]
            self._read_clock(env)
            env.process.on_timer(name)
            if env.backlog:
                self._drain(env)

    def application_send(self, source: NodeId, target: NodeId, action: Action, *args: object) -> None:
        """Traffic between applications, such as replies: the same hosts and network, no protocol."""
        one, other = self.envs[source].host, self.envs[target].host
        if one is other:
            one.work(0, action, *args)
            return
        link, service = (one.id, other.id), other.cpu.receive_ns
        packet = Packet(link, PACKET_OVERHEAD_BYTES, service, other.arrive, (action, *args))
        self._await_departure(one, one.charge(one.cpu.send_ns), packet)

    # Faults

    def crash(self, host_id: HostId) -> None:
        """A host stops at once. Saves that nothing depended on yet may or may not have reached the disk."""
        host = self._host(host_id)
        if not host.up:
            return
        host.stop()
        for env in self._processes(host):
            self._record(env, Kind.CRASH)
            env.timers.clear()
            env.backlog.clear()
            if env.unsynced and self.rng.random() < 0.5:
                for name, old in reversed(env.unsynced):
                    if old is None:
                        env.saved.pop(name, None)
                    else:
                        env.saved[name] = old
            env.unsynced.clear()

    def restart(self, host_id: HostId, *, keep_state: bool = True) -> None:
        """A crashed host comes back, with what its processes saved or with an empty disk."""
        host = self._host(host_id)
        if host.up:
            return
        host.start()
        for env in self._processes(host):
            if not keep_state:
                env.saved.clear()
            self._read_clock(env)
            self._record(env, Kind.RECOVER, label=SAVED if keep_state else LOST)
            self._boot(env)

    def pause(self, host_id: HostId, duration: Nanos) -> None:
        """A host does nothing for a while, then goes on as if nothing had happened."""
        self._host(host_id).pause(duration)

    def step_clock(self, host_id: HostId, by_ns: Nanos) -> None:
        """A host's clock is set."""
        stepped: list[Clock] = []
        for env in self._processes(self._host(host_id)):
            env.clock = env.clock or Clock()
            if env.clock not in stepped:  # processes of one host may share its clock
                env.clock.read(self.scheduler.now)
                env.clock.step(by_ns)
                stepped.append(env.clock)

    def _host(self, host_id: HostId) -> Host:
        if host_id not in self.hosts:
            raise LocalError(f"there is no host {host_id}")
        return self.hosts[host_id]

    def _processes(self, host: Host) -> list[NodeEnv]:
        return [env for env in self.envs if env.host is host]

    # The trace

    def complete(self, node: NodeId, message: MessageId, submitted: Nanos) -> None:
        """A client knows that all receivers have delivered its message."""
        self._record(self.envs[node], Kind.COMPLETE, message, submitted=submitted)

    def _record(
        self,
        env: NodeEnv,
        kind: Kind,
        message: MessageId | None = None,
        groups: Groups | None = None,
        *,
        submitted: Nanos | None = None,
        peer: NodeId | None = None,
        label: str | None = None,
    ) -> None:
        now = self.scheduler.now
        clock = env.clock.read(now) if env.clock else now
        self.rows.append(
            Event(
                now, clock, env.me, kind, message, groups,
                submitted_ns=submitted, peer=peer, label=label,
            )
        )  # fmt: skip

    def table(self, run: str) -> pa.Table:
        """The trace so far."""
        return build_table(run, self.rows)
