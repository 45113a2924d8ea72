"""Draws the crashes of a swarm's scenario: which hosts crash for good, and which come back with what state.

Receivers and senders crash as far as the protocol's guarantees allow it. Infrastructure (sequencers, replicas
of a configuration service) crashes as the plan's nodes say. A host that runs both never crashes.
"""

from math import inf
from random import Random
from typing import Literal, NamedTuple

import msgspec

from ordercast.core import Crashes, Fault, HostId, Node, NodeId, Plan
from ordercast.scenario.faults import Crash, FaultSpec, Restart

LIVES = (1, 1, 2, 3, 6)
"""How often a host that comes back crashes; a host takes one of them."""

State = Literal["saved", "lost"]

_RETURNS: dict[Crashes | None, tuple[State, ...]] = {
    None: (),
    Crashes.NONE: ("saved",),
    Crashes.ONE: ("saved",),
    Crashes.MINORITY: ("saved",),
    Crashes.MINORITY_OF_ALL: ("saved",),
    Crashes.ALL_BUT_ONE: ("saved",),
    Crashes.ANY: ("saved", "lost"),
}
"""The states with which infrastructure may come back."""


class Phase(NamedTuple):
    """The phase of faults: how long it lasts, and whether the network heals after it."""

    faults_ms: float
    heals: bool = True
    calm_ms: float = 0.0
    """Nothing happens before this time."""

    @property
    def healed_ms(self) -> float:
        """When all faults are over: the hosts that should come back are up, and the network is good."""
        return 1.5 * self.faults_ms

    def strike(self, rng: Random) -> float:
        """When a fault strikes, in milliseconds; if the network never heals, later ones strike too."""
        return round(rng.uniform(self.calm_ms, self.faults_ms if self.heals else self.healed_ms), 3)


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


def counted_together(plan: Plan) -> dict[str, tuple[NodeId, ...]]:
    """The receivers among which crashes are counted, as the guarantees say: of each group, or of all."""
    if plan.guarantees.crashes is Crashes.MINORITY_OF_ALL:
        return {"all groups": tuple(sorted({node for members in plan.groups.values() for node in members}))}
    return {f"group {group}": members for group, members in plan.groups.items()}


def counted_later(plan: Plan) -> set[HostId]:
    """The hosts of receivers that count among the others as soon as they have joined a group."""
    anybody = plan.guarantees.crashes is Crashes.ANY
    return set() if anybody else {plan.nodes[node].host for node in plan.joiners}


def by_role(plan: Plan) -> dict[str, list[Node]]:
    """The nodes of each role of infrastructure."""
    roles: dict[str, list[Node]] = {}
    for node in plan.infrastructure():
        roles.setdefault(node.role, []).append(node)
    return roles


def draw_crashes(plan: Plan, phase: Phase, active: list[Fault], rng: Random) -> list[FaultSpec]:
    """Crashes of receivers and senders: some for good, as many as the guarantees allow, and some not."""
    faults: list[Crash | Restart] = []
    shared = {node.host for node in plan.infrastructure()}
    struck: set[HostId] = set()
    gone: list[NodeId] = []  # for good, or without their state
    states = _states(active)
    for members in counted_together(plan).values():
        bound = _bound(plan.guarantees.crashes, len(members))
        for_good = rng.randint(0, bound) if Fault.CRASH in active else 0
        for index, node in enumerate(rng.sample(members, len(members))):
            host = plan.nodes[node].host
            stays_down = index < for_good
            if host in struck or (not stays_down and not (states and rng.random() < 0.5)):
                continue
            lives = _lives(phase, states, stays_down, rng)
            if stays_down or any(life.state == "lost" for life in lives if isinstance(life, Restart)):
                if not may_go(node, gone, plan):
                    continue
                gone.append(node)
            struck.add(host)
            faults += [msgspec.structs.replace(life, host=host) for life in lives]
    receivers = {plan.nodes[node].host for members in plan.groups.values() for node in members}
    receivers |= counted_later(plan)
    for sender in plan.senders:
        host = plan.nodes[sender].host
        if host not in receivers and Fault.CRASH in active and rng.random() < 0.3:
            lives = _lives(phase, states, not states or rng.random() < 0.5, rng)
            faults += [msgspec.structs.replace(life, host=host) for life in lives]
    # Shared hosts were drawn too and count as gone, which errs on the safe side.
    return [fault for fault in faults if fault.host not in shared]


def draw_joiner_crashes(plan: Plan, phase: Phase, active: list[Fault], rng: Random) -> list[FaultSpec]:
    """Crashes of receivers that are in no group at the start; where they count, they keep their state."""
    counted = counted_later(plan)
    states = _states(active)
    shared = {plan.nodes[node].host for node in plan.senders}.union(n.host for n in plan.infrastructure())
    faults: list[FaultSpec] = []
    for node in plan.joiners:
        host = plan.nodes[node].host
        if host in counted:
            if "saved" in states and rng.random() < 0.3:
                lives = _lives(phase, ("saved",), stays_down=False, rng=rng)
                faults += [msgspec.structs.replace(life, host=host) for life in lives]
            continue
        if Fault.CRASH in active and rng.random() < 0.3 and host not in shared:
            lives = _lives(phase, states, not states or rng.random() < 0.5, rng)
            faults += [msgspec.structs.replace(life, host=host) for life in lives]
    return faults


def _states(active: list[Fault]) -> tuple[State, ...]:
    """The states with which receivers and senders may come back."""
    allowed: dict[State, Fault] = {"saved": Fault.RESTART, "lost": Fault.AMNESIA}
    return tuple(state for state, fault in allowed.items() if fault in active)


def _lives(phase: Phase, states: tuple[State, ...], stays_down: bool, rng: Random) -> list[Crash | Restart]:
    """The crashes and restarts of a host that is not named yet, in order.

    If a host may come back with its state and without it, half of the hosts do both.
    """
    count = rng.choice(LIVES) if states else 1
    mixed = states if rng.random() < 0.5 else (rng.choice(states),) if states else ()
    crashes = sorted(phase.strike(rng) for _ in range(count))
    lives: list[Crash | Restart] = []
    for crash, following in zip(crashes, [*crashes[1:], phase.healed_ms], strict=True):
        lives.append(Crash(at_ms=crash, host=0))
        if not (stays_down and crash == crashes[-1]):
            back = rng.choice((crash, round(rng.uniform(crash, following), 3)))
            lives.append(Restart(at_ms=back, host=0, state=rng.choice(mixed)))
    return lives


def draw_losses(plan: Plan, phase: Phase, others: list[FaultSpec], rng: Random) -> list[FaultSpec]:
    """Receivers that come back without their state, where each counts as gone for good.

    Some that crashed for good come back after all. Others crash in addition, as many as the guarantees allow.
    """
    ends: dict[HostId, FaultSpec] = {
        fault.host: fault for fault in others if isinstance(fault, Crash | Restart)
    }
    gone = [node.id for node in plan.nodes if isinstance(ends.get(node.host), Crash)]
    states: tuple[State, ...] = ("saved", "lost") if Fault.RESTART in plan.guarantees.tolerates else ("lost",)
    shared = {node.host for node in plan.infrastructure()}
    faults: list[FaultSpec] = []
    for members in counted_together(plan).values():
        for node in rng.sample(members, len(members)):
            host = plan.nodes[node].host
            free = host not in ends and may_go(node, gone, plan)
            if host in shared or not (free or node in gone) or rng.random() < 0.3:
                continue
            gone.append(node)
            faults += _losing_lives(ends.get(host), phase, host, states, rng)
            ends[host] = faults[-1]
    return faults


def _losing_lives(
    first: FaultSpec | None, phase: Phase, host: HostId, states: tuple[State, ...], rng: Random
) -> list[FaultSpec]:
    """The lives of a host after its first crash, which is drawn too unless it is given."""
    count = rng.choice(LIVES)
    begin = phase.strike(rng) if first is None else first.at_ms
    times = sorted(round(rng.uniform(begin, phase.healed_ms), 3) for _ in range(2 * count - 1))
    lives: list[FaultSpec] = [] if first is not None else [Crash(at_ms=begin, host=host)]
    for place, at_ms in enumerate(times):
        state = "lost" if place == 0 else rng.choice(states)
        lives.append(
            Crash(at_ms=at_ms, host=host) if place % 2 else Restart(at_ms=at_ms, host=host, state=state)
        )
    return lives


def draw_infrastructure_crashes(plan: Plan, phase: Phase, rng: Random) -> list[FaultSpec]:
    """One to six crashes of infrastructure. Most crashed hosts come back, and may crash again."""
    faults: list[FaultSpec] = []
    hosts = sorted({node.host for node in plan.infrastructure()})
    back_ms = {host: 0.0 for host in hosts if returns(plan, host)}
    roles = by_role(plan)
    gone: list[HostId] = []
    for at_ms in sorted(phase.strike(rng) for _ in range(rng.choice((1, 2, 3, 6)))):
        up = [host for host, since in back_ms.items() if since <= at_ms]
        if not up:
            break
        host = rng.choice(up)
        faults.append(Crash(at_ms=at_ms, host=host))
        if rng.random() < 0.25 and can_do_without(roles, {*gone, host}):
            gone.append(host)
            back_ms[host] = inf
            continue
        back_ms[host] = rng.choice((at_ms, round(rng.uniform(at_ms, phase.healed_ms), 3)))
        faults.append(Restart(at_ms=back_ms[host], host=host, state=rng.choice(returns(plan, host))))
    return faults


def can_do_without(roles: dict[str, list[Node]], gone: set[HostId]) -> bool:
    """Whether every role has enough nodes left without these hosts, and at least one node."""
    for nodes in roles.values():
        down = sum(node.host in gone for node in nodes)
        if down == len(nodes) or too_many(nodes[0].fails or Crashes.NONE, down, len(nodes)):
            return False
    return True


def may_go(node: NodeId, gone: list[NodeId], plan: Plan) -> bool:
    """Whether the others can go on without this receiver too."""
    return all(
        sum(other in gone for other in members) < _bound(plan.guarantees.crashes, len(members))
        for members in counted_together(plan).values()
        if node in members
    )


def _bound(crashes: Crashes, count: int) -> int:
    """How many of `count` nodes may be down for good."""
    minority = max(0, count - 1) // 2
    bounds = {
        Crashes.NONE: 0,
        Crashes.ONE: min(1, max(0, count - 1)),
        Crashes.MINORITY: minority,
        Crashes.MINORITY_OF_ALL: minority,
        Crashes.ALL_BUT_ONE: max(0, count - 1),
        Crashes.ANY: count,
    }
    return bounds[crashes]
