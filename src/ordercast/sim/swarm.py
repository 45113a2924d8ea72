"""Swarm testing: one seed draws a whole scenario, faults and all, within what a protocol promises to bear.

Each kind of misfortune is switched on or off by a coin of its own, so that seeds differ in kind and not
only in degree. Faults happen while messages flow; then everything heals (what crashed comes back, as
far as the protocol needs it to), and what should be delivered must be.
"""

from random import Random
from typing import Literal

from ordercast.core import Crashes, Fault, Guarantees, HostId
from ordercast.protocols import find_protocol
from ordercast.sim.faults import Crash, FaultSpec, Heal, Partition, Pause, Restart, SetClock
from ordercast.sim.host import Cpu
from ordercast.sim.scenario import (
    ChiSquareSpec,
    ClocksSpec,
    ConstantSpec,
    NetworkSpec,
    Scenario,
    SimpleLatency,
    UniformSpec,
    WorkloadSpec,
)

FAULTS_MS = 400.0
"""How long the phase of faults and submissions lasts, about."""


def swarm_scenario(
    protocol: str, seed: int, guarantees: Guarantees | None = None, only: Fault | None = None
) -> Scenario:
    """The scenario that a seed stands for; `only` leaves all but one kind of fault away."""
    promised = guarantees or find_protocol(protocol).guarantees
    rng = Random(f"{seed}/swarm")
    faults = [fault for fault in promised.tolerates if only in (None, fault)]
    active = [fault for fault in faults if only or rng.random() < 0.5]
    groups, senders = rng.choice((1, 1, 2, 3)), rng.randint(1, 4)
    receivers = rng.choice((1, 2, 3, 3, 4, 5))
    colocated = rng.random() < 0.2
    messages = rng.randint(20, 120)
    shares = tuple(rng.random() for _ in range(rng.randint(1, groups)))
    return Scenario(
        protocol=protocol,
        name=f"swarm {seed}",
        seed=seed,
        groups=groups,
        receivers=receivers,
        senders=senders,
        colocated=colocated,
        network=_network(active, rng),
        cpu=_cpu(rng),
        clocks=_clocks(active, rng),
        workload=WorkloadSpec(
            kind=rng.choice(("poisson", "poisson", "periodic", "closed")),
            messages=messages,
            rate_per_s=messages / senders / (FAULTS_MS / 1000) * rng.uniform(0.8, 3.0),
            jitter=rng.choice((0.0, 0.01, 0.5)),
            bytes=rng.choice((0, 8, 64, 1000)),
            spread=shares,
            outstanding=rng.randint(1, 8),
            timeout_ms=rng.uniform(50, 200),
        ),
        fault=tuple(_schedule(promised, active, (groups, receivers, 0 if colocated else senders), rng)),
        settle_ms=5000,
        bundle_bytes=rng.choice((0, 0, 1400)),
        codec=rng.random() < 0.25,
    )


def _latency(rng: Random) -> SimpleLatency:
    scale = rng.choice((10.0, 100.0, 1000.0, 3000.0))
    return rng.choice(
        (
            ConstantSpec(scale),
            UniformSpec(scale / 10, scale),
            ChiSquareSpec(scale, scale / 3),
        )
    )


def _network(active: list[Fault], rng: Random) -> NetworkSpec:
    return NetworkSpec(
        latency=_latency(rng),
        loss=rng.choice((0.001, 0.01, 0.1, 0.2)) if Fault.LOSS in active else 0.0,
        duplication=rng.choice((0.01, 0.1, 0.3)) if Fault.DUPLICATION in active else 0.0,
        reordering=rng.choice((0.01, 0.1, 0.5)) if Fault.REORDERING in active else 0.0,
        reorder_us=rng.choice((100.0, 1000.0, 10_000.0)),
    )


def _cpu(rng: Random) -> Cpu:
    cost = rng.choice((0, 0, 500, 5000))
    return Cpu(
        receive_ns=cost,
        send_ns=cost // 2,
        save_ns=rng.choice((0, 0, 20_000)),
        copies=rng.random() < 0.5,
    )


def _clocks(active: list[Fault], rng: Random) -> ClocksSpec:
    if Fault.CLOCK not in active:
        return ClocksSpec()
    return ClocksSpec(rng.choice((10.0, 1000.0, 50_000.0)), rng.choice((0.0, 10.0, 1000.0)))


def _schedule(
    promised: Guarantees, active: list[Fault], shape: tuple[int, int, int], rng: Random
) -> list[FaultSpec]:
    groups, receivers, senders = shape
    hosts = list(range(groups * receivers + senders))
    faults: list[FaultSpec] = []
    if Fault.PAUSE in active:
        faults += [
            Pause(at_ms=_when(rng), host=rng.choice(hosts), for_ms=rng.uniform(1, 100))
            for _ in range(rng.randint(1, 4))
        ]
    if Fault.CLOCK in active:
        faults += [
            SetClock(at_ms=_when(rng), host=rng.choice(hosts), step_us=rng.uniform(-50_000, 50_000))
            for _ in range(rng.randint(0, 3))
        ]
    if Fault.PARTITION in active:
        faults += _partitions(hosts, rng)
    faults += _crashes(promised, active, shape, rng)
    return [*sorted(faults, key=lambda fault: fault.at_ms), Heal(at_ms=FAULTS_MS * 1.5)]


def _partitions(hosts: list[HostId], rng: Random) -> list[FaultSpec]:
    """Full, partial and one-way cuts; some end before the others begin."""
    faults: list[FaultSpec] = []
    if len(hosts) < 2:
        return faults
    for _ in range(rng.randint(1, 3)):
        shuffled = rng.sample(hosts, len(hosts))
        cut = rng.randint(1, len(hosts) - 1)
        end = len(hosts) if rng.random() < 0.6 else rng.randint(cut + 1, len(hosts))
        sides = (tuple(shuffled[:cut]), tuple(shuffled[cut:end]))
        faults.append(Partition(at_ms=_when(rng), sides=sides, one_way=rng.random() < 0.3))
    return faults


def _crashes(
    promised: Guarantees, active: list[Fault], shape: tuple[int, int, int], rng: Random
) -> list[FaultSpec]:
    groups, receivers, senders = shape
    returns: list[Restart] = []
    faults: list[FaultSpec] = []
    bound = {Crashes.NONE: 0, Crashes.MINORITY: (receivers - 1) // 2, Crashes.ANY: receivers}
    state: Literal["saved", "lost"] = "saved" if Fault.RESTART in active else "lost"
    can_return = Fault.RESTART in active or Fault.AMNESIA in active
    for group in range(groups):
        members = rng.sample(range(group * receivers, (group + 1) * receivers), receivers)
        for_good = rng.randint(0, bound[promised.crashes]) if Fault.CRASH in active else 0
        for index, host in enumerate(members):
            if index >= for_good and not (can_return and rng.random() < 0.5):
                continue
            crash = Crash(at_ms=_when(rng), host=host)
            faults.append(crash)
            if index >= for_good:
                back = rng.choice((crash.at_ms, rng.uniform(crash.at_ms, FAULTS_MS * 1.5)))
                returns.append(Restart(at_ms=back, host=host, state=state))
    first_sender = groups * receivers
    for host in range(first_sender, first_sender + senders):
        if Fault.CRASH in active and rng.random() < 0.3:
            faults.append(Crash(at_ms=_when(rng), host=host))
            if can_return and rng.random() < 0.5:
                returns.append(Restart(at_ms=FAULTS_MS, host=host, state=state))
    return [*faults, *returns]


def _when(rng: Random) -> float:
    return round(rng.uniform(0, FAULTS_MS), 3)
