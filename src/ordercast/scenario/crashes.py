"""Draws the crashes of a swarm's scenario: which hosts crash for good, and which come back with what state.

Receivers and senders crash as far as the protocol's guarantees allow it. Infrastructure (sequencers, replicas
of a configuration service) crashes as the plan's nodes say. A host that runs both never crashes.
"""

from math import inf
from random import Random
from typing import Literal

from ordercast.core import Crashes, Fault, HostId, Node, NodeId, Plan
from ordercast.scenario.faults import Crash, FaultSpec, Restart

FAULTS_MS = 400.0
"""About how long the phase of faults and submissions lasts."""
HEALED_MS = FAULTS_MS * 1.5
"""When all faults are over: the hosts that should come back are up, and the network is good."""

State = Literal["saved", "lost"]

_RETURNS: dict[Crashes | None, tuple[State, ...]] = {
    None: (),
    Crashes.NONE: ("saved",),
    Crashes.MINORITY: ("saved",),
    Crashes.ANY: ("saved", "lost"),
}
"""The states with which infrastructure may come back."""


def strike_time(rng: Random) -> float:
    """When a fault strikes, in milliseconds."""
    return round(rng.uniform(0, FAULTS_MS), 3)


def returns(plan: Plan, host: HostId) -> tuple[State, ...]:
    """The states with which a host of infrastructure may come back; all of its nodes must tolerate them.

    A host with a receiver or a sender has none: the protocol's guarantees cover those.
    """
    nodes = [node for node in plan.nodes if node.host == host]
    return tuple(
        state for state in _RETURNS[Crashes.ANY] if all(state in _RETURNS[node.fails] for node in nodes)
    )


def too_many(bound: Crashes, down: int, count: int) -> bool:
    """Whether too many of `count` nodes are down: more than may be down for good."""
    return down > _bound(bound, count)


def by_role(plan: Plan) -> dict[str, list[Node]]:
    """The nodes of each role of infrastructure."""
    roles: dict[str, list[Node]] = {}
    for node in plan.infrastructure():
        roles.setdefault(node.role, []).append(node)
    return roles


def draw_crashes(plan: Plan, active: list[Fault], rng: Random) -> list[FaultSpec]:
    """Crashes of receivers and senders: some for good, as many as the guarantees allow, and some not."""
    faults: list[Crash | Restart] = []
    shared = {node.host for node in plan.infrastructure()}
    struck: list[HostId] = []
    gone: list[NodeId] = []  # for good, or without their state
    state: State = "saved" if Fault.RESTART in active else "lost"
    can_return = Fault.RESTART in active or Fault.AMNESIA in active
    for members in plan.groups.values():
        bound = _bound(plan.guarantees.crashes, len(members))
        for_good = rng.randint(0, bound) if Fault.CRASH in active else 0
        for index, node in enumerate(rng.sample(members, len(members))):
            host = plan.nodes[node].host
            stays_down = index < for_good
            if host in struck or (not stays_down and not (can_return and rng.random() < 0.5)):
                continue
            # A receiver that comes back without its state counts as gone.
            if stays_down or state == "lost":
                if not _may_go(node, gone, plan):
                    continue
                gone.append(node)
            struck.append(host)
            crash = Crash(at_ms=strike_time(rng), host=host)
            faults.append(crash)
            if not stays_down:
                when = rng.choice((crash.at_ms, rng.uniform(crash.at_ms, HEALED_MS)))
                faults.append(Restart(at_ms=when, host=host, state=state))
    receivers = {plan.nodes[node].host for members in plan.groups.values() for node in members}
    for sender in plan.senders:
        host = plan.nodes[sender].host
        if host not in receivers and Fault.CRASH in active and rng.random() < 0.3:
            faults.append(Crash(at_ms=strike_time(rng), host=host))
            if can_return and rng.random() < 0.5:
                faults.append(Restart(at_ms=FAULTS_MS, host=host, state=state))
    # Shared hosts were drawn too and count as gone, which errs on the safe side.
    return [fault for fault in faults if fault.host not in shared]


def draw_infrastructure_crashes(plan: Plan, rng: Random) -> list[FaultSpec]:
    """One to three crashes of infrastructure. Most crashed hosts come back, and may crash again."""
    faults: list[FaultSpec] = []
    hosts = sorted({node.host for node in plan.infrastructure()})
    back_ms = {host: 0.0 for host in hosts if returns(plan, host)}
    roles = by_role(plan)
    gone: list[HostId] = []
    for at_ms in sorted(strike_time(rng) for _ in range(rng.randint(1, 3))):
        up = [host for host, since in back_ms.items() if since <= at_ms]
        if not up:
            break
        host = rng.choice(up)
        faults.append(Crash(at_ms=at_ms, host=host))
        if rng.random() < 0.25 and _can_do_without(roles, {*gone, host}):
            gone.append(host)
            back_ms[host] = inf
            continue
        back_ms[host] = rng.choice((at_ms, round(rng.uniform(at_ms, HEALED_MS), 3)))
        faults.append(Restart(at_ms=back_ms[host], host=host, state=rng.choice(returns(plan, host))))
    return faults


def _can_do_without(roles: dict[str, list[Node]], gone: set[HostId]) -> bool:
    """Whether every role has enough nodes left without these hosts, and at least one node."""
    for nodes in roles.values():
        down = sum(node.host in gone for node in nodes)
        if down == len(nodes) or too_many(nodes[0].fails or Crashes.NONE, down, len(nodes)):
            return False
    return True


def _may_go(node: NodeId, gone: list[NodeId], plan: Plan) -> bool:
    """Whether every group of a receiver can lose this receiver too."""
    return all(
        sum(other in gone for other in members) < _bound(plan.guarantees.crashes, len(members))
        for members in plan.groups.values()
        if node in members
    )


def _bound(crashes: Crashes, count: int) -> int:
    """How many of `count` nodes may be down for good."""
    return {Crashes.NONE: 0, Crashes.MINORITY: max(0, count - 1) // 2, Crashes.ANY: count}[crashes]
