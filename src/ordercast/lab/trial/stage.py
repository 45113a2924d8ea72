"""The faults of a scenario, brought upon real host processes."""

import time
from typing import NamedTuple

from ordercast.core import MICROSECOND, HostId, Nanos
from ordercast.lab.trial.hosts import Hosts
from ordercast.lab.trial.setting import Setting
from ordercast.lab.trial.words import Begin, Impair, Life, StepClock
from ordercast.net.transports.impair import Impairment
from ordercast.sim import faults
from ordercast.sim.network import Conditions
from ordercast.sim.scenario import ConstantSpec, Scenario

READY_S = 60.0
LATENCY_MIN_US = 1000.0
"""A constant delay from here on is imitated; a shorter one is in the order of what loopback takes anyway."""


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


class Stage:
    """All hosts, the network between them, and what happens to both."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.hosts = Hosts(setting)
        self.blocked: set[tuple[HostId, HostId]] = set()
        """From, to."""
        self.crashes: list[CrashTime] = []
        self._conditions: Conditions = setting.scenario.network
        self._latency_us = latency_us(setting.scenario)
        self._steps: dict[HostId, Nanos] = {}
        self._resume: list[tuple[Nanos, HostId]] = []
        self._start_ns: Nanos = 0

    @property
    def calm(self) -> bool:
        """Whether the network loses, doubles and delays nothing."""
        bad = self._conditions
        return not (bad.loss or bad.duplication or bad.reordering)

    def open(self) -> None:
        """Start all hosts, and wait until they are up."""
        ids = sorted(self.setting.ports)
        for host in ids:
            self.hosts.start(host, Life(impairment=self._impairment(host)))
        self.hosts.await_ready(ids, READY_S)

    def begin(self, start_ns: Nanos) -> None:
        """Let the workload begin, at this reading of the monotonic clock."""
        self._start_ns = start_ns
        for host in self.hosts.up:
            self.hosts.order(host, Begin(start_ns))

    def strike(self, fault: faults.FaultSpec) -> None:
        """Bring a fault about."""
        match fault:
            case faults.Crash():
                self._crash(fault.host)
            case faults.Restart():
                self._restart(fault.host, keep=fault.state == "saved")
            case faults.Pause() if fault.host in self.hosts.up:
                self.hosts.pause(fault.host)
                self._resume.append((fault.ends_ns, fault.host))
            case faults.Partition():
                self._cut(fault)
            case faults.Heal():
                self.heal()
            case faults.Weather():
                self._conditions = fault.conditions
                self._impair()
            case faults.SetClock():
                step = round(fault.step_us * MICROSECOND)
                self._steps[fault.host] = self._steps.get(fault.host, 0) + step
                if fault.host in self.hosts.up:
                    self.hosts.order(fault.host, StepClock(step))

    def resume_due(self, now_ns: Nanos) -> None:
        """End the pauses that are over by now, counted from the start."""
        for due, host in [one for one in self._resume if one[0] <= now_ns]:
            self._resume.remove((due, host))
            if host in self.hosts.up and host not in [other for _, other in self._resume]:
                self.hosts.resume(host)

    @property
    def next_resume_ns(self) -> Nanos | None:
        """When the next pause ends."""
        return min((due for due, _ in self._resume), default=None)

    def heal(self) -> None:
        """Mend the network."""
        self.blocked.clear()
        self._conditions = Conditions()
        self._impair()

    def _crash(self, host: HostId) -> None:
        if host in self.hosts.up:
            ordered_ns = time.time_ns()
            self.hosts.kill(host)
            self.crashes.append(CrashTime(host, ordered_ns, time.time_ns()))

    def _restart(self, host: HostId, *, keep: bool) -> None:
        if host in self.hosts.up:
            return
        state = self.setting.cluster().state_path(host)
        if not keep:
            for path in state.parent.glob(f"{state.name}*"):
                path.unlink()
        submitted = self.hosts.submitted(host)
        life = Life(
            first=False,
            submitted=submitted,
            impairment=self._impairment(host),
            clock_step_ns=self._steps.get(host, 0),
        )
        self.hosts.start(host, life)
        self.hosts.order(host, Begin(self._start_ns))

    def _cut(self, fault: faults.Partition) -> None:
        for index, side in enumerate(fault.sides):
            for other in fault.sides[index + 1 :]:
                pairs = [(one, two) for one in side for two in other]
                self.blocked.update(pairs)
                if not fault.one_way:
                    self.blocked.update((two, one) for one, two in pairs)
        self._impair()

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
        )
