"""The experiments of the papers: a package for each paper.

Each module that offers `EXPERIMENTS` is found by itself.
"""

import importlib
import pkgutil
from collections.abc import Iterable

from ordercast.core import LocalError
from ordercast.experiments.experiment import Case, Evaluation, Experiment, Measurement, Results, Setup

__all__ = [
    "Case",
    "Evaluation",
    "Experiment",
    "Measurement",
    "Results",
    "Setup",
    "all_experiments",
    "measuring",
]


def all_experiments() -> list[Experiment]:
    """All experiments, in order of the names of their modules; two may not measure the same claim."""
    found: list[Experiment] = []
    for name in sorted(module.name for module in pkgutil.walk_packages(__path__, f"{__name__}.")):
        found += getattr(importlib.import_module(name), "EXPERIMENTS", ())
    owners: dict[str, str] = {}
    for experiment in found:
        for claim in experiment.claims:
            if claim in owners:
                raise LocalError(f"'{owners[claim]}' and '{experiment.name}' both measure '{claim}'")
            owners[claim] = experiment.name
    return found


def measuring(claims: Iterable[str]) -> list[Experiment]:
    """The experiments that measure at least one of these claims."""
    wanted = set(claims)
    return [experiment for experiment in all_experiments() if wanted.intersection(experiment.claims)]
