"""Stretches of time in which a protocol must go on although faults last.

`partition` and `crashes` of the guarantees say how much of a cluster is enough. As long as so much is up,
connected with each other and cut off from the rest, both ways or one way, on a network that loses and delays
nothing, receivers may be silent only for the time in which the plan promises to recover.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from ordercast.core import MICROSECOND, Crashes, HostId, Membership, Nanos, NodeId, Pace, Partition, Plan
from ordercast.scenario import faults
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.crashes import by_role, counted_together, too_many
from ordercast.scenario.spec import (
    ChiSquareSpec,
    ConstantSpec,
    LatencySpec,
    LinksSpec,
    NetworkSpec,
    Scenario,
    SitesSpec,
    UniformSpec,
)
from ordercast.trace import Stretch

STANDARD_DEVIATIONS = 6
"""A chi-square distribution has no upper bound, but hardly any delay is further above the mean."""
HOPS = 6
"""The longest way through a network of links, in links; at most one of them has a full queue."""
KIBIBITS = 8192
EACH_SIDE = (Partition.EACH_SIDE_CONTINUES, Partition.SIDE_BRANCHES_DISCARDED)
"""Each side of a partition goes on, however small it is."""


def stretches_of(scenario: Scenario, plan: Plan, end: Nanos) -> tuple[Stretch, ...]:
    """The stretches in which the protocol must go on, in a run of a scenario that ended at this time."""
    pace = pace_of(scenario, plan)
    if pace is None:
        return ()
    found = []
    for begin, until, hosts in _sides(scenario, plan, end):
        first = begin + pace.recovery_ns if begin else 0
        if until - first > pace.delivery_ns and _enough(scenario, plan, hosts):
            found.append(Stretch(first, until, pace.delivery_ns, *_ends(plan, hosts)))
    return tuple(found)


def pace_of(scenario: Scenario, plan: Plan) -> Pace | None:
    """The pace that the plan promises in this scenario; None if it promises none, or nobody asks."""
    delay = _longest_delay(scenario.network) if scenario.liveness else None
    pace = None if delay is None else plan.pace(delay)
    if pace is None:
        return None
    spread = _clock_spread(scenario)
    return Pace(pace.delivery_ns + spread, pace.recovery_ns + spread)


def _ends(plan: Plan, hosts: AbstractSet[HostId]) -> tuple[tuple[NodeId, ...], tuple[NodeId, ...]]:
    """The senders and the receivers on some hosts."""
    receivers = sorted(set(plan.joiners).union(*plan.groups.values()))
    senders, receivers = (
        [node for node in nodes if plan.nodes[node].host in hosts] for nodes in (plan.senders, receivers)
    )
    return tuple(senders), tuple(receivers)


# Time


class _Surroundings:
    """The hosts that are up and the links that are cut, as faults change them: a `FaultTarget`."""

    def __init__(self, scenario: Scenario, plan: Plan) -> None:
        self._plan = plan
        self.up = {node.host for node in plan.nodes}
        self._damaged: set[HostId] = set()
        self.cut_links: set[tuple[HostId, HostId]] = set()
        self.slow_links: set[tuple[HostId, HostId]] = set()
        self.conditions: Conditions = scenario.network
        self.paused = 0

    def crash(self, host_id: HostId) -> None:
        self.up.discard(host_id)

    def restart(self, host_id: HostId, *, keep_state: bool = True) -> None:
        if not (keep_state and host_id in self._damaged and self._plan.must_remember(host_id)):
            self.up.add(host_id)
            self._damaged.discard(host_id)

    def strike_disk(self, host_id: HostId, what: faults.DiskTrouble, duration: Nanos) -> None:
        if what in faults.DAMAGES:
            self._damaged.add(host_id)
        elif what == "slow":
            self.paused += 1
        else:  # it stops with its next save, whenever that is
            self.up.discard(host_id)

    def pause(self, host_id: HostId, duration: Nanos) -> None:
        self.paused += 1

    def step_clock(self, host_id: HostId, by_ns: Nanos) -> None:
        pass

    def cut(self, links: Iterable[tuple[HostId, HostId]]) -> None:
        self.cut_links.update(links)

    def slow(self, links: Iterable[tuple[HostId, HostId]], by_ns: Nanos) -> None:
        if by_ns:
            self.slow_links.update(links)
        else:
            self.slow_links.difference_update(links)

    def set_conditions(self, conditions: Conditions) -> None:
        self.conditions = conditions

    def heal(self) -> None:
        self.cut_links.clear()
        self.slow_links.clear()
        self.conditions = Conditions()

    def good(self) -> bool:
        """Whether no packet is lost or held up."""
        return not (self.conditions.loss or self.conditions.reordering or self.paused or self.slow_links)


def _sides(scenario: Scenario, plan: Plan, end: Nanos) -> Iterator[tuple[Nanos, Nanos, frozenset[HostId]]]:
    """For each time between two faults without bad conditions: its begin, its end, and each side's hosts."""
    changes = [change for change in _changes(scenario, plan) if change[0] < end]
    for (begin, sides), (until, _) in pairwise((*changes, (end, ()))):
        for side in sides:
            yield begin, until, side


def _changes(scenario: Scenario, plan: Plan) -> Iterator[tuple[Nanos, tuple[frozenset[HostId], ...]]]:
    """When the surroundings change, and the sides from then on; none while conditions are bad."""
    now = _Surroundings(scenario, plan)
    awake = _ends_of_pauses(scenario)
    strikes = {fault.at_ns for fault in scenario.fault}.union(awake)
    changes = {one.at_ns for one in scenario.changes} if _changes_views(scenario, plan) else set()
    before = None
    for at_ns in sorted({0} | strikes | changes):
        struck = [fault for fault in scenario.fault if fault.at_ns == at_ns]
        for fault in struck:
            fault.strike(now)
        now.paused -= awake.count(at_ns)
        sides = tuple(_separate(now.up, now.cut_links)) if now.good() else ()
        restarted = any(isinstance(fault, faults.Restart) for fault in struck)
        if sides != before or restarted or at_ns in changes:
            yield at_ns, sides
        before = sides


def _ends_of_pauses(scenario: Scenario) -> list[Nanos]:
    """When each pause ends, and each time of a slow disk; a pause within another makes that one longer."""
    ends: list[Nanos] = []
    until: dict[HostId, Nanos] = {}
    for fault in scenario.fault:
        if isinstance(fault, faults.Pause):
            until[fault.host] = max(until.get(fault.host, 0), fault.at_ns) + fault.ends_ns - fault.at_ns
            ends.append(until[fault.host])
        elif isinstance(fault, faults.Disk) and fault.what == "slow":
            ends.append(fault.ends_ns)
    return ends


def _separate(
    up: AbstractSet[HostId], cut: AbstractSet[tuple[HostId, HostId]]
) -> Iterator[frozenset[HostId]]:
    """The sets of hosts that all reach each other, and that no other host exchanges packets with.

    A host that hears a whole set and is heard by none of it, or the other way round, does not belong to it.
    """
    left = set(up)
    while left:
        side, edge = set(), [min(left)]
        while edge:
            host = edge.pop()
            side.add(host)
            edge += [h for h in left - side if h not in edge and not {(host, h), (h, host)} & cut]
        left -= side
        inside = any(one in side and other in side for one, other in cut)
        if not inside and all(_apart(side, other, cut) for other in up - side):
            yield frozenset(side)


def _apart(side: AbstractSet[HostId], other: HostId, cut: AbstractSet[tuple[HostId, HostId]]) -> bool:
    """Whether a host hears none of a side, or none of the side hears it."""
    return all((host, other) in cut for host in side) or all((other, host) in cut for host in side)


# Enough of a cluster


def _enough(scenario: Scenario, plan: Plan, hosts: AbstractSet[HostId]) -> bool:
    """Whether these hosts are enough for the protocol to go on."""
    if _changes_views(scenario, plan) and not {node.host for node in plan.nodes} <= hosts:
        return False  # what is enough depends on the view, which the plan does not know
    return _enough_receivers(plan, hosts) and _enough_infrastructure(plan, hosts)


def _changes_views(scenario: Scenario, plan: Plan) -> bool:
    return bool(scenario.changes) and plan.guarantees.membership is Membership.VIEWS


def _enough_receivers(plan: Plan, hosts: AbstractSet[HostId]) -> bool:
    promised = plan.guarantees
    for members in counted_together(plan).values():
        missing = sum(plan.nodes[node].host not in hosts for node in members)
        if too_many(promised.crashes, missing, len(members)):
            return False
        if promised.partition not in EACH_SIDE and 2 * missing >= max(1, len(members)):
            return False
        if promised.partition is Partition.BLOCKS and missing:
            return False
    return True


def _enough_infrastructure(plan: Plan, hosts: AbstractSet[HostId]) -> bool:
    for nodes in by_role(plan).values():
        missing = sum(node.host not in hosts for node in nodes)
        if missing == len(nodes) or too_many(nodes[0].fails or Crashes.NONE, missing, len(nodes)):
            return False
    return True


# Delays


def _longest_delay(network: NetworkSpec) -> Nanos | None:
    """The longest time that a packet needs; None if nothing is known about it."""
    longest = None if network.background is not None else _longest_us(network.latency)
    return None if longest is None else round(longest * MICROSECOND)


def _longest_us(spec: LatencySpec) -> float | None:
    match spec:
        case ConstantSpec():
            return spec.us
        case UniformSpec():
            return spec.high_us
        case ChiSquareSpec():
            return spec.mean_us + STANDARD_DEVIATIONS * spec.std_us
        case SitesSpec():
            return _longest_of((spec.near, spec.far))
        case LinksSpec():
            narrowest = min(spec.host_gbps, spec.fabric_gbps, *spec.role_gbps.values())
            return HOPS * spec.propagation_us + spec.queue_kib * KIBIBITS / (1000 * narrowest)
    return None


def _longest_of(specs: Sequence[LatencySpec]) -> float | None:
    longest = [_longest_us(spec) for spec in specs]
    known = [us for us in longest if us is not None]
    return max(known) if len(known) == len(specs) else None


def _clock_spread(scenario: Scenario) -> Nanos:
    """How far the clocks of two hosts may be apart, apart from their drift over the run, which is small."""
    steps = sum(abs(f.step_us) for f in scenario.fault if isinstance(f, faults.SetClock))
    return round((scenario.clocks.skew_us + steps) * MICROSECOND)
