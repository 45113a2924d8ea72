"""Swarm testing: one seed draws a whole scenario, with faults that the protocol promises to tolerate.

Each kind of fault is switched on or off at random, so that seeds differ in kind and not only in degree.
Faults happen while messages flow. Then, in most seeds, everything heals: crashed hosts come back, as far as
the protocol needs them, messages flow for a while, and all that should be delivered must be delivered. In
some seeds the network stays as it is until the end. Every seed is judged for liveness.
"""

from collections.abc import Callable
from random import Random

import msgspec

from ordercast.catalogue import find_protocol
from ordercast.core import Consistency, Deployment, Fault, HostId, LocalError, Plan
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.crashes import (
    Phase,
    draw_crashes,
    draw_infrastructure_crashes,
    draw_joiner_crashes,
    draw_losses,
)
from ordercast.scenario.disks import draw_disk_faults
from ordercast.scenario.faults import FaultSpec, Heal, Partition, Pause, SetClock, Weather
from ordercast.scenario.overlaps import draw_overlaps
from ordercast.scenario.spec import (
    ChiSquareSpec,
    ClocksSpec,
    ConstantSpec,
    LatencySpec,
    LinksSpec,
    NetworkSpec,
    Scenario,
    SimpleLatency,
    SitesSpec,
    UniformSpec,
    WorkloadSpec,
)
from ordercast.scenario.turnover import draw_changes, draw_joiners
from ordercast.services import PLAIN, SHARDED
from ordercast.toml_file import about

MakePlan = Callable[[Deployment], Plan]

DISK_SHARE = 0.25
"""The share of seeds in which disks have troubles."""
AMNESIA_SHARE = 0.25
"""The share of seeds in which receivers lose their state, where that counts like a crash for good."""
SERVICE_SHARE = 0.9
"""The share of seeds in which a protocol that replicates services has one."""
FAULTS_MS = (400.0, 400.0, 400.0, 1600.0)
"""How long the phase of faults lasts; a seed takes one. In a long one, protocols recover in between."""


def swarm_scenario(
    protocol: str, seed: int, make_plan: MakePlan | None = None, only: Fault | None = None
) -> Scenario:
    """The scenario that a seed stands for.

    If `make_plan` is given, it makes the plan instead of the protocol; otherwise the seed draws
    the protocol's options too. `only` restricts the faults to one kind.
    """
    # Options and infrastructure have separate streams: a protocol without them draws the same scenario.
    rng = Random(f"{seed}/swarm")
    groups, senders = rng.choice((1, 1, 2, 3)), rng.randint(1, 4)
    messages = rng.randint(20, 120)
    faults_ms = rng.choice(FAULTS_MS)
    phase = Phase(faults_ms, rng.random() < 0.85, calm_ms=faults_ms * rng.choice((0, 0, 0.6)))
    calm = Scenario(
        protocol=protocol,
        name=f"swarm {seed}",
        seed=seed,
        groups=groups,
        receivers=rng.choice((1, 2, 3, 3, 4, 5)),
        senders=senders,
        colocated=rng.random() < 0.2,
        options={} if make_plan else _options(protocol, Random(f"{seed}/options")),
        cpu=_cpu(rng),
        workload=WorkloadSpec(
            kind=rng.choice(("poisson", "poisson", "periodic", "closed")),
            messages=messages,
            rate_per_s=messages / senders / (phase.faults_ms / 1000) * rng.uniform(0.4, 3.0),
            jitter=rng.choice((0.0, 0.01, 0.5)),
            bytes=rng.choice((0, 8, 64, 1000)),
            spread=tuple(rng.random() for _ in range(rng.randint(1, groups))),
            outstanding=rng.randint(1, 8),
            timeout_ms=rng.uniform(50, 200),
        ),
        settle_ms=3000,
        liveness=True,
        bundle_bytes=rng.choice((0, 0, 1400)),
        codec=rng.random() < 0.25,
    )
    calm, plan = _deploy(calm, make_plan, rng)
    # So have groups that overlap, where that is what a protocol is about.
    overlapping = draw_overlaps(plan, Random(f"{seed}/overlaps"))
    if overlapping:
        calm = msgspec.structs.replace(calm, membership=overlapping)
        plan = _plan(calm, make_plan)
    # So have services, and so calls of their clients stay as they are if anything else changes.
    served = draw_service(calm, plan, Random(f"{seed}/service"))
    if served.service:
        calm, plan = served, _plan(served, make_plan)
    # So have changes of members.
    members = Random(f"{seed}/members")
    joiners = None if only or calm.workload.kind == "closed" else draw_joiners(plan, members)
    if joiners:
        calm = msgspec.structs.replace(calm, joiners=joiners)
        plan = _plan(calm, make_plan)
    # Troubles of disks have a stream of their own, too, and so have receivers that lose their state where
    # each of them counts as gone for good.
    apart = {Fault.DISK} if plan.guarantees.churns else {Fault.DISK, Fault.AMNESIA}
    faults: list[Fault] = [
        fault for fault in plan.guarantees.tolerates if only in (None, fault) and fault not in apart
    ]
    active: list[Fault] = [fault for fault in faults if only or rng.random() < 0.5]
    spread = calm.workload.spread[: plan.groups_max]
    hosts = sorted({node.host for node in plan.nodes})
    infrastructure = Random(f"{seed}/infrastructure")
    network, weather = _network(phase, active, hosts, rng)
    struck = weather + _faults(plan, phase, hosts, active, rng, infrastructure)
    if Fault.AMNESIA in apart:
        struck += _losses(plan, phase, struck, only, Random(f"{seed}/amnesia"))
    struck += _disk_faults(plan, phase, struck, only, Random(f"{seed}/disks"))
    if joiners:
        struck += draw_joiner_crashes(plan, phase, active, members)
    struck.sort(key=lambda fault: fault.at_ms)
    changes = [] if joiners is None else draw_changes(plan, phase, members)
    return msgspec.structs.replace(
        calm,
        workload=msgspec.structs.replace(calm.workload, spread=spread),
        network=network,
        clocks=_clocks(active, rng),
        fault=(*struck, Heal(at_ms=phase.healed_ms)) if phase.heals else tuple(struck),
        join=tuple(change for change in changes if isinstance(change, Join)),
        leave=tuple(change for change in changes if isinstance(change, Leave)),
    )


def draw_service(scenario: Scenario, plan: Plan, rng: Random) -> Scenario:
    """The scenario with a service, in most seeds, if its protocol replicates services."""
    if plan.guarantees.consistency is Consistency.NONE or rng.random() >= SERVICE_SHARE:
        return scenario
    names = sorted(SHARDED if plan.shards else PLAIN)
    workload = msgspec.structs.replace(scenario.workload, reads=rng.choice((0.0, 0.3, 0.5, 0.9)))
    return msgspec.structs.replace(scenario, service=rng.choice(names), workload=workload)


def _losses(
    plan: Plan, phase: Phase, struck: list[FaultSpec], only: Fault | None, rng: Random
) -> list[FaultSpec]:
    """Receivers that lose their state, in some seeds."""
    share = {None: AMNESIA_SHARE, Fault.AMNESIA: 1.0}.get(only, 0.0)
    if Fault.AMNESIA not in plan.guarantees.tolerates or rng.random() >= share:
        return []
    return draw_losses(plan, phase, struck, rng)


def _disk_faults(
    plan: Plan, phase: Phase, struck: list[FaultSpec], only: Fault | None, rng: Random
) -> list[FaultSpec]:
    """Troubles of disks in some seeds; they have a stream of their own, so other seeds stay as they are."""
    share = {None: DISK_SHARE, Fault.DISK: 1.0}.get(only, 0.0)
    if Fault.DISK not in plan.guarantees.tolerates or rng.random() >= share:
        return []
    return draw_disk_faults(plan, phase, struck, rng)


def _options(protocol: str, rng: Random) -> dict[str, object]:
    with about("protocol"):
        return find_protocol(protocol).vary(rng)


def _deploy(calm: Scenario, make_plan: MakePlan | None, rng: Random) -> tuple[Scenario, Plan]:
    """The plan of a scenario; sometimes with overlapping groups, if the protocol allows them."""
    everyone = range(max(2, calm.receivers))
    groups = [tuple(sorted(rng.sample(everyone, rng.randint(1, len(everyone))))) for _ in range(calm.groups)]
    strangers = set(everyone) - {node for members in groups for node in members}
    if calm.groups > 1 and rng.random() < 0.3:
        groups[0] = tuple(sorted({*groups[0], *strangers}))
        overlapping = msgspec.structs.replace(calm, membership=tuple(groups))
        try:
            return overlapping, _plan(overlapping, make_plan)
        except LocalError:
            pass  # the protocol does not allow overlapping groups
    if calm.colocated and calm.groups * calm.receivers == 1:
        try:
            return calm, _plan(calm, make_plan)
        except LocalError:  # the options name a second node
            calm = msgspec.structs.replace(calm, colocated=False)
    return calm, _plan(calm, make_plan)


def _plan(scenario: Scenario, make_plan: MakePlan | None) -> Plan:
    return make_plan(scenario.deployment()) if make_plan else scenario.plan()


def _latency(hosts: list[HostId], rng: Random) -> LatencySpec:
    scale = rng.choice((10.0, 100.0, 1000.0, 3000.0))
    simple: tuple[SimpleLatency, ...] = (
        ConstantSpec(scale),
        UniformSpec(scale / 10, scale),
        ChiSquareSpec(scale, scale / 3),
    )
    kind = rng.random()
    if kind < 0.1:
        return LinksSpec(rng.choice(("star", "leaf-spine")), 1.0, 4.0, scale / 10, hosts_a_leaf=3)
    if kind < 0.2:
        site = tuple(rng.sample(hosts, (len(hosts) + 1) // 2))
        return SitesSpec((site, tuple(host for host in hosts if host not in site)), simple[1], simple[2])
    return rng.choice(simple)


def _network(
    phase: Phase, active: list[Fault], hosts: list[HostId], rng: Random
) -> tuple[NetworkSpec, list[FaultSpec]]:
    """The network at the start, and how its conditions change: bad from the start, or later, or twice."""
    first, conditions, latency = Conditions(), _conditions(active, rng), _latency(hosts, rng)
    changes: list[FaultSpec] = []
    if phase.calm_ms or rng.random() < 0.3:
        changes.append(Weather(at_ms=phase.strike(rng), conditions=conditions))
    else:
        first = conditions
    if rng.random() < 0.3:
        changes.append(Weather(at_ms=phase.strike(rng), conditions=_conditions(active, rng)))
    return NetworkSpec(latency=latency, **msgspec.structs.asdict(first)), changes


def _conditions(active: list[Fault], rng: Random) -> Conditions:
    return Conditions(
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


def _faults(
    plan: Plan, phase: Phase, hosts: list[HostId], active: list[Fault], rng: Random, infrastructure: Random
) -> list[FaultSpec]:
    faults: list[FaultSpec] = []
    if Fault.PAUSE in active:
        faults += [
            Pause(at_ms=phase.strike(rng), host=rng.choice(hosts), for_ms=rng.uniform(1, 100))
            for _ in range(rng.randint(1, 4))
        ]
    if Fault.CLOCK in active:
        faults += [
            SetClock(at_ms=phase.strike(rng), host=rng.choice(hosts), step_us=rng.uniform(-50_000, 50_000))
            for _ in range(rng.randint(0, 3))
        ]
    if Fault.PARTITION in active:
        faults += _partitions(phase, hosts, rng)
    faults += draw_crashes(plan, phase, active, rng)
    if Fault.CRASH in active:
        faults += draw_infrastructure_crashes(plan, phase, infrastructure)
    return faults


def _partitions(phase: Phase, hosts: list[HostId], rng: Random) -> list[FaultSpec]:
    """Full, partial and one-way cuts; sometimes everything heals in between."""
    faults: list[FaultSpec] = []
    if len(hosts) < 2:
        return faults
    if rng.random() < 0.3:
        faults.append(Heal(at_ms=phase.strike(rng)))
    for _ in range(rng.randint(1, 3)):
        shuffled = rng.sample(hosts, len(hosts))
        cut = rng.randint(1, len(hosts) - 1)
        end = len(hosts) if rng.random() < 0.6 else rng.randint(cut + 1, len(hosts))
        sides = (tuple(shuffled[:cut]), tuple(shuffled[cut:end]))
        faults.append(Partition(at_ms=phase.strike(rng), sides=sides, one_way=rng.random() < 0.3))
    return faults
