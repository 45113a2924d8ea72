"""The simulated world: hosts, clocks, a network, and the processes of a plan, in virtual time.

One seed decides everything: each node, the network and the workload have separate random streams, derived
from the seed by name. A packet costs service time when it leaves a host and when it arrives. If the CPU is
busy, work waits its turn. Handlers run at the end of their service time.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
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
    Replied,
    message_id,
)
from ordercast.core.bundle import HEAD_BYTES
from ordercast.kernel.backlog import ALONE, Backlog
from ordercast.kernel.payloads import check_payload
from ordercast.kernel.recipients import Recipients
from ordercast.scenario.clock import Clock
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.faults import DiskTrouble
from ordercast.sim.applications import Applications
from ordercast.sim.call_log import CallLog
from ordercast.sim.disk import DiskFailed
from ordercast.sim.fates import FateEnv, followed
from ordercast.sim.host import Host
from ordercast.sim.latency import Constant
from ordercast.sim.members import GroupMembers
from ordercast.sim.network import LatencyNetwork, Network, Packet
from ordercast.sim.node_env import NodeEnv
from ordercast.sim.scheduler import Action, Scheduler
from ordercast.sim.unpacked import Unpacked
from ordercast.trace import (
    CHANGING,
    KIND_OF,
    LOST,
    READ,
    SAVED,
    SETTLING,
    Event,
    Kind,
    build_table,
    notice_event,
)

BACKLOG_MAX = 100_000
DEPARTURE_SLACK_NS = 50_000
"""Packets that leave no later than this after their handler are handed to the network at once."""
PACKET_OVERHEAD_BYTES = 46
"""Size of the Ethernet, IP and UDP headers, used if the size of packets matters."""

_SUBMIT = Kind.SUBMIT

NetworkFactory = Callable[[Scheduler, Random], Network]
Observer = Callable[[NodeId, MessageId, Groups], None]


def lan(scheduler: Scheduler, rng: Random) -> Network:
    """The default network of a world: a delay of 50 microseconds, and no loss."""
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
        self._disk_rng = Random(f"{seed}/disks")
        self.through_codec = through_codec
        self.rows: list[tuple[object, ...]] = []
        self.observers: list[Observer] = []
        self.expected = 0
        self.delivered = 0
        self.dropped = 0
        self.submitted = self.refused = 0
        self.calls = CallLog(serves=plan.service is not None)
        self.carried: dict[int, Message] = {}
        """The message of each row about a packet, by the place of the row; only if packets are recorded."""
        self._record_packets = record_packets
        self._senders = frozenset(plan.senders)
        self._recipients = Recipients(plan.groups, plan.groups_max)
        self._unpacked = Unpacked()
        self.remember = self._unpacked.remember
        self.hosts: dict[HostId, Host] = {}
        for node in plan.nodes:
            own = cpu if isinstance(cpu, Cpu) else cpu.get(node.host, Cpu())
            self.hosts.setdefault(node.host, Host(node.host, own, self.scheduler))
        packet_bytes = bundle_bytes + HEAD_BYTES if bundle_bytes else ALONE
        locks = plan.service.locks if plan.service is not None else None
        make_env = self._env_maker()
        self.envs = [
            make_env(
                self,
                node.id,
                self.hosts[node.host],
                (clocks or {}).get(node.host),
                Backlog(message_id(node.id, 0), packet_bytes, messages_max=BACKLOG_MAX, locks=locks),
                watched=record_packets,
            )
            for node in plan.nodes
        ]
        self.members = GroupMembers(plan, self.envs)
        self.applications = Applications(self)
        for env in self.envs:
            self.scheduler.at(0, env.boot)

    def _env_maker(self) -> Callable[..., NodeEnv]:
        """What makes the environment of a node: one that follows numbered packets, if there are any."""
        found = followed(self.plan)
        return NodeEnv if found is None else partial(FateEnv, followed=found)

    # Time

    def run(self, until: Nanos) -> None:
        """Let the world go on up to a time."""
        while True:
            try:
                self.scheduler.run(until)
                return
            except DiskFailed as failed:
                self.crash(failed.host)

    @property
    def now(self) -> Nanos:
        """True time, which no process sees."""
        return self.scheduler.now

    # Applications

    def note_call(self, message: MessageId, payload: bytes, receivers: int, label: str | None) -> None:
        """Count a submission, and the receipts that it will have."""
        self.submitted += 1
        self.expected += self.calls.on_submit(message, payload, receivers, label)

    def submit(
        self, node: NodeId, groups: Groups, payload: bytes, label: str | None = None
    ) -> MessageId | None:
        """Submit a message at a sender now; return None if the sender is down or its backlog is full."""
        if node not in self._senders:
            raise LocalError(f"node {node} is not a sender of this plan")
        receivers = self._recipients.count(groups)
        check_payload(payload)
        env, backlog = self.envs[node], self.envs[node].backlog
        if not env.host.up or backlog.full:
            self.refused += env.host.up
            return None
        now = self.scheduler.now
        message = backlog.add_one(groups, now, payload, label == READ)
        self.note_call(message, payload, receivers, label)
        clock = env.clock.read(now) if env.clock else now
        self.rows.append(
            (
                now, clock, node, _SUBMIT, message, groups, None, now,
                None, None, None, None, None, len(payload), crc32(payload), label,
            )
        )  # fmt: skip
        env.host.work(0, env.drain)
        return message

    def on_messages(self, env: NodeEnv, delivery: Carrier) -> None:
        """Record that a process delivered a bundle of messages to its application."""
        kind = KIND_OF[type(delivery)]
        stamp, groups = delivery.stamp, delivery.groups
        items = self._unpacked.get(delivery.payload)
        if items is None:
            try:
                items = self._unpacked.learn(delivery.payload)
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
            # By position and in place, here and in `submit`: no path of a run is taken more often.
            self.rows.append(
                (
                    now, env.now, env.me, kind, message, groups, numbers, submitted,
                    clock, issuer, delivery.config, None, delivery.sender, size, digest, None,
                )
            )  # fmt: skip
            for observer in self.observers:
                observer(env.me, message, groups)

    def on_notice(self, env: NodeEnv, notice: Notice) -> None:
        """Record that a process delivered a notice to its application."""
        now = self.scheduler.now
        clock = env.clock.read(now) if env.clock else now
        for single in notice.singles():
            event = notice_event(now, clock, env.me, single)
            if event.kind in SETTLING:
                self.dropped += 1
            elif event.kind in CHANGING:
                self.members.on_notice(env, event)
            self.rows.append(event)
        if isinstance(notice, Replied):
            self.calls.on_replied(env.me, notice)
        else:
            self.applications.on_notice(env, notice)

    def explain(self) -> dict[NodeId, Explanation]:
        """What every process that is up waits for."""
        return {env.me: env.explain() for env in self.envs if env.host.up}

    # Packets

    def transmit(self, env: NodeEnv, departure: Nanos, to: NodeId, message: Message) -> None:
        """Bring a message to another process: over the network, or directly on the same host."""
        if to < 0:
            raise LocalError(f"node {env.me} sends to node {to}, which does not exist")
        target = self.envs[to]
        if self._record_packets:
            self.on_packet(env, Kind.SEND, to, message)
        if target.host is env.host:
            env.host.work(0, target.handle, env.me, message)
            return
        needs_size, codec = self.network.needs_size, self.plan.codec
        size = len(codec.encode(message)) + PACKET_OVERHEAD_BYTES if needs_size else 0
        args = (env.me, message)
        packet = Packet((env.host.id, target.host.id), size, target.host.cpu.receive_ns, target.arrival, args)
        if departure - self.scheduler.now > DEPARTURE_SLACK_NS:
            self._await_departure(env.host, departure, packet)
        elif not self.network.transmit(departure, packet) and self._record_packets:
            self.on_packet(env, Kind.LOSE, to, message)

    def _await_departure(self, host: Host, departure: Nanos, packet: Packet) -> None:
        """Give a packet to the network when it leaves its host, if the host is up and not paused then."""
        self.scheduler.at(departure, self._depart, host, host.lives, host.paused_ns, packet)

    def _depart(self, host: Host, lives: int, paused_ns: Nanos, packet: Packet) -> None:
        if host.lives != lives:
            self.network.lost += 1
        elif host.paused_ns > paused_ns:
            late = host.paused_ns - paused_ns
            self.scheduler.after(late, self._depart, host, lives, host.paused_ns, packet)
        else:
            self.network.transmit(self.scheduler.now, packet)

    def on_packet(self, env: NodeEnv, kind: Kind, peer: NodeId, message: Message) -> None:
        """Record that a node has sent, received or lost a packet."""
        self.carried[len(self.rows)] = message
        self._record(env, kind, peer=peer, label=type(message).__name__)

    def application_send(self, source: NodeId, target: NodeId, action: Action, *args: object) -> None:
        """Send traffic between applications, such as answers, over the same hosts and network."""
        one, other = self.envs[source].host, self.envs[target].host
        if one is other:
            one.work(0, action, *args)
            return
        link, service = (one.id, other.id), other.cpu.receive_ns
        packet = Packet(link, PACKET_OVERHEAD_BYTES, service, other.arrive, (action, *args))
        self._await_departure(one, one.charge(one.cpu.send_ns), packet)

    # Faults

    def crash(self, host_id: HostId) -> None:
        """Stop a host at once. Saves that nothing depended on yet may not have reached the disk."""
        host = self._host(host_id)
        if not host.up:
            return
        host.stop()
        for env in self._processes(host):
            self._record(env, Kind.CRASH)
            env.stop(self.rng)

    def restart(self, host_id: HostId, *, keep_state: bool = True) -> None:
        """Start a crashed host again, with its saved state or with an empty disk.

        A host whose saved state is damaged comes back as a new member if all its nodes may forget, and stays
        down otherwise.
        """
        host = self._host(host_id)
        if host.up:
            return
        as_new = keep_state and self._finds_damage(host)
        if as_new and self.plan.must_remember(host_id):
            return
        host.start()
        lost = as_new or not keep_state
        if lost and host.disk is not None:
            host.disk.empty()
        for env in self._processes(host):
            if lost:
                env.lose_state()
            if as_new or (lost and not self.plan.guarantees.churns):
                env.forget()
            env.read_clock()
            self._record(env, Kind.RECOVER, label=LOST if lost else SAVED)
            env.boot()

    def strike_disk(self, host_id: HostId, what: DiskTrouble, duration: Nanos) -> None:
        """Let something happen to the disk of a host."""
        self._host(host_id).touched_disk().strike(what, self.now + duration)

    def _finds_damage(self, host: Host) -> bool:
        """Whether what a host reads is not what it saved: it finds out itself, or the others tell it."""
        if host.disk is None:
            return False
        for what in host.disk.read():
            for env in self._processes(host):
                env.damage(what, self._disk_rng)
        return host.disk.damaged

    def pause(self, host_id: HostId, duration: Nanos) -> None:
        """Let a host do nothing for a while; then it goes on as if nothing had happened."""
        self._host(host_id).pause(duration)

    def step_clock(self, host_id: HostId, by_ns: Nanos) -> None:
        """Step the clock of a host."""
        stepped: list[Clock] = []
        for env in self._processes(self._host(host_id)):
            env.step_clock(by_ns, stepped)

    def cut(self, links: Iterable[tuple[HostId, HostId]]) -> None:
        """Cut these links, in addition to those that are cut already."""
        self.network.blocked.update(links)

    def slow(self, links: Iterable[tuple[HostId, HostId]], by_ns: Nanos) -> None:
        """Let packets on these links take so much longer."""
        self.network.slowed.update(dict.fromkeys(links, by_ns))

    def set_conditions(self, conditions: Conditions) -> None:
        """Change the network's loss, duplication and reordering."""
        self.network.set_conditions(conditions)

    def heal(self) -> None:
        """End all cuts, all slowness of links, and all loss, duplication and reordering."""
        self.network.blocked.clear()
        self.network.slowed.clear()
        self.network.set_conditions(Conditions())

    def _host(self, host_id: HostId) -> Host:
        if host_id not in self.hosts:
            raise LocalError(f"there is no host {host_id}")
        return self.hosts[host_id]

    def _processes(self, host: Host) -> list[NodeEnv]:
        return [env for env in self.envs if env.host is host]

    # The trace

    def complete(self, node: NodeId, message: MessageId, submitted: Nanos) -> None:
        """Record that a client knows that all receivers have delivered its message."""
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
        row = Event(now, clock, env.me, kind, message, groups, submitted_ns=submitted, peer=peer, label=label)
        self.rows.append(row)

    def table(self, run: str) -> pa.Table:
        """The trace so far."""
        return build_table(run, self.rows)
