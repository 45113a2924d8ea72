"""The figures of transactions over shards: after Figure 6 of the paper, and beyond it."""

from ordercast.experiments.experiment import Results
from ordercast.experiments.hydra.results import PAPER, load_curve, peak_curve, peaks
from ordercast.experiments.hydra.transaction_runs import (
    ERIS,
    GRANOLA,
    HYDRA_TXN,
    LOCK_STORE,
    SHARDS,
    SYSTEMS,
    Mix,
)
from ordercast.experiments.published import published
from ordercast.report.figures import Axis, Figure, Reference

SINGLE, INDEPENDENT, GENERAL, RETWIS = Mix(), Mix(two=1.0), Mix(two=1.0, general=1.0), Mix(retwis=True)
LIKE_THE_PAPER = {
    "hydra-6": (SINGLE, "one key is read or written"),
    "hydra-6-independent": (INDEPENDENT, "two keys are read and changed, independent"),
    "hydra-6-general": (GENERAL, "two keys are read and changed, general"),
    "hydra-6-retwis": (RETWIS, "Retwis"),
}
SHARES, SKEWS = (0.5,), (0.9, 1.2)
MIXES = (
    *(Mix(two=share) for share in SHARES),
    INDEPENDENT,
    *(Mix(two=1.0, general=share) for share in SHARES),
    GENERAL,
    *(Mix(skew=skew) for skew in SKEWS),
    RETWIS,
)
"""What is run besides single keys, in the order of the points of curves."""
MODEL = (
    f"{SHARDS} shards of three replicas. Packets and executions cost CPU time; nothing is batched; clients"
    " call again after 1 ms."
)
RATES = Axis(label="throughput (1000 transactions/s)", low=0.0)


def figures_6(results: Results) -> tuple[Figure, ...]:
    """All that were run."""
    made = [
        _loads(name, results.where(**mix.parameters()), about)
        for name, (mix, about) in LIKE_THE_PAPER.items()
    ]
    made += [_over("hydra-6-two", "two", SINGLE, "share of transactions of two keys, independent", results)]
    made += [
        _over(
            "hydra-6-general-share",
            "general",
            INDEPENDENT,
            "share of general transactions, of two keys each",
            results,
        )
    ]
    made += [_over("hydra-6-skew", "skew", SINGLE, "skew of the keys (Zipf)", results)]
    return tuple(figure for figure in made if figure.curves)


def _loads(name: str, results: Results, about: str) -> Figure:
    """Latency over throughput."""
    return Figure(
        id=name,
        title=f"Transactions over shards: {about}",
        caption=f"After Figure 6 of {PAPER}. Each marker is a load, from a client for each shard on. {MODEL}",
        x=RATES,
        y=Axis(label="median latency at clients (us)", scale="log"),
        curves=tuple(
            load_curve(SYSTEMS[system], found)
            for system in SYSTEMS
            if (found := results.where(system=system)).all
        ),
        references=_references(results) if name == "hydra-6" else (),
    )


def _references(results: Results) -> tuple[Reference, ...]:
    """Where the paper has the others, by their ratios to HydraTxn."""
    highest = max(peaks(results.where(system=HYDRA_TXN)).values()) / 1e3
    claims = {LOCK_STORE: "vs_lockstore", GRANOLA: "vs_granola", ERIS: "vs_eris"}
    return tuple(
        Reference(label=f"{SYSTEMS[system]}, by the paper", x=highest / published(f"hydra.txn.{claim}"))
        for system, claim in claims.items()
    )


def _over(name: str, parameter: str, base: Mix, label: str, results: Results) -> Figure:
    """Maximum throughput over a parameter of the mix, beyond the paper."""
    fixed = {name: value for name, value in base.parameters().items() if name != parameter}
    found = {system: results.where(system=system, **fixed) for system in SYSTEMS}
    return Figure(
        id=name,
        title=f"Transactions over shards: {label}",
        caption=f"Beyond {PAPER}: maximum throughput. {MODEL}",
        x=Axis(label=label, low=0.0),
        y=RATES,
        curves=tuple(
            peak_curve(SYSTEMS[system], each, parameter)
            for system, each in found.items()
            if len(each.by(parameter)) > 1
        ),
    )
