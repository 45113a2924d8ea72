"""Runs of EpTO's evaluation (Middleware 2015, section 6): one case is one run of the array engine.

From the paper: rounds of 125 ticks with a uniformly random drift of 1%, a broadcast by each process with a
probability in each round, latencies as measured between nodes of PlanetLab, and K and TTL as the lemmas give
them for c = 1.25. Neither drift nor latency enters into them, or it would be more. All else depends on the
world: see `worlds.py`.

Ours: there are broadcasts for so many rounds that some hundred events come together.

A *hole* is an event that a process owes and never delivers: it was there when the event was broadcast, and
until the others had delivered it. The paper looks at processes "that remained in the system long enough":
here, those that were there before the first broadcast. What processes lack that joined later is counted by
itself, and what is missing at processes that left, or left with its source, by its cause. Beside that, holes
are counted as the authors' program does, with newcomers: see `engines.epto.holes`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from ordercast.experiments.epto.latencies import (
    DRAWN,
    MATRIX,
    STAND_IN,
    Model,
    file_arguments,
    find_file,
    latencies_of,
)
from ordercast.experiments.epto.worlds import AUTHORS, World
from ordercast.experiments.experiment import Case, CaseResult, CaseValues, Setup
from ordercast.protocols.epto.parameters import Parameters, lemma_parameters

if TYPE_CHECKING:  # at run time only in a task: the engine is an extra
    from ordercast.engines.epto.holes import Hole
    from ordercast.engines.epto.run import Outcome
    from ordercast.engines.epto.setup import Setup as Asked

C = 1.25
TICKS_A_SECOND = 1_000
UNORDERED_MAX = 100
"""Up to so many processes, which are those of Figure 6, unordered deliveries are counted too."""
HOLES_NAMED = 3

Clock = Literal["global", "logical"]
GLOBAL: Clock = "global"
LOGICAL: Clock = "logical"
CLOCKS = (GLOBAL, LOGICAL)

CAUSES = {
    "never heard of": "holes_never_heard_of",
    "came too late": "holes_came_too_late",
    "left before": "left_before",
    "gone with its source": "gone_with_source",
}
"""Why an event is missing, and the name of the count; the first two are holes."""
HOLES, VIOLATIONS, BY_LEMMA = "holes", "violations", "by_lemma"
NEW_HOLES, NEW_PROCESSES, NEW_ROUNDS = "holes_at_newcomers", "newcomers_with_holes", "newcomers_rounds_most"
"""Of processes that joined during the run: how many events they lack, how many such processes there are, and
how many rounds one of them had been there at most when such an event was broadcast."""
AUTHORS_HOLES, AUTHORS_PROCESSES = "holes_as_authors", "processes_with_holes_as_authors"
"""Holes as the authors' program counts them, at newcomers too; and the processes that have some."""


class NamedHole(msgspec.Struct, frozen=True):
    """One hole of a run: who lacks which event. Times are in ticks."""

    process: int
    source: int
    """Who broadcast the event."""
    born: int
    """When it was broadcast."""
    joined: int
    """When the process joined; 0: before the first broadcast."""

    def __str__(self) -> str:
        return f"process {self.process} lacks the event that {self.source} broadcast at tick {self.born}"


def by_lemma(processes: int, clock: Clock, *, loss: float = 0.0, churn: float = 0.0) -> Parameters:
    """K and TTL by the lemmas; the authors' K is that without loss and churn."""
    return lemma_parameters(processes, C, loss=loss, churn=churn, clock=clock)


def rounds_of(processes: int, quick: bool) -> int:
    """For how long there are broadcasts: 500 events of 100 processes, in full."""
    least = 10 if quick else 20
    return max(least, (4_000 if quick else 10_000) // processes)


def run_case(
    setup: Setup,
    seed: int,
    *,
    world: World,
    processes: int,
    clock: Clock = GLOBAL,
    ttl: int = 0,
    rate: float = 0.05,
    loss: float = 0.0,
    churn: float = 0.0,
    sampling: Literal["uniform", "cyclon"] = "uniform",
    rounds_first: bool = False,
) -> Case:
    """A case; two figures that need the same run name it alike, so that it runs once."""
    file = find_file(setup.data)
    model = MATRIX if world == AUTHORS else DRAWN
    return Case(
        parameters={
            "world": world,
            "processes": processes,
            "clock": clock,
            "ttl": ttl,
            "rate": rate,
            "loss": loss,
            "churn": churn,
            "sampling": sampling,
            "rounds_first": rounds_first,
            "model": model if file else STAND_IN,
        },
        seed=seed,
        function="ordercast.experiments.epto.runs:measure",
        weight=processes,
        arguments={**file_arguments(file), "rounds": rounds_of(processes, setup.quick)},
    )


def measure(
    *,
    world: World,
    processes: int,
    clock: Clock,
    ttl: int,
    rate: float,
    loss: float,
    churn: float,
    sampling: Literal["uniform", "cyclon"],
    rounds_first: bool,
    model: Model,
    file: str,
    digest: str,
    rounds: int,
    seed: int,
) -> CaseValues:
    """Delays in ticks by percentile, holes by cause, and what broke the order; a TTL of 0 is the lemmas'.

    With `rounds_first`, a ball that arrives in the tick of a round is for the next round.
    """
    from ordercast.engines.epto import run as engine
    from ordercast.engines.epto.setup import Setup as Asked

    make = authors_setup if world == AUTHORS else random_setup
    some = Asked(processes, 1, 1, clock, rate=rate, rounds=rounds, loss=loss, churn=churn, seed=seed)
    asked = make(some, ttl, sampling)
    latencies = latencies_of(model, file, digest)
    counts_first = processes <= UNORDERED_MAX
    outcome = engine.run(
        asked,
        latencies.later() if rounds_first else latencies,
        arrivals=counts_first and world != AUTHORS,
        unordered=counts_first and world == AUTHORS,
        cores=1,
    )
    more = {BY_LEMMA: float(not ttl or ttl >= by_lemma(processes, clock).ttl)}
    if counts_first:
        more |= percentiles(outcome.unordered if world == AUTHORS else outcome.arrivals, "first_")
    return summary(outcome, more)


def authors_setup(some: "Asked", ttl: int, sampling: Literal["uniform", "cyclon"]) -> "Asked":
    """What is asked of the engine in the authors' world; a TTL of 0 is the lemmas'."""
    chosen = by_lemma(some.processes, some.clock)
    return msgspec.structs.replace(
        some,
        fanout=chosen.fanout,
        ttl=(ttl or chosen.ttl) + 1,
        in_step=True,
        sampling="cyclon-authors" if sampling == "cyclon" else "uniform",
    )


def random_setup(some: "Asked", ttl: int, sampling: Literal["uniform", "cyclon"]) -> "Asked":
    """What is asked of the engine with random phases; a TTL of 0 is the lemmas'."""
    chosen = by_lemma(some.processes, some.clock, loss=some.loss, churn=some.churn)
    return msgspec.structs.replace(some, fanout=chosen.fanout, ttl=ttl or chosen.ttl, sampling=sampling)


def summary(outcome: "Outcome", more: dict[str, float]) -> CaseValues:
    """What every run tells, with `more` numbers; the records are its first holes."""
    setup, line, missing = outcome.setup, outcome.line, outcome.holes()
    counts = percentiles(outcome.delays) | holes(outcome, missing) | {VIOLATIONS: outcome.violations}
    counts |= {"events": len(outcome.events), "deliveries": outcome.deliveries}
    counts |= {"fanout": setup.fanout, "ttl": setup.ttl, "seconds": line.ticks / TICKS_A_SECOND}
    counts |= {"process_rounds": outcome.rounds_run, "memory_bytes": outcome.memory_bytes}
    records = [msgspec.to_builtins(hole) for hole in first_holes(missing)]
    return CaseValues(numbers=counts | more, records=records)


def holes(outcome: "Outcome", missing: list["Hole"]) -> dict[str, float]:
    """Holes by cause, apart from those of newcomers; and as the authors count them."""
    from ordercast.engines.epto.holes import count_as_authors

    stayed, new = _owed(missing)
    # More may be missing than is listed; then none of what is not listed is excused.
    unlisted = outcome.missing.not_listed
    counts = {HOLES: len(stayed) + unlisted, NEW_HOLES: len(new)}
    counts[NEW_PROCESSES] = len({hole.process for hole in new})
    as_authors = count_as_authors(missing, outcome.setup)
    counts[AUTHORS_HOLES] = len(as_authors)
    counts[AUTHORS_PROCESSES] = len({hole.process for hole in as_authors})
    longest = max((hole.born - hole.joined for hole in new), default=0)
    counts[NEW_ROUNDS] = -(-longest // outcome.setup.round_ticks)
    for cause, name in CAUSES.items():
        counts[name] = sum(hole.cause == cause for hole in missing)
    counts[CAUSES["left before"]] = outcome.missing.left_before
    return {name: float(count) for name, count in counts.items()}


def first_holes(missing: Iterable["Hole"]) -> list[NamedHole]:
    """Some holes of a run; those of processes that stayed come first."""
    stayed, new = _owed(missing)
    found = [*stayed, *new][:HOLES_NAMED]
    return [NamedHole(hole.process, hole.source, hole.born, hole.joined) for hole in found]


def _owed(missing: Iterable["Hole"]) -> tuple[list["Hole"], list["Hole"]]:
    """What processes owe that were there from the start, and what newcomers do."""
    owed = [hole for hole in missing if hole.owed]
    return [hole for hole in owed if not hole.joined], [hole for hole in owed if hole.joined]


def percentiles(histogram: NDArray[np.int64], prefix: str = "") -> dict[str, float]:
    """All from the shortest delay, p00, to the longest, p100; none if nothing was delivered."""
    total = int(histogram.sum())
    if not total:
        return {}
    cumulated = np.cumsum(histogram)
    ranks = np.maximum(1, np.ceil(np.arange(101) / 100 * total))
    ticks = np.searchsorted(cumulated, ranks)
    return {f"{prefix}p{percent:02}": float(tick) for percent, tick in enumerate(ticks)}


def named_holes(result: CaseResult) -> str:
    """The first holes of a run in words, or nothing."""
    return "; ".join(map(str, msgspec.convert(result.records, list[NamedHole])))
