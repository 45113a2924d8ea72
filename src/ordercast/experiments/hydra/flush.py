"""How Hydra's receivers come by their flushes (NSDI 2023, section 7.1.2, Figure 3).

15 groups of three and four switch sequencers, under four policies: sequencers flush periodically (GEN),
receivers ask after a delay (SOL), receivers ask as their load allows (ADP), and periodic flushes that the
switch aggregates for receivers that ask (AGG).

The paper prints one delay, the longest: 100 us. The shortest is ours: a tenth of it, with 20 and 50 us
between. How much the shortest period of GEN costs follows from it and from the cost of a packet, neither of
which the paper prints: four sequencers at a period of T us send a receiver 4/T packets a microsecond. So the
claims about GEN and AGG say as much about these two numbers as about Hydra, and the note of the first names
all periods.
"""

from ordercast.experiments.experiment import Case, Evaluation, Results
from ordercast.experiments.hydra.calibration import PUBLISHED
from ordercast.experiments.hydra.results import (
    MODEL,
    ORDER,
    PAPER,
    compared,
    latencies,
    load_curve,
    ratio,
    typical_ratio,
)
from ordercast.experiments.hydra.sensitivity import Effort, on_testbed
from ordercast.experiments.hydra.testbed import HYDRA, UNORDERED
from ordercast.report.figures import Axis, Figure

GROUPS, RECEIVERS, SEQUENCERS = 15, 3, 4
GEN, SOL, ADP, AGG = "periodic", "solicited", "adaptive", "aggregated"
LABELS = {GEN: "GEN", SOL: "SOL", ADP: "ADP", AGG: "AGG", "": "unordered multicast"}
SHORTEST, LONGEST = 10_000, 100_000
DEFAULT = -1
"""In cases without a delay of their own."""
PERIODS_COUNTED = 3
"""At least, of delays."""

GEN_CLAIM, AGG_CLAIM = "hydra.flush.gen_throughput_loss", "hydra.flush.agg_gain"
WAIT_CLAIM, RATE_CLAIM = "hydra.flush.adp_latency_us", "hydra.flush.adp_throughput"


def _policies(effort: Effort) -> list[tuple[str, int]]:
    """Policies and their delays; unordered multicast has none."""
    periods = (SHORTEST, 20_000, 50_000, LONGEST) if effort.thorough else (SHORTEST, LONGEST)
    needed = [("", DEFAULT), (ADP, DEFAULT), *((GEN, period) for period in periods), (AGG, SHORTEST)]
    others = [(SOL, SHORTEST), (SOL, LONGEST), (AGG, LONGEST)]
    return [*needed, *others] if effort.thorough else needed


def cases(effort: Effort) -> list[Case]:
    """All policies."""
    return [
        Case(
            parameters={"system": HYDRA if flush else UNORDERED, "flush": flush, "flush_ns": delay},
            seed=seed,
            function="ordercast.experiments.hydra.saturation:closed_loop",
            arguments={
                "groups": GROUPS,
                "receivers": RECEIVERS,
                "sequencers": SEQUENCERS,
                "messages": effort.messages,
                "least_us": PERIODS_COUNTED * max(delay, 0) / 1e3,
            },
        )
        for flush, delay in _policies(effort)
        for seed in range(effort.seeds)
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
        ratio(GEN_CLAIM, shortest[GEN], longest, _by_period(results.where(flush=GEN), longest), _share()),
        ratio(AGG_CLAIM, shortest[AGG], shortest[GEN], f"both at {SHORTEST // 1000} us", _share()),
        compared(WAIT_CLAIM, {seed: waits[seed] - base[seed] for seed in waits}),
        ratio(RATE_CLAIM, adaptive, unordered, ORDER),
    )
    return Evaluation(measurements=measured, figures=(figure,))


def _share() -> str:
    """The reason for what periodic flushes cost."""
    share = SEQUENCERS * PUBLISHED.packet_ns / SHORTEST
    return f"{SEQUENCERS} flushes every {SHORTEST // 1000} us take {share:.2g} of a receiver's CPU"


def _label(flush: str, delay: int) -> str:
    return LABELS[flush] if delay == DEFAULT else f"{LABELS[flush]}, {delay // 1000} us"


def _by_period(generated: Results, longest: Results) -> str:
    shares = [
        f"{int(delay) // 1000} us: {typical_ratio(each, longest):.3g}"
        for delay, each in generated.by("flush_ns").items()
    ]
    return f"by period: {', '.join(shares)}"


EXPERIMENTS = (
    on_testbed(
        name="hydra-3",
        title="Flush policies",
        source=f"{PAPER}, section 7.1.2, Figure 3",
        claims=(GEN_CLAIM, AGG_CLAIM, WAIT_CLAIM, RATE_CLAIM),
        cases=cases,
        evaluate=evaluate,
    ),
)
