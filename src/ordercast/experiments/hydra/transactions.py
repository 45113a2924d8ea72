"""Transactions over shards (NSDI 2023, section 7.3, Figure 6): HydraTxn, Eris, Granola and Lock-Store.

The claims are about single keys that are read or written, 1:1 and uniform. The same systems also run
transactions of two keys, independent and general ones, and Retwis. Beyond the paper: other shares of
transactions of two keys and of general ones, and keys of which some are drawn more often (Zipf).

How the baselines compare are claims of their own, which need no HydraTxn; the two free numbers are fitted to
them (`transaction_calibration.py`). What each claim would be with others is in its note.
"""

from collections.abc import Iterator
from statistics import median

from ordercast.experiments.experiment import Case, Evaluation, Measurement, Results
from ordercast.experiments.hydra.results import PAPER, latencies, ratio, typical_ratio
from ordercast.experiments.hydra.sensitivity import Effort, on_testbed
from ordercast.experiments.hydra.transaction_calibration import EXECUTION, LIMIT, UNLIMITED
from ordercast.experiments.hydra.transaction_figures import MIXES, SINGLE, figures_6
from ordercast.experiments.hydra.transaction_runs import (
    ERIS,
    FUNCTION,
    GRANOLA,
    HYDRA_TXN,
    LOCK_STORE,
    PART,
    SEQUENCED,
    SYSTEMS,
    Mix,
)
from ordercast.pipeline.cases import Value

Parameters = dict[str, Value]

TXN = "hydra.txn."
CLAIMS = {
    f"{TXN}vs_lockstore": (HYDRA_TXN, LOCK_STORE),
    f"{TXN}vs_granola": (HYDRA_TXN, GRANOLA),
    f"{TXN}vs_eris": (HYDRA_TXN, ERIS),
    "baseline.granola_vs_lockstore": (GRANOLA, LOCK_STORE),
    "baseline.eris_vs_granola": (ERIS, GRANOLA),
}
"""Which system's throughput is divided by which."""
FITTED: Parameters = {"execution": EXECUTION, "limit": LIMIT}
OTHERS: dict[str, Parameters] = {
    "executions that cost nothing": {"execution": 0.0},
    "half of the execution": {"execution": EXECUTION / 2},
    "twice the execution": {"execution": 2 * EXECUTION},
    "3/4 of the limit": {"limit": 0.75 * LIMIT},
    "5/4 of the limit": {"limit": 1.25 * LIMIT},
    "sequencers without a limit": {"limit": UNLIMITED},
}
"""Other free numbers, for the notes."""


def case(system: str, seed: int, messages: int, changes: Parameters, mix: Mix = SINGLE) -> Case:
    """A case of Figure 6; free numbers that are not changed are the fitted ones."""
    usual: Parameters = {"system": system, "order": False}
    return Case(
        parameters=usual | FITTED | mix.parameters() | changes,
        seed=seed,
        function=FUNCTION,
        arguments={"messages": messages},
    )


def cases_6(effort: Effort) -> list[Case]:
    """All systems with single keys; HydraTxn also with the CPU time of Hydra's order."""
    runs: list[tuple[str, Parameters]] = [(system, {}) for system in SYSTEMS]
    runs.append((HYDRA_TXN, {"order": True}))
    found = [
        case(system, seed, effort.messages, changes)
        for system, changes in runs
        for seed in range(effort.seeds)
    ]
    return [*found, *_further()] if effort.thorough else found


def _further() -> Iterator[Case]:
    """Other free numbers and other transactions, with one seed."""
    for system in SYSTEMS:
        yield from (case(system, 0, PART, {}, mix) for mix in MIXES)
        yield from (case(system, 0, PART, other) for other in OTHERS.values() if _bears_on(other, system))


def _bears_on(other: Parameters, system: str) -> bool:
    return "limit" not in other or system in SEQUENCED


def evaluate_6(results: Results) -> Evaluation:
    """Latency over throughput, load by load, and the ratios of maximum throughputs."""
    single = results.where(order=False, **SINGLE.parameters())
    charged = results.where(order=True)
    return Evaluation(
        measurements=tuple(_measured(claim, single, charged) for claim in CLAIMS),
        figures=figures_6(results.where(order=False, **FITTED)),
    )


def _measured(claim: str, single: Results, charged: Results) -> Measurement:
    """The ratio of two systems; its note has the latencies and what other free numbers would give."""
    above, below = CLAIMS[claim]
    over, under = (single.where(system=system, **FITTED) for system in (above, below))
    notes = [_waits(above, over, below, under)]
    if above == HYDRA_TXN:
        paid = typical_ratio(charged, under)
        notes.append(f"with the CPU time of Hydra's order charged to HydraTxn alone: {paid:.3g}")
    return ratio(claim, over, under, *notes, *_moved(above, below, single))


def _moved(above: str, below: str, single: Results) -> Iterator[str]:
    """What the ratio would be with other free numbers, where these were run."""
    for told, other in OTHERS.items():
        over, under = (_with(other, system, single) for system in (above, below))
        changes = _bears_on(other, above) or _bears_on(other, below)
        if over.all and under.all and changes:
            yield f"with {told}: {typical_ratio(over, under):.3g}"


def _with(other: Parameters, system: str, single: Results) -> Results:
    """A system with other free numbers, if they bear on it."""
    return single.where(system=system, **(FITTED | other if _bears_on(other, system) else FITTED))


def _waits(above: str, over: Results, below: str, under: Results) -> str:
    """How long a transaction takes while nothing waits for anything else."""
    mine, theirs = median(latencies(over).values()), median(latencies(under).values())
    share = f"{100 * abs(1 - mine / theirs):.0f}% {'less' if mine <= theirs else 'more'}"
    return (
        f"with a client for each shard {SYSTEMS[above]} takes {mine:.3g} us and {SYSTEMS[below]}"
        f" {theirs:.3g} us, {share}"
    )


EXPERIMENTS = (
    on_testbed(
        name="hydra-6",
        title="Transactions over shards",
        source=f"{PAPER}, section 7.3, Figure 6",
        claims=tuple(CLAIMS),
        cases=cases_6,
        evaluate=evaluate_6,
    ),
)
