"""Draws the troubles of disks in a swarm's scenario: of hosts that no other fault stops.

A host whose saved state is damaged counts as gone for good, although it may come back as a new member. A host
whose disk refuses writes stops at its next save, or at a crash that is drawn too, and comes back with its
state if that is tolerated.
"""

from random import Random

from ordercast.core import Fault, HostId, Plan
from ordercast.scenario.crashes import (
    Phase,
    State,
    by_role,
    can_do_without,
    counted_later,
    may_go,
    returns,
)
from ordercast.scenario.faults import DAMAGES, Crash, Disk, DiskTrouble, FaultSpec, Restart

REFUSALS: tuple[DiskTrouble, ...] = ("io-error", "full", "read-only")
REFUSES_MS = (1.0, 20.0, 150.0)
SLOW_MS = (20.0, 200.0)


def draw_disk_faults(plan: Plan, phase: Phase, others: list[FaultSpec], rng: Random) -> list[FaultSpec]:
    """Troubles of one or two disks, in addition to other faults."""
    faults: list[FaultSpec] = []
    if rng.random() < 0.3:
        host = rng.choice(sorted({node.host for node in plan.nodes}))
        faults.append(Disk(at_ms=phase.strike(rng), host=host, what="slow", for_ms=rng.choice(SLOW_MS)))
    for _ in range(rng.randint(1, 2)):
        free = [host for host in _spared(plan, others + faults) if _may_lose(plan, host, others + faults)]
        if free:
            faults += _trouble(plan, rng.choice(free), phase, rng)
    return faults


def _trouble(plan: Plan, host: HostId, phase: Phase, rng: Random) -> list[FaultSpec]:
    """What happens to one disk, and to its host."""
    at_ms = phase.strike(rng)
    later = sorted(round(rng.uniform(at_ms, phase.healed_ms), 3) for _ in range(2))
    faults: list[FaultSpec]
    back = "saved" in _states(plan, host)
    if rng.random() < 0.7:
        back = back or not plan.must_remember(host)
        faults = [Disk(at_ms=at_ms, host=host, what=rng.choice(sorted(DAMAGES)))]
    else:
        refuses = rng.choice(REFUSES_MS)
        faults = [Disk(at_ms=at_ms, host=host, what=rng.choice(REFUSALS), for_ms=refuses)]
        later[1] = max(later[1], at_ms + refuses)  # it would stop again at once
    faults.append(Crash(at_ms=later[0], host=host))
    if back:
        faults.append(Restart(at_ms=later[1], host=host))
    return faults


def _states(plan: Plan, host: HostId) -> tuple[State, ...]:
    """The states with which a host may come back."""
    if any(node.host == host for node in plan.infrastructure()):
        return returns(plan, host)
    return ("saved",) if Fault.RESTART in plan.guarantees.tolerates else ()


def _spared(plan: Plan, faults: list[FaultSpec]) -> list[HostId]:
    """The hosts that no fault stops. A host with infrastructure and something else is never stopped."""
    stopped = {fault.host for fault in faults if isinstance(fault, Crash | Restart | Disk)}
    shared = {node.host for node in plan.infrastructure()} & {
        plan.nodes[node].host
        for node in (*plan.senders, *(n for nodes in plan.groups.values() for n in nodes))
    }
    return sorted({node.host for node in plan.nodes} - stopped - shared - counted_later(plan))


def _may_lose(plan: Plan, host: HostId, faults: list[FaultSpec]) -> bool:
    """Whether the others can go on without this host for good, and without those that are gone anyway."""
    gone = {*_gone(faults)}
    nodes = [node for node in plan.nodes if node.host == host]
    if any(node in plan.infrastructure() for node in nodes):
        return bool(returns(plan, host)) and can_do_without(by_role(plan), {*gone, host})
    down = [node.id for node in plan.nodes if node.host in gone]
    return all(may_go(node.id, down, plan) for node in nodes)


def _gone(faults: list[FaultSpec]) -> list[HostId]:
    """The hosts that are down at the end, that may be, or that have lost their state."""
    gone = [fault.host for fault in faults if isinstance(fault, Disk)]
    gone += [fault.host for fault in faults if isinstance(fault, Restart) and fault.state == "lost"]
    last: dict[HostId, FaultSpec] = {}
    for fault in sorted(faults, key=lambda fault: fault.at_ms):
        if isinstance(fault, Crash | Restart):
            last[fault.host] = fault
    return gone + [host for host, fault in last.items() if isinstance(fault, Crash)]
