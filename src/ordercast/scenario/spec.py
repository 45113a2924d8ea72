"""A scenario: everything about a run except the code, as data. A scenario always replays exactly the same."""

from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias
from zlib import crc32

import msgspec

from ordercast.catalogue import find_protocol, serving_protocol
from ordercast.core import (
    Deployment,
    HostId,
    LocalError,
    Membership,
    Options,
    OrdercastError,
    Plan,
    Protocol,
    place_of,
    screen_groups,
)
from ordercast.scenario.changes import ChangeSpec, Join, Leave
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.faults import FaultSpec
from ordercast.scenario.hosts import names_role, place_faults, share_hosts
from ordercast.services import find_service
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
    """A delay drawn uniformly between two bounds."""

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
    """For a FatTree only, like all fields down to `servers_a_rack`."""
    racks_a_pod: Few = 8
    aggregations_a_pod: Few = 4
    cores: Few = 16
    servers_a_rack: Few = 40
    role_gbps: dict[str, Positive] = {}
    """Hosts with a process of this role get a link with this rate towards them, and no limit from them."""


LatencySpec: TypeAlias = SimpleLatency | SitesSpec | MatrixSpec | GraphSpec | LinksSpec


class BurstSpec(_Spec, frozen=True):
    """Bursts of traffic from all other racks to the servers of one rack."""

    host: HostId
    """The rack is that of this host; a switch belongs to the rack whose switch it is."""
    gbps: Positive
    """Total rate during a burst."""
    on_us: Positive = 500.0
    """Mean length of a burst; lengths are exponential."""
    off_us: Size = 500.0
    """Mean length of the pause between two bursts."""


class BackgroundSpec(_Spec, frozen=True):
    """Background traffic between the servers of a FatTree, as Poisson processes."""

    load: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1
    """Load of each server, as a share of its link."""
    bytes: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1500
    """Size of each packet, with headers."""
    locality: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """Share of packets that stay in their rack; other packets go to any server."""
    burst: BurstSpec | None = None
    start_ms: Size = 0.0
    """When the traffic begins."""
    stop_ms: Size = 0.0
    """When the traffic ends; 0 means never."""


class NetworkSpec(Conditions, frozen=True, kw_only=True):
    """The network: how long packets take, and how many are lost, duplicated or reordered."""

    latency: LatencySpec = ConstantSpec()
    background: BackgroundSpec | None = None


class ClocksSpec(_Spec, frozen=True):
    """Errors of the hosts' clocks."""

    skew_us: Size = 0.0
    """Each clock is ahead of true time by a random part of this, so two clocks differ by at most this."""
    drift_ppm: Annotated[float, msgspec.Meta(ge=0, le=100_000)] = 0.0
    """Each clock gains or loses time at a rate up to this."""


class PhaseSpec(_Spec, frozen=True, kw_only=True):
    """A change of rate: from a time on, some open-loop senders have another rate."""

    at_ms: Size = 0.0
    rate_per_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None
    """Rate of each of these senders. 0 means silence; without a value it is the rate of the workload."""
    senders: Annotated[tuple[Place, ...], msgspec.Meta(min_length=1)] | None = None
    """Places of the senders in the list of senders, counted from 0; without a value, all senders."""

    def __post_init__(self) -> None:
        if self.rate_per_s and self.rate_per_s < RATE_MIN:
            raise KeyedError(
                "rate_per_s", f"a rate must be 0 or at least {RATE_MIN:g}, not {self.rate_per_s:g}"
            )


class SubmissionSpec(_Spec, frozen=True, kw_only=True):
    """One message of a listed workload."""

    at_ms: Size = 0.0
    sender: Place = 0
    """Place of the sender in the list of senders, counted from 0."""
    groups: Annotated[tuple[Place, ...], msgspec.Meta(min_length=1)] = (0,)
    bytes: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 64


class WorkloadSpec(_Spec, frozen=True):
    """The workload: which messages are submitted, and when."""

    kind: Literal["poisson", "periodic", "recorded", "trace", "listed", "closed"] = "poisson"
    messages: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 100
    """Total number of messages."""
    rate_per_s: Rate = 1000.0
    """Messages per second of each open-loop sender."""
    jitter: Size = 0.01
    """For a periodic workload: standard deviation of the interval, as a share of the interval."""
    file: str = ""
    """For a recorded workload: a file with one arrival per line, in seconds from the start or as date and
    time; in a CSV file, the first column. For a trace: the folder of a run, whose submissions are
    repeated."""
    bytes: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 64
    spread: tuple[Size, ...] = (1.0,)
    """The shares of messages that go to 1, 2, ... groups."""
    outstanding: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    """Messages that each closed-loop client keeps under way."""
    timeout_ms: Positive = 1000.0
    """How long a closed-loop client waits for answers before it goes on without them."""
    reads: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    """If there is a service: the share of its operations that are reads."""
    phase: tuple[PhaseSpec, ...] = ()
    """Changes of the rate, in order of time. If several have the same time, the last one counts."""
    submission: tuple[SubmissionSpec, ...] = ()
    """For a listed workload: all its messages. The fields about numbers, rates and groups are not used."""

    def __post_init__(self) -> None:
        self._check_phases()
        if self.submission and self.kind != "listed":
            raise KeyedError("submission[0]", f"a {self.kind} workload does not list its messages")
        if self.kind in ("recorded", "trace") and not self.file:
            what = "a file of arrival times" if self.kind == "recorded" else "the folder of a run"
            raise LocalError(f"a {self.kind} workload needs `file`: {what}")

    def _check_phases(self) -> None:
        if self.phase and self.kind not in ("poisson", "periodic"):
            raise KeyedError("phase[0]", f"a {self.kind} workload has no rate, so it cannot have phases")
        for index, (before, after) in enumerate(pairwise(self.phase), 1):
            if after.at_ms < before.at_ms:
                late = f"phases must be in order of time, but {after.at_ms:g} ms follows {before.at_ms:g} ms"
                raise KeyedError(f"phase[{index}].at_ms", late)


class Scenario(_Spec, frozen=True, kw_only=True):
    """All settings of one run."""

    protocol: str
    name: str = ""
    seed: int = 0
    groups: Count = 1
    receivers: Count = 3
    """Receivers per group."""
    membership: tuple[tuple[int, ...], ...] = ()
    """The receivers of each group, instead of `groups` and `receivers`. Groups may overlap.
    A group may have none if receivers subscribe."""
    senders: Count = 1
    colocated: bool = False
    """Senders run on the receivers' hosts."""
    hosts: Literal["apart", "shared"] = "apart"
    """Shared: receiver k of every group is on one host."""
    options: dict[str, Any] = {}
    """Options of the protocol."""
    service: str = ""
    """The service that the receivers of each group replicate: a built-in one, or a class as module:Class. The
    senders are its clients, and the workload consists of its operations. Empty: no service."""
    live_options: bool = False
    """The protocol's other options have the defaults of live clusters, which have longer timeouts."""
    network: NetworkSpec = NetworkSpec()
    cpu: Cpu = Cpu()
    role_cpu: dict[str, Cpu] = {}
    """Used instead of `cpu` for hosts with a process of this role."""
    clocks: ClocksSpec = ClocksSpec()
    workload: WorkloadSpec = WorkloadSpec()
    fault: tuple[FaultSpec, ...] = ()
    joiners: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    """Receivers that are in no group at the start, and may join later; their nodes follow the others."""
    join: tuple[Join, ...] = ()
    leave: tuple[Leave, ...] = ()
    settle_ms: Positive = 2000.0
    """How long a run waits at its end without any delivery before it counts missing messages as lost."""
    bundle_bytes: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    """Pack messages that pile up into packets of this size; 0: each message gets its own packet."""
    liveness: bool = False
    """Judge liveness too: how long receivers are silent while enough nodes are up and connected, and whether
    what each sender submits to each group at the end, after all faults, is delivered."""
    packets: bool = False
    """Record every packet in the trace."""
    history: bool = False
    """If there is a service: write what clients called and were answered beside the trace, as bytes."""
    codec: bool = False
    """Pass every packet through the codec, as a real network would."""

    def deployment(self) -> Deployment:
        """The deployment of this scenario."""
        if self.membership:
            plain = Deployment(self.membership, self.senders, self.colocated)
        else:
            plain = Deployment.disjoint(self.groups, self.receivers, self.senders, colocated=self.colocated)
        if not self.joiners and not self.service:
            return plain
        with about("service"):
            service = find_service(self.service) if self.service else None
        return replace(plain, joiners=self.joiners, service=service)

    @property
    def changes(self) -> tuple[ChangeSpec, ...]:
        """All joins and leaves, in order of time."""
        return tuple(sorted((*self.join, *self.leave), key=lambda change: change.at_ms))

    def all_options(self) -> Options:
        """The options of the protocol, with its defaults for those that the scenario does not set."""
        with about("protocol"):
            protocol = find_protocol(self.protocol)
        with about("options"):
            chosen = protocol.live_options(self.options) if self.live_options else self.options
        return convert_options(chosen, protocol)

    def plan(self) -> Plan:
        """The protocol's plan for this scenario."""
        options = self.all_options()
        protocol = find_protocol(self.protocol)
        with about("options"):
            membership = protocol.base(self.options).guarantees.membership
        if self.joiners and membership is Membership.FIXED:
            what = f"the groups of {self.protocol} are fixed, so nobody can join them later"
            raise KeyedError("joiners", what)
        if self.service:
            with about("service"):
                serving_protocol(self.protocol)
                find_service(self.service)
        with about("membership" if self.membership else "groups"):
            screen_groups(self.protocol, membership, dict(enumerate(self.membership)))
            plan = _deploy(protocol, self.deployment(), options)
        with about("hosts"):
            return share_hosts(plan) if self.hosts == "shared" else plan


def _deploy(protocol: Protocol, deployment: Deployment, options: Options) -> Plan:
    """The plan of a protocol; an exception in the protocol's own code is told as such."""
    try:
        return protocol.deploy(deployment, options)
    except OrdercastError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error} ({place_of(error)})"
        raise LocalError(f"deploy() of {protocol.name} failed: {what}") from error


def to_scenario(content: dict[str, Any]) -> Scenario:
    """A scenario from plain data. A service calls its senders `clients`, and a fault may name a role and a
    place instead of a host."""
    faults = content.get("fault", ())
    if isinstance(faults, list | tuple) and any(map(names_role, faults)):
        plan = _read({key: content[key] for key in content if key != "fault"}).plan()
        content = content | {"fault": place_faults(faults, plan)}
    return _read(content)


def _read(content: dict[str, Any]) -> Scenario:
    if "clients" not in content:
        return convert(content, Scenario)
    if not content.get("service"):
        raise KeyedError("clients", "is only allowed with `service`; without one there are `senders`")
    if "senders" in content:
        raise KeyedError("clients", "senders and clients are the same nodes: give one of both")
    try:
        return convert({"senders" if key == "clients" else key: content[key] for key in content}, Scenario)
    except KeyedError as error:
        raise KeyedError("clients" if error.key == "senders" else error.key, error.what) from error


def run_name(scenario: Scenario, plan: Plan) -> str:
    """The name of a run of this scenario, and of its folder.

    Runs of different scenarios with the same seed must not use the same folder.
    """
    content = msgspec.json.encode(
        msgspec.structs.replace(scenario, packets=False, history=False), order="sorted"
    )
    return f"{plan.protocol}-{scenario.seed}-{crc32(content):08x}"
