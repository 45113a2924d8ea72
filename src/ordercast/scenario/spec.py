"""A scenario: everything about a run but the code, as data. Any scenario replays exactly from itself."""

from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias
from zlib import crc32

import msgspec

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, HostId, LocalError, Plan
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.faults import FaultSpec
from ordercast.toml_file import KeyedError, about, convert, convert_options

# The upper bounds keep infinity out, and everything in nanoseconds within 64 bits.
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Size = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
RATE_MIN = 1e-3
Rate = Annotated[float, msgspec.Meta(ge=RATE_MIN, le=1e9)]
Place = Annotated[int, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Few = Annotated[int, msgspec.Meta(ge=1, le=1024)]


ScenarioError = KeyedError
"""A scenario that cannot be run."""


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
    """Links with bandwidth and queues: one switch, or two or three layers of them."""

    topology: Literal["star", "leaf-spine", "fat-tree"] = "star"
    host_gbps: Positive = 10.0
    fabric_gbps: Positive = 40.0
    propagation_us: Size = 0.5
    queue_kib: Positive = 512.0
    hosts_a_leaf: Count = 8
    spines: Few = 2
    pods: Few = 8
    """Of a FatTree, as all down to `servers_a_rack`."""
    racks_a_pod: Few = 8
    aggregations_a_pod: Few = 4
    cores: Few = 16
    servers_a_rack: Few = 40
    role_gbps: dict[str, Positive] = {}
    """Hosts with a process of that role have a link of that rate towards them, and no limit from them."""


LatencySpec: TypeAlias = SimpleLatency | SitesSpec | MatrixSpec | GraphSpec | LinksSpec


class BurstSpec(_Spec, frozen=True):
    """Traffic from everywhere to the servers of one rack, in bursts."""

    host: HostId
    """The rack is this host's; a switch is at the rack's own."""
    gbps: Positive
    """While a burst lasts, all of it together."""
    on_us: Positive = 500.0
    """Mean length of a burst, which is exponential."""
    off_us: Size = 500.0
    """Mean length of the calm between two."""


class BackgroundSpec(_Spec, frozen=True):
    """Traffic of others between the servers of a FatTree, as Poisson processes."""

    load: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    """Of each server, as a share of its link."""
    bytes: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1500
    """Of each packet, headers included."""
    locality: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """Share of packets that stay in their rack; the others go to any server."""
    burst: BurstSpec | None = None
    start_ms: Size = 0.0
    """When it begins."""
    stop_ms: Size = 0.0
    """When it ends; 0: never."""


class NetworkSpec(Conditions, frozen=True, kw_only=True):
    """The network: how long packets take, and what becomes of them."""

    latency: LatencySpec = ConstantSpec()
    background: BackgroundSpec | None = None


class ClocksSpec(_Spec, frozen=True):
    """How wrong clocks are."""

    skew_us: Size = 0.0
    """Each clock is ahead of true time by a share of this, drawn evenly: two differ by at most as much."""
    drift_ppm: Annotated[float, msgspec.Meta(ge=0, le=100_000)] = 0.0
    """Each clock gains or loses up to so much."""


class PhaseSpec(_Spec, frozen=True, kw_only=True):
    """From a time on, some open-loop senders have another rate."""

    at_ms: Size = 0.0
    rate_per_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None
    """Of each of them: 0 for silence, nothing for the rate of the workload."""
    senders: Annotated[tuple[Place, ...], msgspec.Meta(min_length=1)] | None = None
    """Places among the senders, counted from 0; nothing for all."""

    def __post_init__(self) -> None:
        if self.rate_per_s and self.rate_per_s < RATE_MIN:
            raise KeyedError(
                "rate_per_s", f"a rate must be 0 or at least {RATE_MIN:g}, not {self.rate_per_s:g}"
            )


class WorkloadSpec(_Spec, frozen=True):
    """Who submits what, when."""

    kind: Literal["poisson", "periodic", "recorded", "trace", "closed"] = "poisson"
    messages: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 100
    """How many in all."""
    rate_per_s: Rate = 1000.0
    """Of each open-loop sender."""
    jitter: Size = 0.01
    """Of a periodic source: standard deviation over interval."""
    file: str = ""
    """Of a recorded source: an arrival a line, in seconds from the start or as dates and times; of a CSV,
    the first column. Of a trace: the folder of a run, the submissions of which are made again."""
    bytes: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 64
    spread: tuple[Size, ...] = (1.0,)
    """Shares of messages that go to 1, 2, ... groups."""
    outstanding: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    """Of each closed-loop client."""
    timeout_ms: Positive = 1000.0
    """After which a closed-loop client goes on without the missing answers."""
    phase: tuple[PhaseSpec, ...] = ()
    """Changes of the rate, in order of time; of several at one time the last counts."""

    def __post_init__(self) -> None:
        self._check_phases()
        if self.kind in ("recorded", "trace") and not self.file:
            what = "a file of arrival times" if self.kind == "recorded" else "the folder of a run"
            raise LocalError(f"a {self.kind} workload needs `file`: {what}")

    def _check_phases(self) -> None:
        if self.phase and self.kind not in ("poisson", "periodic"):
            raise KeyedError("phase[0]", f"a {self.kind} workload has no rate, so it cannot have phases")
        for index, (before, after) in enumerate(pairwise(self.phase), 1):
            if after.at_ms < before.at_ms:
                late = f"phases must be in order of time, but {after.at_ms:g} follows {before.at_ms:g}"
                raise KeyedError(f"phase[{index}].at_ms", late)


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
    role_cpu: dict[str, Cpu] = {}
    """Of hosts with a process of that role, in place of `cpu`."""
    clocks: ClocksSpec = ClocksSpec()
    workload: WorkloadSpec = WorkloadSpec()
    fault: tuple[FaultSpec, ...] = ()
    settle_ms: Positive = 2000.0
    """How long nothing may be delivered at the end of a run, before what is missing counts as lost."""
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
        with about("protocol"):
            protocol = find_protocol(self.protocol)
        options = convert_options(self.options, protocol)
        with about("membership" if self.membership else "groups"):
            return protocol.deploy(self.deployment(), options)


def to_scenario(content: dict[str, Any]) -> Scenario:
    """A scenario from plain data."""
    return convert(content, Scenario)


def run_name(scenario: Scenario, plan: Plan) -> str:
    """The name of a run of this scenario, which its folder has too.

    Runs of different scenarios with the same seed must not take each other's folder.
    """
    content = msgspec.json.encode(msgspec.structs.replace(scenario, packets=False), order="sorted")
    return f"{plan.protocol}-{scenario.seed}-{crc32(content):08x}"
