"""Applies the faults of a scenario to real host processes."""

import time
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from ordercast.core import MICROSECOND, GroupId, HostId, Nanos, NodeId, Plan
from ordercast.kernel.memberships import Request
from ordercast.lab.trial.disk_files import damage_files
from ordercast.lab.trial.hosts import Hosts
from ordercast.lab.trial.messages import Begin, ChangeMembers, Impair, Life, StepClock, TroubleDisk
from ordercast.lab.trial.setting import Setting
from ordercast.net.transports.impair import Impairment
from ordercast.scenario.changes import ChangeTarget
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.faults import DAMAGES, DiskTrouble, FaultTarget
from ordercast.scenario.spec import ConstantSpec, Scenario

READY_S = 300.0
"""Far longer than hosts take to start, on a busy machine too: one that ends is noticed at once."""
LATENCY_MIN_US = 1000.0
"""A constant delay of at least this is imitated; loopback itself takes about as long as a shorter one."""


class CrashTime(NamedTuple):
    """A host was killed at this reading of the wall clock."""

    host: HostId
    time_ns: Nanos
    gone_ns: Nanos
    """When it was gone for certain."""


def latency_us(scenario: Scenario) -> float:
    """The delay that datagrams get on purpose."""
    spec = scenario.network.latency
    return spec.us if isinstance(spec, ConstantSpec) and spec.us >= LATENCY_MIN_US else 0.0


class Stage(FaultTarget, ChangeTarget):
    """All hosts, the network between them, and the faults of both."""

    def __init__(self, setting: Setting, plan: Plan) -> None:
        self.setting = setting
        self.hosts = Hosts(setting, self._on_fall)
        self._plan = plan
        self._damages: dict[HostId, list[DiskTrouble]] = {}
        """What is to happen to the files of a host when it is down."""
        self._damaged: set[HostId] = set()
        """Hosts that may find their state damaged, or be refused by the others."""
        self._disk_rng = Random(f"{setting.scenario.seed}/disks")
        self.blocked: set[tuple[HostId, HostId]] = set()
        """From, to."""
        self._slowed: dict[tuple[HostId, HostId], float] = {}
        """By links: how many microseconds longer datagrams take."""
        self.crashes: list[CrashTime] = []
        self._conditions: Conditions = setting.scenario.network
        self._latency_us = latency_us(setting.scenario)
        self._steps: dict[HostId, Nanos] = {}
        self._resume: list[tuple[Nanos, HostId]] = []
        self._start_ns: Nanos = 0
        self._wanted: set[HostId] = set()
        """Hosts that a fault has restarted."""

    @property
    def calm(self) -> bool:
        """Whether the network loses, doubles and delays nothing."""
        return self._conditions.calm

    def open(self) -> None:
        """Start all hosts, and wait until they are up."""
        ids = sorted(self.setting.ports)
        for host in ids:
            self.hosts.start(host, Life(impairment=self._impairment(host)))
        self.hosts.await_ready(ids, READY_S)

    def begin(self, start_ns: Nanos) -> None:
        """Begin the workload at this reading of the monotonic clock."""
        self._start_ns = start_ns
        for host in self.hosts.up:
            self.hosts.order(host, Begin(start_ns))

    def resume_due(self, now_ns: Nanos) -> None:
        """End the pauses that are over at this reading of the monotonic clock."""
        for due, host in [one for one in self._resume if one[0] <= now_ns]:
            self._resume.remove((due, host))
            if host in self.hosts.up and host not in [other for _, other in self._resume]:
                self.hosts.resume(host)

    @property
    def next_resume_ns(self) -> Nanos | None:
        """When the next pause ends, on the monotonic clock."""
        return min((due for due, _ in self._resume), default=None)

    def heal(self) -> None:
        """Repair the network."""
        self.blocked.clear()
        self._slowed.clear()
        self.set_conditions(Conditions())

    def set_conditions(self, conditions: Conditions) -> None:
        """Change loss, duplication and reordering from now on."""
        self._conditions = conditions
        self._impair()

    def cut(self, links: Iterable[tuple[HostId, HostId]]) -> None:
        """Cut the way from one host to another, in addition to earlier cuts."""
        self.blocked.update(links)
        self._impair()

    def slow(self, links: Iterable[tuple[HostId, HostId]], by_ns: Nanos) -> None:
        """Let datagrams from one host to another take so much longer."""
        self._slowed.update(dict.fromkeys(links, by_ns / MICROSECOND))
        self._impair()

    def crash(self, host_id: HostId) -> None:
        """Kill a host."""
        if host_id in self.hosts.up:
            ordered_ns = time.time_ns()
            self.hosts.kill(host_id)
            self.crashes.append(CrashTime(host_id, ordered_ns, time.time_ns()))
            self._damage(host_id)

    def strike_disk(self, host_id: HostId, what: DiskTrouble, duration: Nanos) -> None:
        """Damage the files of a host as soon as it is down, or let its disk fail or be slow for a while."""
        self.hosts.let_fall(host_id)
        if what in DAMAGES:
            self._damages.setdefault(host_id, []).append(what)
            if host_id not in self.hosts.up:
                self._damage(host_id)
        elif host_id in self.hosts.up:
            self.hosts.order(host_id, TroubleDisk(what, duration))

    def _damage(self, host: HostId) -> None:
        for what in self._damages.pop(host, ()):
            damage_files(self.setting.cluster().state_path(host), what, self._disk_rng)
            self._damaged.add(host)

    def _on_fall(self, host: HostId) -> None:
        """A host has ended by itself. If its state was damaged, it comes back as new if it may."""
        now = time.time_ns()
        self.crashes.append(CrashTime(host, now, now))
        self._damage(host)
        if host in self._damaged and host in self._wanted and not self._plan.must_remember(host):
            self._damaged.discard(host)
            self.restart(host, keep_state=False)

    def pause(self, host_id: HostId, duration: Nanos) -> None:
        """Stop a host for a while; somebody must call `resume_due` when that is over."""
        if host_id in self.hosts.up:
            self.hosts.pause(host_id)
            self._resume.append((time.monotonic_ns() + duration, host_id))

    def step_clock(self, host_id: HostId, by_ns: Nanos) -> None:
        """Set a host's clock; if the host is down, this takes effect when it comes back."""
        self._steps[host_id] = self._steps.get(host_id, 0) + by_ns
        if host_id in self.hosts.up:
            self.hosts.order(host_id, StepClock(by_ns))

    def restart(self, host_id: HostId, *, keep_state: bool = True) -> None:
        """Start a host that was killed, with the state of its earlier life or as a new member."""
        if host_id in self.hosts.up:
            return
        life = Life(
            first=False,
            as_new=not keep_state,
            submitted=self.hosts.submitted(host_id),
            impairment=self._impairment(host_id),
            clock_step_ns=self._steps.get(host_id, 0),
        )
        self._wanted.add(host_id)
        self.hosts.start(host_id, life)
        self.hosts.order(host_id, Begin(self._start_ns))

    def join(self, node: NodeId, group: GroupId) -> None:
        """Let a receiver ask to join a group, if its host is up."""
        self._change("join", node, group)

    def leave(self, node: NodeId, group: GroupId) -> None:
        """Let a receiver ask to leave a group, if its host is up."""
        self._change("leave", node, group)

    def _change(self, request: Request, node: NodeId, group: GroupId) -> None:
        host = self._plan.nodes[node].host
        if host in self.hosts.up:
            self.hosts.order(host, ChangeMembers(request, node, group))

    def _impair(self) -> None:
        for host in self.hosts.up:
            self.hosts.order(host, Impair(self._impairment(host)))

    def _impairment(self, host: HostId) -> Impairment:
        conditions = self._conditions
        return Impairment(
            loss=conditions.loss,
            duplication=conditions.duplication,
            reordering=conditions.reordering,
            reorder_us=min(conditions.reorder_us, 60e6),
            latency_us=self._latency_us,
            blocked=tuple(sorted(to for source, to in self.blocked if source == host)),
            slowed=tuple((to, us) for (source, to), us in sorted(self._slowed.items()) if source == host),
        )
