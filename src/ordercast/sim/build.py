"""Builds a world and its workload from a scenario."""

from collections.abc import Iterable
from pathlib import Path
from random import Random

from ordercast.core import MICROSECOND, HostId, LocalError, Nanos, Plan
from ordercast.scenario.arrivals import arrivals_of
from ordercast.scenario.clock import clocks_of
from ordercast.scenario.contract import check_changes, check_faults
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.destinations import Destinations
from ordercast.scenario.listed import listed_submissions
from ordercast.scenario.operations import operations_of
from ordercast.scenario.recorded_run import submissions_of
from ordercast.scenario.spec import (
    ChiSquareSpec,
    ConstantSpec,
    GraphSpec,
    LatencySpec,
    LinksSpec,
    MatrixSpec,
    Scenario,
    ScenarioError,
    SitesSpec,
    UniformSpec,
)
from ordercast.sim.background import Background
from ordercast.sim.fat_tree import FatTree, FatTreeSizes, place
from ordercast.sim.latency import Constant, Graph, Latency, Matrix, ShiftedChiSquare, Sites, Uniform
from ordercast.sim.links import LinkNetwork, LinkSpec, Topology, leaf_spine, star
from ordercast.sim.network import LatencyNetwork, Network
from ordercast.sim.scheduler import Scheduler
from ordercast.sim.workload import ClosedLoop, OpenLoop, Replayed, Workload
from ordercast.sim.world import NetworkFactory, World
from ordercast.toml_file import about

SWITCH = "switch"
"""The role of processes that run on a switch and not on a server."""
AGGREGATOR = "aggregator"
"""The role of processes that run on the switch of a rack; in a star, on its only switch."""


def build_world(scenario: Scenario, plan: Plan) -> World:
    """A world that runs a plan under the conditions of a scenario."""
    hosts = sorted({node.host for node in plan.nodes})
    check_faults(scenario, hosts)
    check_changes(scenario, plan)
    return World(
        plan,
        scenario.seed,
        _network(scenario, plan, hosts),
        cpu=_cpus(scenario, plan),
        clocks=clocks_of(scenario, hosts),
        record_packets=scenario.packets,
        through_codec=scenario.codec,
        bundle_bytes=scenario.bundle_bytes,
    )


def build_workload(scenario: Scenario, world: World) -> Workload:
    """The sources or clients of a scenario."""
    spec = scenario.workload
    drawn = operations_of(scenario, world.plan)
    if spec.kind == "closed":
        return ClosedLoop(world, spec, drawn)
    destinations = Destinations.of(spec, world.plan)
    if spec.kind == "listed":
        return Replayed(world, listed_submissions(spec, world.plan))
    if spec.kind == "trace":
        with about("workload.file"):
            return Replayed(world, submissions_of(Path(spec.file))[: spec.messages])
    arrivals = arrivals_of(scenario, len(world.plan.senders))
    return OpenLoop(world, destinations, spec.messages, spec.bytes, arrivals, operations=drawn)


def _cpus(scenario: Scenario, plan: Plan) -> Cpu | dict[HostId, Cpu]:
    if not scenario.role_cpu:
        return scenario.cpu
    _check_roles("role_cpu", scenario.role_cpu, plan)
    cpus = {node.host: scenario.cpu for node in plan.nodes}
    return cpus | {
        node.host: scenario.role_cpu[node.role] for node in plan.nodes if node.role in scenario.role_cpu
    }


def _check_roles(key: str, named: Iterable[str], plan: Plan) -> None:
    roles = {node.role for node in plan.nodes}
    for role in named:
        if role not in roles:
            known = ", ".join(sorted(roles))
            raise ScenarioError(
                f"{key}.{role}", f"{plan.protocol} has no role {role}; its roles are: {known}"
            )


def _network(scenario: Scenario, plan: Plan, hosts: list[HostId]) -> NetworkFactory:
    spec, conditions = scenario.network.latency, scenario.network
    traffic = conditions.background
    if traffic is not None and not (isinstance(spec, LinksSpec) and spec.topology == "fat-tree"):
        raise ScenarioError("network.background", "background traffic needs links with the topology fat-tree")

    def build(scheduler: Scheduler, rng: Random) -> Network:
        if isinstance(spec, LinksSpec):
            topology = _topology(spec, scenario, plan, hosts)
            if traffic is not None and isinstance(topology, FatTree):
                with about("network.background.burst.host"):
                    Background(scheduler, scenario.seed, topology, traffic)
            return LinkNetwork(scheduler, rng, conditions, topology)
        with about("network.latency"):
            return LatencyNetwork(scheduler, rng, conditions, _latency(spec, scenario, hosts))

    return build


def _topology(spec: LinksSpec, scenario: Scenario, plan: Plan, hosts: list[HostId]) -> Topology:
    edge, fabric = (_link(spec, gbps) for gbps in (spec.host_gbps, spec.fabric_gbps))
    _check_roles("network.latency.role_gbps", spec.role_gbps, plan)
    narrow = {
        node.host: _link(spec, spec.role_gbps[node.role])
        for node in plan.nodes
        if node.role in spec.role_gbps
    }
    match spec.topology:
        case "star":
            inside = {node.host for node in plan.nodes if node.role in (SWITCH, AGGREGATOR)}
            return star(hosts, edge, narrow, inside)
        case "leaf-spine":
            return leaf_spine(hosts, spec.hosts_a_leaf, spec.spines, edge, fabric, narrow)
        case "fat-tree":
            switches = sorted({node.host for node in plan.nodes if node.role == SWITCH})
            servers = [host for host in hosts if host not in switches]
            rng = Random(f"{scenario.seed}/places")
            with about("network.latency"):
                sizes = FatTreeSizes(
                    spec.pods, spec.racks_a_pod, spec.aggregations_a_pod, spec.cores, spec.servers_a_rack
                )
                return FatTree(sizes, place(sizes, servers, switches, rng), edge, fabric, narrow)


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


def _ns(microseconds: float) -> Nanos:
    return round(microseconds * MICROSECOND)
