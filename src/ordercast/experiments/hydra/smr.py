"""State machine replication (NSDI 2023, section 7.2, Figure 5; appendix A.2, Figure 11).

Three replicas run an echo service for closed-loop clients: HydraPaxos with two switch sequencers, NOPaxos
with one, Multi-Paxos, Fast Paxos, and one server without replication. All run on the testbed of the
microbenchmarks. What was decided before anything was measured:

- **Packets are what costs.** The five systems share one code base in the paper, and the echo service does
  nothing, so a message costs its packets. What HydraPaxos would have if it also paid for Hydra's order as the
  microbenchmarks charge it is in the notes, and decides nothing.
- **No batching**, anywhere: one call is one packet, and one slot. Replicas keep everything in memory.
- **Clients of Fast Paxos** send a copy to each replica; each copy costs a send. Those of Multi-Paxos send to
  the leader, those of NOPaxos and HydraPaxos one packet to a sequencer, which the switch copies.
- **A client that has no answer after 1 ms calls again**, in all systems; that is some 400 round trips.
- **Replicas ask for a missing packet at once**, because nothing overtakes on the testbed. A leader gives up a
  packet that nobody has answered for within 20 us, some eight round trips.
- **Loss** strikes each packet between two hosts, those of clients too. A second run has losses only on the
  ways from sequencers to replicas, where the paper's drop notifications come from.
"""

from statistics import median
from typing import Any

import msgspec

from ordercast.core import MICROSECOND, MILLISECOND, SECOND, Nanos
from ordercast.experiments.experiment import Case, CaseValues, Evaluation, Results
from ordercast.experiments.hydra.bench import Counted, count, ready_world, sequencer_nodes
from ordercast.experiments.hydra.calibration import PACKETS_OF_ORDER, Hardware
from ordercast.experiments.hydra.losing import (
    EVERYWHERE,
    FROM_SEQUENCERS,
    LOSSES,
    kept_under_loss,
    lose_from,
    loss_figure,
)
from ordercast.experiments.hydra.results import (
    PAPER,
    compared,
    latencies,
    load_curve,
    peaks,
    ratio,
)
from ordercast.experiments.hydra.saturation import doubled, summary
from ordercast.experiments.hydra.sensitivity import Effort, on_testbed
from ordercast.experiments.hydra.testbed import SWITCH_CPU, hydra_options, microbenchmark
from ordercast.experiments.published import published
from ordercast.report.figures import Axis, Figure, Reference
from ordercast.scenario.spec import Scenario

HYDRA_PAXOS, NOPAXOS, MULTI_PAXOS, FAST_PAXOS = "hydra_paxos", "nopaxos", "multi_paxos", "fast_paxos"
UNREPLICATED = "unreplicated"
SYSTEMS = {
    HYDRA_PAXOS: "HydraPaxos",
    NOPAXOS: "NOPaxos",
    MULTI_PAXOS: "Multi-Paxos",
    FAST_PAXOS: "Fast Paxos",
    UNREPLICATED: "unreplicated",
}
SEQUENCED = (HYDRA_PAXOS, NOPAXOS)
"""The systems with sequencers."""
RETRY_NS: Nanos = 1 * MILLISECOND
COUNTED_MAX: Nanos = 20 * SECOND
"""One client of a system that repeats slowly takes long under loss."""
GAPS = {"ask_ns": 0, "gap_ns": 20 * MICROSECOND}
"""How soon replicas ask for what they lack, and give up what nobody answers for."""
CLAIMED_LOSS = 0.001

SMR = "hydra.smr."
_FUNCTION = "ordercast.experiments.hydra.smr:serve"
_MODEL = "Packets alone cost CPU; no batching; clients call again after 1 ms."


def cases_5(effort: Effort) -> list[Case]:
    """All systems; HydraPaxos also with the CPU time of Hydra's order."""
    systems = [(system, False) for system in SYSTEMS if effort.thorough or system != UNREPLICATED]
    return [
        Case(
            parameters={"system": system, "order": order},
            seed=seed,
            function=_FUNCTION,
            arguments={"messages": effort.messages},
        )
        for system, order in (*systems, (HYDRA_PAXOS, True))
        for seed in range(effort.seeds)
    ]


def cases_11(effort: Effort) -> list[Case]:
    """All systems under loss of packets."""
    losses = LOSSES if effort.thorough else (0.0, CLAIMED_LOSS)
    systems = tuple(SYSTEMS) if effort.thorough else (HYDRA_PAXOS,)
    return [
        Case(
            parameters={"system": system, "loss": loss, "where": where},
            seed=seed,
            function=_FUNCTION,
            arguments={"messages": 4 * effort.messages},
        )
        for where in (EVERYWHERE, FROM_SEQUENCERS)
        for system in systems
        if where == EVERYWHERE or system in SEQUENCED
        for loss in losses
        for seed in range(effort.seeds)
    ]


def serve(
    *,
    system: str,
    packet_ns: int,
    link_us: float,
    seed: int,
    messages: int,
    order: bool = False,
    loss: float = 0.0,
    where: str = EVERYWHERE,
) -> CaseValues:
    """The maximum throughput of a system, its latency with one client, and all loads."""
    hardware = Hardware(packet_ns, link_us)
    order_ns = round(PACKETS_OF_ORDER["hydra"] * packet_ns) if order else 0

    def measure(clients: int) -> Counted:
        scenario = service_run(
            system, clients, seed, hardware, loss if where == EVERYWHERE else 0.0, execute_ns=order_ns
        )
        world = ready_world(scenario)
        if loss and where == FROM_SEQUENCERS:
            lose_from(world, {world.envs[node].host.id for node in sequencer_nodes(world)}, loss)
        return count(scenario, world, clients=clients, messages=messages, most=COUNTED_MAX)

    return summary(list(doubled(1, measure)))


def service_run(
    system: str, clients: int, seed: int, hardware: Hardware, loss: float, execute_ns: Nanos = 0
) -> Scenario:
    """A run of a system with so many clients. `execute_ns` is the CPU time of an operation."""
    scenario = microbenchmark(
        system, clients=clients, seed=seed, options=options_of(system), hardware=hardware
    )
    return msgspec.structs.replace(
        scenario,
        service="echo",
        cpu=msgspec.structs.replace(scenario.cpu, execute_ns=execute_ns),
        role_cpu={"switch": SWITCH_CPU} if system in SEQUENCED else {},
        network=msgspec.structs.replace(scenario.network, loss=loss),
        workload=msgspec.structs.replace(scenario.workload, reads=0.0),
    )


def options_of(system: str) -> dict[str, Any]:
    """The options of a system: clients that call again soon, and no checkpoints."""
    calls = {"retry_ns": RETRY_NS, "window": 65_536}
    match system:
        case "hydra_paxos":
            hydra = hydra_options(flush="solicited", flush_ns=0)
            hydra.pop("repair")
            return {"calls": calls, "hydra": hydra, "replicas": GAPS}
        case "nopaxos":
            return {"calls": calls, "kind": "switch", "spares": 0, "replicas": GAPS}
        case "multi_paxos":
            return {"calls": calls, "batch": 1}
        case _:
            return {"calls": calls}


def evaluate_5(results: Results) -> Evaluation:
    """Latency over throughput, load by load, and the ratios of maximum throughputs."""
    plain = results.where(order=False)
    found = {system: plain.where(system=system) for system in SYSTEMS}
    hydra, charged = found[HYDRA_PAXOS], results.where(system=HYDRA_PAXOS, order=True)
    shown = {system: each for system, each in found.items() if each.all}
    highest = median(peaks(hydra).values()) / 1e3
    figure = Figure(
        id="hydra-5",
        title="State machine replication: latency and throughput, three replicas",
        caption=f"After Figure 5 of {PAPER}. Each marker is a load, from one client on. Band: all seeds. "
        f"Dotted: the maximum throughputs of the others by the paper's ratios to HydraPaxos. {_MODEL}",
        x=Axis(label="throughput (1000 operations/s)", low=0.0),
        y=Axis(label="median latency at clients (us)", scale="log"),
        curves=tuple(load_curve(SYSTEMS[system], each) for system, each in shown.items()),
        references=tuple(
            Reference(label=f"{SYSTEMS[system]}, by the paper", x=highest / published(claim))
            for system, claim in (
                (MULTI_PAXOS, f"{SMR}vs_paxos"),
                (FAST_PAXOS, f"{SMR}vs_fast_paxos"),
                (NOPAXOS, f"{SMR}vs_nopaxos"),
            )
        ),
    )
    alone, single = latencies(hydra), latencies(found[NOPAXOS])
    slower = median(alone[seed] - single[seed] for seed in alone)
    measured = (
        ratio(f"{SMR}vs_paxos", hydra, found[MULTI_PAXOS], _charged(charged, found[MULTI_PAXOS])),
        ratio(f"{SMR}vs_fast_paxos", hydra, found[FAST_PAXOS], _charged(charged, found[FAST_PAXOS])),
        ratio(
            f"{SMR}vs_nopaxos",
            hydra,
            found[NOPAXOS],
            _charged(charged, found[NOPAXOS]),
            f"one client waits {slower:.3g} us longer than with NOPaxos (the paper: within 5 us)",
        ),
    )
    return Evaluation(measurements=measured, figures=(figure,))


def _charged(charged: Results, other: Results) -> str:
    share = median(peaks(charged).values()) / median(peaks(other).values())
    return f"with the CPU time of Hydra's order charged to HydraPaxos alone: {share:.3g}"


def evaluate_11(results: Results) -> Evaluation:
    """Maximum throughput under loss, as a share of that without."""
    hydra = results.where(system=HYDRA_PAXOS)
    everywhere = hydra.where(where=EVERYWHERE)
    figure = loss_figure(
        "hydra-11",
        "State machine replication under packet loss",
        f"After Figure 11 of {PAPER}. {_MODEL}",
        SYSTEMS,
        results,
    )
    from_sequencers = kept_under_loss(hydra.where(where=FROM_SEQUENCERS), CLAIMED_LOSS)
    measured = compared(
        f"{SMR}drop_0p1pct",
        kept_under_loss(everywhere, CLAIMED_LOSS),
        f"losses only from sequencers to replicas: {median(from_sequencers.values()):.3g}",
    )
    return Evaluation(measurements=(measured,), figures=(figure,))


EXPERIMENTS = (
    on_testbed(
        name="hydra-5",
        title="State machine replication",
        source=f"{PAPER}, section 7.2, Figure 5",
        claims=(f"{SMR}vs_paxos", f"{SMR}vs_fast_paxos", f"{SMR}vs_nopaxos"),
        cases=cases_5,
        evaluate=evaluate_5,
    ),
    on_testbed(
        name="hydra-11",
        title="State machine replication under loss",
        source=f"{PAPER}, appendix A.2, Figure 11",
        claims=(f"{SMR}drop_0p1pct",),
        cases=cases_11,
        evaluate=evaluate_11,
    ),
)
