"""EpTO with as many processes as the Internet has peers: 10,000 to a million (beyond section 6, Figure 7b).

The paper stops at 10,000 processes. What it finds up to there, that two orders of magnitude less than double
the delay, is expected to hold for two more. Rounds begin at random times and latencies are drawn, as nothing
keeps so many processes in step.

With a million processes, 50,000 events are broadcast in each round. The engine follows the first of them
only: with a global clock nothing that comes later is before them in the order, so their delays are what they
would be among all. They are the first of a run, so fewer events are before them than in the long run. To
compare like with like, the first 64 events are followed at each size; at smaller sizes more of them, too,
which shows how much that matters.
"""

import time

from ordercast.experiments.epto.latencies import (
    DRAWN,
    STAND_IN,
    Model,
    file_arguments,
    find_file,
    latencies_of,
)
from ordercast.experiments.epto.results import (
    HIGH,
    MEDIAN,
    PAPER,
    compared,
    counted,
    distribution,
    distributions,
    ratios,
    seeds,
    typical,
)
from ordercast.experiments.epto.runs import BY_LEMMA, GLOBAL, by_lemma, summary
from ordercast.experiments.experiment import Case, CaseValues, Evaluation, Experiment, Results, Setup

GROWTH, HOLES_CLAIM = "epto.internet.growth", "epto.internet.holes"
SMALLEST, MIDDLE, LARGEST = 10_000, 100_000, 1_000_000
TRACKED = 64
MORE = {SMALLEST: 1_000, MIDDLE: 320}
"""Events followed in further runs."""
CPU, MEMORY = "cpu_seconds", "memory_bytes"


def measure(*, processes: int, tracked: int, model: Model, file: str, digest: str, seed: int) -> CaseValues:
    """Delays and holes of the first events, and what it took to know them: seconds, memory."""
    from ordercast.engines.epto import run as engine
    from ordercast.engines.epto.setup import Setup as Asked

    chosen = by_lemma(processes, GLOBAL)
    asked = Asked(
        processes=processes,
        fanout=chosen.fanout,
        ttl=chosen.ttl,
        clock=GLOBAL,
        rounds=2,
        tracked=tracked,
        seed=seed,
    )
    start = time.process_time()
    outcome = engine.run(asked, latencies_of(model, file, digest), cores=1)
    return summary(outcome, {BY_LEMMA: 1.0, CPU: time.process_time() - start})


def cases(setup: Setup) -> list[Case]:
    """The largest first; a million only in full."""
    file = find_file(setup.data)
    sizes = (MIDDLE, SMALLEST) if setup.quick else (LARGEST, MIDDLE, SMALLEST)
    points = [(size, TRACKED) for size in sizes] + ([] if setup.quick else list(MORE.items()))
    return [
        Case(
            parameters={"processes": processes, "tracked": tracked, "model": DRAWN if file else STAND_IN},
            seed=seed,
            function="ordercast.experiments.epto.internet:measure",
            weight=processes,
            arguments=file_arguments(file),
        )
        for processes, tracked in points
        for seed in (range(1) if processes == LARGEST else seeds(setup, quick=1, full=3))
    ]


def evaluate(results: Results) -> Evaluation:
    """How much longer delays become, holes, and the cost of knowing it."""
    followed = results.where(tracked=TRACKED)
    by = {int(size): each for size, each in followed.by("processes").items()}
    largest = max(by)
    said = [_said(size, by[size]) for size in sorted(by)]
    for size, tracked in MORE.items():
        more = results.where(processes=size, tracked=tracked)
        if more.all:
            said.append(f"{size:,} processes and {tracked} events: median {typical(more):.0f}")
    note = "; ".join(said)
    if largest < LARGEST:
        note = f"the largest run has {largest:,} processes; {note}"
    curves = [
        distribution(f"{size:,} processes, {tracked} events", each)
        for tracked, of_tracked in results.by("tracked").items()
        for size, each in sorted(of_tracked.by("processes").items(), key=lambda item: int(item[0]))
    ]
    caption = "up to a million processes, global clock, 5% broadcasts; the first events of a run."
    figure = distributions("7b", "Delivery delay up to a million", caption, curves, results, "internet")
    measured = (
        compared(GROWTH, ratios(by[largest], by[SMALLEST], MEDIAN), note),
        counted(HOLES_CLAIM, results),
    )
    return Evaluation(measurements=measured, figures=(figure,))


def _said(size: int, results: Results) -> str:
    """Delays of a size, and what a run of it took."""
    delays = f"median {typical(results):.0f} and 99th percentile {typical(results, HIGH):.0f} ticks"
    took = f"{typical(results, CPU):.0f} s of CPU and {typical(results, MEMORY) / 2**30:.2f} GiB"
    fanout, ttl = typical(results, "fanout"), typical(results, "ttl")
    return f"{size:,} processes (K = {fanout:.0f}, TTL = {ttl:.0f}): {delays}, {took}"


EXPERIMENTS = (
    Experiment(
        name="epto-internet",
        title="Up to a million processes",
        source=f"beyond {PAPER}, section 6, Figure 7b",
        claims=(GROWTH, HOLES_CLAIM),
        cases=cases,
        evaluate=evaluate,
    ),
)
