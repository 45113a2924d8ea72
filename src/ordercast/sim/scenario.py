"""A scenario: everything about a run but the code, as data. Any scenario replays exactly from itself."""

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from ordercast.core import (
    MICROSECOND,
    MILLISECOND,
    SECOND,
    Deployment,
    HostId,
    LocalError,
    Nanos,
    Plan,
)
from ordercast.protocols import find_protocol
from ordercast.sim.clock import Clock
from ordercast.sim.faults import FaultSpec
from ordercast.sim.host import Cpu
from ordercast.sim.latency import Constant, Graph, Latency, Matrix, ShiftedChiSquare, Sites, Uniform
from ordercast.sim.links import LinkNetwork, LinkSpec, leaf_spine, star
from ordercast.sim.network import Conditions, LatencyNetwork, Network
from ordercast.sim.scheduler import Scheduler
from ordercast.sim.workload import (
    Arrivals,
    ClosedLoop,
    Destinations,
    OpenLoop,
    Poisson,
    QuasiPeriodic,
    Recorded,
    Workload,
)
from ordercast.sim.world import NetworkFactory, World

# The upper bounds keep infinity out, and everything in nanoseconds within 64 bits.
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Size = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Rate = Annotated[float, msgspec.Meta(ge=1e-3, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class _Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class _Kind(_Spec, frozen=True, tag_field="kind"):
    pass


class ConstantSpec(_Kind, frozen=True, tag="constant"):
    """The same delay for every packet."""

    us: Size = 50.0


class UniformSpec(_Kind, frozen=True, tag="uniform"):
    """A delay evenly between two bounds."""

    low_us: Size
    high_us: Size


class ChiSquareSpec(_Kind, frozen=True, tag="chi-square"):
    """A shifted chi-square, given by its mean and standard deviation."""

    mean_us: Positive
    std_us: Size
    degrees: Count = 4


SimpleLatency: TypeAlias = ConstantSpec | UniformSpec | ChiSquareSpec


class SitesSpec(_Kind, frozen=True, tag="sites"):
    """Hosts at sites: one delay within a site, another between sites."""

    sites: tuple[tuple[HostId, ...], ...]
    near: SimpleLatency
    far: SimpleLatency


class MatrixSpec(_Kind, frozen=True, tag="matrix"):
    """Measured delays from a file; host i is row i."""

    file: str
    tick_us: Positive = 1000.0
    key: str = ""


class GraphSpec(_Kind, frozen=True, tag="graph"):
    """Shortest paths on a graph from a file; hosts sit at vertices chosen by the seed."""

    file: str
    unit_us: Positive = 1000.0


class LinksSpec(_Kind, frozen=True, tag="links"):
    """Links with bandwidth and queues: one switch, or two tiers of them."""

    topology: Literal["star", "leaf-spine"] = "star"
    host_gbps: Positive = 10.0
    fabric_gbps: Positive = 40.0
    propagation_us: Size = 0.5
    queue_kib: Positive = 512.0
    hosts_a_leaf: Count = 8
    spines: Count = 2


LatencySpec: TypeAlias = SimpleLatency | SitesSpec | MatrixSpec | GraphSpec | LinksSpec


class NetworkSpec(Conditions, frozen=True, kw_only=True):
    """The network: how long packets take, and what becomes of them."""

    latency: LatencySpec = ConstantSpec()


class ClocksSpec(_Spec, frozen=True):
    """How wrong clocks are."""

    skew_us: Size = 0.0
    """Each clock is ahead of true time by a share of this, drawn evenly: two differ by at most as much."""
    drift_ppm: Annotated[float, msgspec.Meta(ge=0, le=100_000)] = 0.0
    """Each clock gains or loses up to so much."""


class WorkloadSpec(_Spec, frozen=True):
    """Who submits what, when."""

    kind: Literal["poisson", "periodic", "recorded", "closed"] = "poisson"
    messages: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 100
    """How many in all."""
    rate_per_s: Rate = 1000.0
    """Of each open-loop sender."""
    jitter: Size = 0.01
    """Of a periodic source: standard deviation over interval."""
    file: str = ""
    """Of a recorded source: an arrival a line, in seconds from the start or as dates and times; of a CSV,
    the first column."""
    bytes: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 64
    spread: tuple[Size, ...] = (1.0,)
    """Shares of messages that go to 1, 2, ... groups."""
    outstanding: Count = 1
    """Of each closed-loop client."""
    timeout_ms: Positive = 1000.0
    """After which a closed-loop client goes on without the missing answers."""

    def __post_init__(self) -> None:
        if self.kind == "recorded" and not self.file:
            raise LocalError("a recorded workload needs a file")


class Scenario(_Spec, frozen=True, kw_only=True):
    """One run."""

    protocol: str
    name: str = ""
    seed: int = 0
    groups: Count = 1
    receivers: Count = 3
    """In each group."""
    membership: tuple[tuple[int, ...], ...] = ()
    """In place of groups and receivers: the receivers of each group, which may overlap."""
    senders: Count = 1
    colocated: bool = False
    """Senders run on the receivers' hosts."""
    options: dict[str, Any] = {}
    """The protocol's own."""
    network: NetworkSpec = NetworkSpec()
    cpu: Cpu = Cpu()
    clocks: ClocksSpec = ClocksSpec()
    workload: WorkloadSpec = WorkloadSpec()
    fault: tuple[FaultSpec, ...] = ()
    settle_ms: Positive = 2000.0
    """How long the run may go on after the last submission and fault, until all is delivered."""
    bundle_bytes: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    """Pack messages that pile up into packets of this size; 0: each message is a packet."""
    packets: bool = False
    """Record every packet in the trace."""
    codec: bool = False
    """Pass every packet through the codec, as a real network would."""

    def deployment(self) -> Deployment:
        """The deployment it asks for."""
        if self.membership:
            return Deployment(self.membership, self.senders, self.colocated)
        return Deployment.disjoint(self.groups, self.receivers, self.senders, colocated=self.colocated)

    def plan(self) -> Plan:
        """The protocol's plan for it."""
        protocol = find_protocol(self.protocol)
        try:
            options = msgspec.convert(self.options, protocol.options)
        except msgspec.ValidationError as error:
            raise LocalError(f"options of {self.protocol}: {error}") from error
        return protocol.deploy(self.deployment(), options)


def build_world(scenario: Scenario, plan: Plan) -> World:
    """A world for a plan, under the conditions of a scenario."""
    hosts = sorted({node.host for node in plan.nodes})
    for fault in scenario.fault:
        named = getattr(fault, "host", None)
        sides = [host for side in getattr(fault, "sides", ()) for host in side]
        for host in [*sides, *([] if named is None else [named])]:
            if host not in hosts:
                raise LocalError(f"a fault at {fault.at_ms} ms names host {host}, which is not there")
    return World(
        plan,
        scenario.seed,
        _network(scenario, hosts),
        cpu=scenario.cpu,
        clocks=_clocks(scenario, hosts),
        record_packets=scenario.packets,
        through_codec=scenario.codec,
        bundle_bytes=scenario.bundle_bytes,
    )


def build_workload(scenario: Scenario, world: World) -> Workload:
    """The sources or clients of a scenario."""
    spec = scenario.workload
    destinations = Destinations(sorted(world.plan.groups), spec.spread)
    if spec.kind == "closed":
        timeout = round(spec.timeout_ms * MILLISECOND)
        return ClosedLoop(world, destinations, spec.messages, spec.bytes, spec.outstanding, timeout)
    return OpenLoop(world, destinations, spec.messages, spec.bytes, _arrivals(scenario, world))


def _network(scenario: Scenario, hosts: list[HostId]) -> NetworkFactory:
    spec, conditions = scenario.network.latency, scenario.network

    def build(scheduler: Scheduler, rng: Random) -> Network:
        if isinstance(spec, LinksSpec):
            edge, fabric = (_link(spec, gbps) for gbps in (spec.host_gbps, spec.fabric_gbps))
            if spec.topology == "star":
                topology = star(hosts, edge)
            else:
                topology = leaf_spine(hosts, spec.hosts_a_leaf, spec.spines, edge, fabric)
            return LinkNetwork(scheduler, rng, conditions, topology)
        return LatencyNetwork(scheduler, rng, conditions, _latency(spec, scenario, hosts))

    return build


def _link(spec: LinksSpec, gbps: float) -> LinkSpec:
    return LinkSpec(max(1, round(gbps * 1e9)), _ns(spec.propagation_us), round(spec.queue_kib * 1024))


def _latency(spec: LatencySpec, scenario: Scenario, hosts: list[HostId]) -> Latency:
    match spec:
        case ConstantSpec():
            return Constant(_ns(spec.us))
        case UniformSpec():
            return Uniform(_ns(spec.low_us), _ns(spec.high_us))
        case ChiSquareSpec():
            return ShiftedChiSquare(_ns(spec.mean_us), _ns(spec.std_us), spec.degrees)
        case SitesSpec():
            sites = {host: site for site, members in enumerate(spec.sites) for host in members}
            near, far = (_latency(part, scenario, hosts) for part in (spec.near, spec.far))
            return Sites(sites, near, far)
        case MatrixSpec():
            return Matrix.load(Path(spec.file), _ns(spec.tick_us), spec.key)
        case GraphSpec():
            return Graph.load(Path(spec.file), _ns(spec.unit_us), max(hosts) + 1, scenario.seed)
        case LinksSpec():
            raise LocalError("links are a network, not a latency")


def _clocks(scenario: Scenario, hosts: list[HostId]) -> dict[HostId, Clock]:
    spec = scenario.clocks
    if not spec.skew_us and not spec.drift_ppm:
        return {}
    rng = Random(f"{scenario.seed}/clocks")
    return {
        host: Clock(
            round(rng.uniform(0, spec.skew_us) * MICROSECOND),
            round(rng.uniform(-spec.drift_ppm, spec.drift_ppm) * 1000),
        )
        for host in hosts
    }


def _arrivals(scenario: Scenario, world: World) -> list[Arrivals]:
    spec = scenario.workload
    interval = round(SECOND / spec.rate_per_s)
    senders = world.plan.senders
    if spec.kind == "periodic":
        return [QuasiPeriodic(interval, spec.jitter) for _ in senders]
    if spec.kind == "poisson":
        return [Poisson(max(1, interval)) for _ in senders]
    times = _recorded(Path(spec.file))
    # Dealt out in turn, so that all senders together follow the recording.
    return [Recorded(times[index :: len(senders)]) for index in range(len(senders))]


def _recorded(path: Path) -> list[Nanos]:
    try:
        with path.open(newline="") as file:
            cells = [row[0] for row in csv.reader(file) if row]
        if cells and not _is_time(cells[0]):
            cells = cells[1:]  # a header
        times = [_time_ns(cell) for cell in cells]
        if cells and not _is_number(cells[0]):
            first = min(times)
            times = [time - first for time in times]
        if min(times, default=0) < 0:
            raise ValueError("one lies before the start")
        return times
    except (OSError, ValueError, OverflowError, csv.Error) as error:
        raise LocalError(f"{path}: not a list of arrival times: {error}") from error


def _time_ns(cell: str) -> Nanos:
    """Seconds, or a date and time."""
    if _is_number(cell):
        return round(float(cell) * SECOND)
    # Without a zone of its own a time counts as UTC: only differences matter, and no machine's zone may.
    since = datetime.fromisoformat(cell).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1) * MICROSECOND


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_time(cell: str) -> bool:
    try:
        _time_ns(cell)
    except ValueError:
        return False
    return True


def _ns(microseconds: float) -> Nanos:
    return round(microseconds * MICROSECOND)
