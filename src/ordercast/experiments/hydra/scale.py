"""Hydra with more and more sequencers (NSDI 2023, section 7.1.3, Figure 4).

Up to eight switch sequencers, each behind a queue of 10 Gb/s, or up to eight end hosts; 15 real groups of
three. As many virtual groups, which have no receivers, load the sequencers beyond what real receivers could
take (the paper does not say how many it had). Sources are open-loop, for nobody answers for a virtual group.
Each message goes to one group, so the numbers that sequencers gave out count groupcasts.

The rule for loads is that of all experiments, with sources in the place of clients: the rate offered doubles
until sequencers stamp less than 5% more. *Throughput* is the highest rate stamped. *Latency* is that of real
deliveries at the highest load that was *sustained*: all but 5% of what was offered was stamped. The first
load is a fifth of what sequencers can take: a message in the time that the link or the CPU needs for it.
Messages at switches have 1,400 bytes instead of 64, which only makes the unit larger and the runs shorter:
the links' rate is in bits. Flushes are adaptive, the product's default.

Latency with eight end hosts is measured with periodic flushes too, for the note of the claim. Receivers
that ask cost an end host two packets for each question; a periodic flush costs it one for all receivers.
"""

from collections.abc import Sequence
from statistics import fmean, median, median_low
from typing import Any

import msgspec

from ordercast.core import SECOND, LocalError
from ordercast.experiments.experiment import Case, CaseValues, Evaluation, Measurement, Results
from ordercast.experiments.hydra.bench import Counted, check, latencies_of, ready_world
from ordercast.experiments.hydra.calibration import Hardware
from ordercast.experiments.hydra.results import MODEL, PAPER, compared, peaks
from ordercast.experiments.hydra.saturation import GAIN_LEAST, LATENCY, doubled, summary
from ordercast.experiments.hydra.sensitivity import Effort, on_testbed
from ordercast.experiments.hydra.testbed import HYDRA, MESSAGES_MAX, hydra_options, testbed
from ordercast.report.figures import Axis, Curve, Figure, over_seeds
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.build import build_workload
from ordercast.sim.world import World
from ordercast.trace import Kind

GROUPS, RECEIVERS, SENDERS_A_SEQUENCER = 15, 3, 4
SWITCH, HOST = "switch", "host"
PAYLOAD_BYTES, PACKET_BYTES = {SWITCH: 1_400, HOST: 64}, 1_500
LIMIT_GBPS = 10.0
VIRTUAL_GROUPS = 15
PACKETS_AT_A_HOST = 1 + GROUPS / (GROUPS + VIRTUAL_GROUPS)
"""A message costs a sequencer on an end host its receipt, and one stamped packet if its group is real."""
LOADS_A_CAPACITY = 5
"""The first load is one fifth of what sequencers can take, the next two, and so on."""
CLAIMS = {SWITCH: "hydra.scale.switch_linear", HOST: "hydra.scale.endhost_linear"}
MESSAGES_A_SEQUENCER = 1_000
"""In runs of all sizes: shorter ones see queues that are still filling, and stamp less."""
SUSTAINED = "sustained_p50_ns"
UNASKED, UNASKED_NS = "host, periodic flushes", 5_000
"""About as long as a question and its answer take with end hosts under load."""


def capacity_per_s(kind: str, hardware: Hardware) -> float:
    """Groupcasts that one sequencer can stamp: its link is the limit, or its CPU."""
    if kind == SWITCH:
        return LIMIT_GBPS * 1e9 / (PACKET_BYTES * 8)
    return SECOND / (PACKETS_AT_A_HOST * hardware.packet_ns)


def measure(
    *,
    kind: str,
    sequencers: int,
    packet_ns: int,
    link_us: float,
    messages: int,
    seed: int,
    flush: str = "",
    flush_ns: int = -1,
) -> CaseValues:
    """What sequencers stamp by second, real and virtual, and the latency of real deliveries, by load."""
    hardware, kind = Hardware(packet_ns, link_us), SWITCH if kind == SWITCH else HOST
    capacity = capacity_per_s(kind, hardware)
    options = hydra_options(
        sequencers=sequencers, kind=kind, virtual_groups=VIRTUAL_GROUPS, flush=flush, flush_ns=flush_ns
    )

    shares: list[float] = []

    def at(load: int) -> Counted:
        offered = load / LOADS_A_CAPACITY * capacity * sequencers
        scenario = _scenario(kind, sequencers, offered, options, hardware, seed)
        world = ready_world(scenario, order_ns=hardware.order_ns(HYDRA))
        counted, share = _count(scenario, world, load, messages / capacity)
        shares.append(share)
        return counted

    loads = list(doubled(1, at))
    values = summary(loads)
    sustained = [load.p50_ns for load, share in zip(loads, shares, strict=True) if share > 1 - GAIN_LEAST]
    return msgspec.structs.replace(values, numbers=values.numbers | {SUSTAINED: sustained[-1]})


def _scenario(
    kind: str, sequencers: int, offered_per_s: float, options: dict[str, Any], hardware: Hardware, seed: int
) -> Scenario:
    senders = SENDERS_A_SEQUENCER * sequencers
    workload = WorkloadSpec(
        kind="poisson",
        messages=MESSAGES_MAX,
        rate_per_s=offered_per_s / senders,
        bytes=PAYLOAD_BYTES[kind],
        spread=(1.0,),
    )
    return testbed(
        HYDRA,
        seed=seed,
        workload=workload,
        clients=senders,
        groups=GROUPS,
        receivers=RECEIVERS,
        options=options,
        hardware=hardware,
        switch_gbps=LIMIT_GBPS if kind == SWITCH else None,
    )


def _count(scenario: Scenario, world: World, load: int, seconds: float) -> tuple[Counted, float]:
    """Let sources warm up, then count for a time what is stamped and delivered; and the share stamped."""
    build_workload(scenario, world).start()
    world.run(world.now + round(seconds / 3 * SECOND))
    start, first, stamped, submitted = world.now, len(world.rows), _stamped(world), world.submitted
    world.run(start + round(seconds * SECOND))
    stamped, submitted = _stamped(world) - stamped, world.submitted - submitted
    latencies = latencies_of(world, first, kind=Kind.DELIVER)
    check(scenario, world)
    if not latencies:
        raise LocalError("nothing was delivered")
    counted = Counted(
        clients=load,
        messages_per_s=stamped / seconds,
        p50_ns=median_low(latencies),
        mean_ns=fmean(latencies),
        seconds=seconds,
    )
    return counted, stamped / submitted


def _stamped(world: World) -> int:
    explained = (explanation.state for explanation in world.explain().values())
    return sum(int(state.get("messages stamped", 0)) for state in explained)


def _cases(kind: str, effort: Effort) -> list[Case]:
    return [
        Case(
            parameters={"kind": kind, "sequencers": sequencers},
            seed=seed,
            function="ordercast.experiments.hydra.scale:measure",
            arguments={"messages": MESSAGES_A_SEQUENCER},
        )
        for sequencers in ((1, 2, 4, 6, 8) if effort.thorough else (1, 8))
        for seed in range(effort.seeds)
    ]


def _unasked() -> Case:
    """Eight end hosts whose receivers never ask."""
    return Case(
        parameters={"kind": UNASKED, "sequencers": 8},
        seed=0,
        function="ordercast.experiments.hydra.scale:measure",
        arguments={"messages": MESSAGES_A_SEQUENCER, "flush": "periodic", "flush_ns": UNASKED_NS},
    )


def cases_switch(effort: Effort) -> list[Case]:
    """Figure 4a."""
    return _cases(SWITCH, effort)


def cases_host(effort: Effort) -> list[Case]:
    """Figure 4b."""
    return [*_cases(HOST, effort), *([_unasked()] if effort.thorough else [])]


def _evaluate(kind: str, results: Results, figure: str, title: str) -> Evaluation:
    unasked, results = results.where(kind=UNASKED), results.where(kind=kind)
    by_count = {int(count): peaks(each) for count, each in results.by("sequencers").items()}
    one, most = by_count[1], max(by_count)
    about = f"After Figure {figure[-2:]} of {PAPER}: 15 groups of three. Band: all seeds. {MODEL}"
    counts = Axis(label="sequencers", low=0.0, high=9.0)
    waits = [(float(count), each.values(SUSTAINED)) for count, each in results.by("sequencers").items()]
    light = [(float(count), each.values(LATENCY)) for count, each in results.by("sequencers").items()]
    ratios = {seed: by_count[most][seed] / (most * one[seed]) for seed in one}
    note = f"median latency at the sustained load: {_risen(waits)}; at the lightest: {_risen(light)}"
    if unasked.all:
        flushed = median(unasked.values(SUSTAINED)) / 1e3
        note += f"; with 8 and a flush every {UNASKED_NS // 1000} us for which nobody asks: {flushed:.3g} us"
    measured: tuple[Measurement, ...] = (compared(CLAIMS[kind], ratios, note),)
    linear = [(float(count), [count * median(one.values())]) for count in by_count]
    found = [(float(count), list(rates.values())) for count, rates in by_count.items()]
    rates = Figure(
        id=f"{figure}-throughput",
        title=f"{title}: throughput",
        caption=about,
        x=counts,
        y=Axis(label="groupcasts stamped (1000/s)", low=0.0),
        curves=(_curve("Hydra", found, 1e-3), _curve("linear from one", linear, 1e-3)),
    )
    latency = Figure(
        id=f"{figure}-latency",
        title=f"{title}: latency",
        caption=f"{about} At the highest load that was sustained, and at the lightest.",
        x=counts,
        y=Axis(label="median latency of deliveries (us)", low=0.0),
        curves=(_curve("sustained load", waits, 1e-3), _curve("lightest load", light, 1e-3)),
    )
    return Evaluation(measurements=measured, figures=(rates, latency))


def _risen(waits: Sequence[tuple[float, list[float]]]) -> str:
    return ", ".join(f"{median(found) / 1e3:.3g} us with {count:.0f}" for count, found in waits)


def _curve(label: str, values: Sequence[tuple[float, list[float]]], unit: float) -> Curve:
    return Curve(label=label, points=over_seeds([(x, [y * unit for y in ys]) for x, ys in values]))


def evaluate_switch(results: Results) -> Evaluation:
    """Figure 4a."""
    return _evaluate(SWITCH, results, "hydra-4a", "Switch sequencers")


def evaluate_host(results: Results) -> Evaluation:
    """Figure 4b."""
    return _evaluate(HOST, results, "hydra-4b", "End-host sequencers")


EXPERIMENTS = (
    on_testbed(
        name="hydra-4a",
        title="More switch sequencers",
        source=f"{PAPER}, section 7.1.3, Figure 4a",
        claims=(CLAIMS[SWITCH],),
        cases=cases_switch,
        evaluate=evaluate_switch,
    ),
    on_testbed(
        name="hydra-4b",
        title="More end-host sequencers",
        source=f"{PAPER}, section 7.1.3, Figure 4b",
        claims=(CLAIMS[HOST],),
        cases=cases_host,
        evaluate=evaluate_host,
    ),
)
