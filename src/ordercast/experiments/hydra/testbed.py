"""The testbed of Hydra's evaluation (NSDI 2023, section 7) as a scenario.

The paper: hosts with 100 GbE at one switch; closed-loop clients, each with one message under way, which wait
for the replies of all receivers (section 7.1). It prints ratios between systems and no absolute throughput or
latency of unordered multicast. What a packet and a link cost comes from outside (`calibration.py`), for all
experiments of this paper but those of its section 7.4, which the authors simulated.

Choices of the model that matter to one system and not to the others. They were made before it was measured,
from the paper's words, and are not fitted. `docs/protocols/hydra.md` says what was known when they were made.

- **Each copy of a packet costs a send.** Section 7.1 has senders send "to all the receivers", and its atomic
  multicast slows down with the number of receivers, so nothing copies for them.
- **Saves are free.** The paper's consensus is not said to write to disk.
- **Sequencers and aggregators on switches are the switch** (section 5): they have no CPU to wait for, the
  way through them is no longer than the way past them, and their copies leave at line rate. So a sender of
  Hydra sends one packet.
- **A sequencer on an end host** has a CPU like all hosts. It sends one stamped packet, which the switch
  copies: groupcast addresses are those of multicast groups. The paper does not say so.

One message is one packet (no bundling) of 64 bytes; the paper does not say how large its messages are.
"""

from typing import Any

from ordercast.experiments.hydra.calibration import PUBLISHED, Hardware
from ordercast.scenario.cpu import Cpu
from ordercast.scenario.spec import LinksSpec, NetworkSpec, Scenario, WorkloadSpec

SWITCH_CPU = Cpu()
HOST_GBPS = 100.0
SPREAD_OF_MANY_GROUPS = (0.8, 0.2)
"""Section 7.1.1: shares of messages to one and to two groups, when there are several."""
MESSAGES_MAX = 100_000_000
"""For clients that go on until the run is cut off."""
CLIENT_HOSTS_MAX = 16
"""For each group; more clients share hosts. That is enough for the CPUs of clients never to be the limit."""

UNORDERED, ATOMIC, HYDRA = "unordered", "atomic_multicast", "hydra"


JOIN_NS = 1_000_000
"""How often sequencers ask for their numbers at the start. It only makes runs begin sooner."""


def hydra_options(
    *, sequencers: int = 2, flush: str = "", flush_ns: int = -1, kind: str = "switch", **others: int
) -> dict[str, Any]:
    """Options of Hydra: receivers do not repair, as in the paper; without a flush policy, the product's."""
    options: dict[str, Any] = {"kind": kind, "sequencers": sequencers, "join_ns": JOIN_NS, "repair": False}
    options |= others
    if flush:
        options["flush"] = flush
    if flush_ns >= 0:
        options["flush_ns"] = flush_ns
    return options


def host_cpu(hardware: Hardware) -> Cpu:
    """The CPU of a client or a receiver."""
    return Cpu(receive_ns=hardware.packet_ns, send_ns=hardware.packet_ns, copies=True)


def sequencer_cpu(hardware: Hardware) -> Cpu:
    """The CPU of a sequencer on an end host."""
    return Cpu(receive_ns=hardware.packet_ns, send_ns=hardware.packet_ns)


def star(hardware: Hardware, switch_gbps: float | None = None) -> LinksSpec:
    """All hosts at one switch; the way through each sequencer on it may be limited."""
    limits = {} if switch_gbps is None else {"switch": switch_gbps}
    return LinksSpec(topology="star", host_gbps=HOST_GBPS, propagation_us=hardware.link_us, role_gbps=limits)


def testbed(
    protocol: str,
    *,
    seed: int,
    workload: WorkloadSpec,
    clients: int,
    groups: int = 1,
    receivers: int = 3,
    options: dict[str, Any] | None = None,
    hardware: Hardware = PUBLISHED,
    switch_gbps: float | None = None,
) -> Scenario:
    """A run on the testbed."""
    options = options or {}
    return Scenario(
        protocol=protocol,
        seed=seed,
        groups=groups,
        receivers=receivers,
        senders=clients,
        options=options,
        cpu=host_cpu(hardware),
        role_cpu=_role_cpus(options, hardware) if protocol == HYDRA else {},
        network=NetworkSpec(latency=star(hardware, switch_gbps)),
        workload=workload,
    )


def _role_cpus(options: dict[str, Any], hardware: Hardware) -> dict[str, Cpu]:
    on_switch = options.get("kind") == "switch"
    cpus = {"switch": SWITCH_CPU} if on_switch else {"sequencer": sequencer_cpu(hardware)}
    if options.get("flush") == "aggregated":
        cpus["aggregator"] = SWITCH_CPU
    return cpus


def microbenchmark(
    protocol: str,
    *,
    clients: int,
    seed: int,
    groups: int = 1,
    receivers: int = 3,
    options: dict[str, Any] | None = None,
    hardware: Hardware = PUBLISHED,
) -> Scenario:
    """Closed-loop clients that never stop."""
    hosts = min(clients, CLIENT_HOSTS_MAX * groups)
    workload = WorkloadSpec(
        kind="closed",
        messages=MESSAGES_MAX,
        spread=SPREAD_OF_MANY_GROUPS if groups > 1 else (1.0,),
        outstanding=clients // hosts,
    )
    return testbed(
        protocol,
        seed=seed,
        workload=workload,
        clients=hosts,
        groups=groups,
        receivers=receivers,
        options=options,
        hardware=hardware,
    )
