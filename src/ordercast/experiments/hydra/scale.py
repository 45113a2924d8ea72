"""Hydra with more and more sequencers (NSDI 2023, section 7.1.3, Figure 4).

Up to eight switch sequencers, each behind a queue of 10 Gb/s, or up to eight end hosts; 15 real groups of
three. As many virtual groups, which have no receivers, load switch sequencers beyond what real receivers
could take; end hosts are slow enough to be saturated without. Sources are open-loop, for nobody answers for
a virtual group. Each message goes to one group, so the numbers that sequencers gave out count groupcasts.

*Throughput* is what sequencers stamp by second when a fifth more than they can take is offered, and *latency*
that of real deliveries when a fifth less is. What a sequencer can take is one packet in the time that its
link or its CPU needs for it. Messages at switches have 1,400 bytes instead of 64, which only makes the unit
larger and the runs shorter: the links' rate is in bits. Flushes are adaptive, the product's default.

End hosts lose to questions for flushes, which cost them CPU. With receivers that asked all sequencers behind
them, eight end hosts came to 0.79 of eight times one; that they ask only those that hold up the first message
came of this.
"""

from collections.abc import Sequence
from statistics import median, median_low

from ordercast.core import MICROSECOND, SECOND, LocalError
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup
from ordercast.experiments.hydra.bench import LATENCY, RATE, check, ready_world
from ordercast.experiments.hydra.results import MODEL, PAPER, compared, peaks, seeds
from ordercast.experiments.hydra.testbed import HYDRA, LINKS, MESSAGES_MAX, PACKET_NS, hydra_options, testbed
from ordercast.report.figures import Axis, Curve, Figure, over_seeds
from ordercast.scenario.spec import LinksSpec, WorkloadSpec
from ordercast.sim.build import build_workload
from ordercast.sim.world import World
from ordercast.trace import Kind

GROUPS, RECEIVERS, SENDERS_A_SEQUENCER = 15, 3, 4
SWITCH, HOST = "switch", "host"
PAYLOAD_BYTES, PACKET_BYTES = {SWITCH: 1_400, HOST: 64}, 1_500
LIMIT_GBPS = 10.0
VIRTUAL_GROUPS = {SWITCH: 15, HOST: 0}
BELOW, BEYOND = 0.8, 1.2
"""Shares of what sequencers can take."""
CLAIMS = {SWITCH: "hydra.scale.switch_linear", HOST: "hydra.scale.endhost_linear"}
WARM_US = 300.0


def capacity_per_s(kind: str) -> float:
    """Groupcasts that one sequencer can stamp: its link is the limit, or its CPU, at two packets each."""
    return LIMIT_GBPS * 1e9 / (PACKET_BYTES * 8) if kind == SWITCH else SECOND / (2 * PACKET_NS)


def measure(*, kind: str, sequencers: int, load: float, measured_us: float, seed: int) -> dict[str, float]:
    """What sequencers stamp by second, real and virtual, and the median latency of real deliveries."""
    senders = SENDERS_A_SEQUENCER * sequencers
    rate = load * capacity_per_s(kind) / SENDERS_A_SEQUENCER
    workload = WorkloadSpec(
        kind="poisson", messages=MESSAGES_MAX, rate_per_s=rate, bytes=PAYLOAD_BYTES[kind], spread=(1.0,)
    )
    options = hydra_options(sequencers=sequencers, kind=kind, virtual_groups=VIRTUAL_GROUPS[kind])
    scenario = testbed(
        HYDRA,
        seed=seed,
        workload=workload,
        clients=senders,
        groups=GROUPS,
        receivers=RECEIVERS,
        options=options,
        links=_links(kind),
    )
    world = ready_world(scenario)
    build_workload(scenario, world).start()
    world.run(world.now + round(WARM_US * MICROSECOND))
    start, before = world.now, _stamped(world)
    world.run(start + round(measured_us * MICROSECOND))
    seconds, stamped = (world.now - start) / SECOND, _stamped(world) - before
    latencies = [
        time - submitted
        for time, _, _, what, _, _, _, submitted, *_ in world.rows
        if what is Kind.DELIVER and isinstance(submitted, int) and isinstance(time, int) and time > start
    ]
    check(scenario, world)
    if not latencies:
        raise LocalError("nothing was delivered")
    return {RATE: stamped / seconds, LATENCY: median_low(latencies), "seconds": seconds}


def _links(kind: str) -> LinksSpec:
    if kind == HOST:
        return LINKS
    return LinksSpec(
        topology=LINKS.topology,
        host_gbps=LINKS.host_gbps,
        propagation_us=LINKS.propagation_us,
        role_gbps={SWITCH: LIMIT_GBPS},
    )


def _stamped(world: World) -> int:
    explained = (explanation.state for explanation in world.explain().values())
    return sum(int(state.get("messages stamped", 0)) for state in explained)


def _counts(setup: Setup) -> tuple[int, ...]:
    return (1, 8) if setup.quick else (1, 2, 4, 6, 8)


def _cases(kind: str, setup: Setup) -> list[Case]:
    return [
        Case(
            parameters={"kind": kind, "sequencers": sequencers, "load": load},
            seed=seed,
            function="ordercast.experiments.hydra.scale:measure",
            arguments={"measured_us": 700.0},
        )
        for sequencers in _counts(setup)
        for load in (BELOW, BEYOND)
        for seed in seeds(setup)
    ]


def cases_switch(setup: Setup) -> list[Case]:
    """Figure 4a."""
    return _cases(SWITCH, setup)


def cases_host(setup: Setup) -> list[Case]:
    """Figure 4b."""
    return _cases(HOST, setup)


def _evaluate(kind: str, results: Results, figure: str, title: str) -> Evaluation:
    beyond, below = results.where(load=BEYOND), results.where(load=BELOW)
    by_count = {int(count): peaks(each) for count, each in beyond.by("sequencers").items()}
    one, most = by_count[1], max(by_count)
    about = f"After Figure {figure[-2:]} of {PAPER}: 15 groups of three. Band: all seeds. {MODEL}"
    counts = Axis(label="sequencers", low=0.0, high=9.0)
    waits = [(float(count), each.values(LATENCY)) for count, each in below.by("sequencers").items()]
    risen = ", ".join(f"{median(found) / 1e3:.3g} us with {count:.0f}" for count, found in waits)
    ratios = {seed: by_count[most][seed] / (most * one[seed]) for seed in one}
    measured: tuple[Measurement, ...] = (
        compared(CLAIMS[kind], ratios, f"median latency at 80% of the capacity: {risen}"),
    )
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
        caption=f"{about} At 80% of the sequencers' capacity.",
        x=counts,
        y=Axis(label="median latency of deliveries (us)", low=0.0),
        curves=(_curve("Hydra", waits, 1e-3),),
    )
    return Evaluation(measurements=measured, figures=(rates, latency))


def _curve(label: str, values: Sequence[tuple[float, list[float]]], unit: float) -> Curve:
    return Curve(label=label, points=over_seeds([(x, [y * unit for y in ys]) for x, ys in values]))


def evaluate_switch(results: Results) -> Evaluation:
    """Figure 4a."""
    return _evaluate(SWITCH, results, "hydra-4a", "Switch sequencers")


def evaluate_host(results: Results) -> Evaluation:
    """Figure 4b."""
    return _evaluate(HOST, results, "hydra-4b", "End-host sequencers")


EXPERIMENTS = (
    Experiment(
        name="hydra-4a",
        title="More switch sequencers",
        source=f"{PAPER}, section 7.1.3, Figure 4a",
        claims=(CLAIMS[SWITCH],),
        cases=cases_switch,
        evaluate=evaluate_switch,
    ),
    Experiment(
        name="hydra-4b",
        title="More end-host sequencers",
        source=f"{PAPER}, section 7.1.3, Figure 4b",
        claims=(CLAIMS[HOST],),
        cases=cases_host,
        evaluate=evaluate_host,
    ),
)
