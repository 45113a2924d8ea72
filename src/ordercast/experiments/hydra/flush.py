"""How Hydra's receivers come by their flushes (NSDI 2023, section 7.1.2, Figure 3).

15 groups of three and four switch sequencers, under four policies: sequencers flush periodically (GEN),
receivers ask after a delay (SOL), receivers ask as their load allows (ADP), and periodic flushes that the
switch aggregates for receivers that ask (AGG).

The paper prints one delay, the longest: 100 us. The shortest is ours: a tenth of it, with 20 and 50 us
between. How much the shortest period of GEN costs follows from it and from the cost of a packet, neither of
which the paper prints: four sequencers at a period of T us take 4/T of a receiver's CPU in this model. So the
claims about GEN and AGG say as much about these two numbers as about Hydra, and their notes name all periods.
"""

from ordercast.experiments.experiment import Case, Evaluation, Experiment, Results, Setup
from ordercast.experiments.hydra.results import (
    MODEL,
    PAPER,
    compared,
    latencies,
    load_curve,
    ratio,
    seeds,
    typical_ratio,
)
from ordercast.experiments.hydra.testbed import HYDRA, UNORDERED
from ordercast.report.figures import Axis, Figure

GROUPS, RECEIVERS, SEQUENCERS = 15, 3, 4
GEN, SOL, ADP, AGG = "periodic", "solicited", "adaptive", "aggregated"
LABELS = {GEN: "GEN", SOL: "SOL", ADP: "ADP", AGG: "AGG", "": "unordered multicast"}
SHORTEST, LONGEST = 10_000, 100_000
DELAYS = (SHORTEST, 20_000, 50_000, LONGEST)
DEFAULT = -1
"""In cases without a delay of their own."""
CLIENTS_A_HOST = 8
"""At the highest load: waits of 100 us need many clients."""

GEN_CLAIM, AGG_CLAIM = "hydra.flush.gen_throughput_loss", "hydra.flush.agg_gain"
WAIT_CLAIM, RATE_CLAIM = "hydra.flush.adp_latency_us", "hydra.flush.adp_throughput"


def _policies(setup: Setup) -> list[tuple[str, int]]:
    """Policies and their delays; unordered multicast has none."""
    ends = (SHORTEST, LONGEST)
    if setup.quick:
        return [("", DEFAULT), (ADP, DEFAULT), (GEN, SHORTEST), (GEN, LONGEST), (AGG, SHORTEST)]
    periodic = [(GEN, delay) for delay in DELAYS]
    others = [(policy, delay) for policy in (SOL, AGG) for delay in ends]
    return [("", DEFAULT), (ADP, DEFAULT), *periodic, *others]


def cases(setup: Setup) -> list[Case]:
    """From one client a group to far beyond saturation."""
    loads = ((1, 1), (128, CLIENTS_A_HOST)) if setup.quick else ((1, 1), (16, 1), (128, CLIENTS_A_HOST))
    return [
        Case(
            parameters={
                "system": HYDRA if flush else UNORDERED,
                "flush": flush,
                "flush_ns": delay,
                "clients": load * GROUPS,
            },
            seed=seed,
            function="ordercast.experiments.hydra.bench:closed_loop",
            arguments={
                "groups": GROUPS,
                "receivers": RECEIVERS,
                "sequencers": SEQUENCERS,
                "clients_a_host": at_once,
                "warm_us": 600.0,
                "measured_us": 800.0,
            },
        )
        for flush, delay in _policies(setup)
        for load, at_once in loads
        for seed in seeds(setup, quick=1, full=2)
    ]


def evaluate(results: Results) -> Evaluation:
    """Latency over throughput, policy by policy."""
    unordered, adaptive = results.where(flush=""), results.where(flush=ADP)
    shortest = {flush: results.where(flush=flush, flush_ns=SHORTEST) for flush in (GEN, AGG)}
    longest = results.where(flush=GEN, flush_ns=LONGEST)
    base, waits = latencies(unordered), latencies(adaptive)
    figure = Figure(
        id="hydra-3",
        title="Flush policies: latency and throughput, 15 groups, four sequencers",
        caption=f"After Figure 3 of {PAPER}. Each marker is a load, from one client per group on. Band: all "
        f"seeds. The paper gives only the longest of the delays, 100 us. {MODEL}",
        x=Axis(label="throughput (1000 messages/s)", low=0.0),
        y=Axis(label="median latency at clients (us)", scale="log"),
        curves=tuple(
            load_curve(_label(str(flush), int(delay)), each)
            for flush, policy in results.by("flush").items()
            for delay, each in policy.by("flush_ns").items()
        ),
    )
    measured = (
        ratio(GEN_CLAIM, shortest[GEN], longest, _by_period(results.where(flush=GEN), longest)),
        ratio(AGG_CLAIM, shortest[AGG], shortest[GEN], f"both at {SHORTEST // 1000} us"),
        compared(WAIT_CLAIM, {seed: waits[seed] - base[seed] for seed in waits}),
        ratio(RATE_CLAIM, adaptive, unordered),
    )
    return Evaluation(measurements=measured, figures=(figure,))


def _label(flush: str, delay: int) -> str:
    return LABELS[flush] if delay == DEFAULT else f"{LABELS[flush]}, {delay // 1000} us"


def _by_period(generated: Results, longest: Results) -> str:
    shares = [
        f"{int(delay) // 1000} us: {typical_ratio(each, longest):.3g}"
        for delay, each in generated.by("flush_ns").items()
    ]
    return f"by period: {', '.join(shares)}"


EXPERIMENTS = (
    Experiment(
        name="hydra-3",
        title="Flush policies",
        source=f"{PAPER}, section 7.1.2, Figure 3",
        claims=(GEN_CLAIM, AGG_CLAIM, WAIT_CLAIM, RATE_CLAIM),
        cases=cases,
        evaluate=evaluate,
    ),
)
