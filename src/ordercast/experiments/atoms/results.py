"""What the experiments of sequencing atoms share: seeds, points with error bars, the paper's words."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ordercast.core import LocalError
from ordercast.experiments.experiment import Results, Setup
from ordercast.report.figures import Point

PAPER = "Decentralized Message Ordering (Lumezanu)"
BLOCKS, QUICK_BLOCKS = 10, 2
RUNS = 10
"""Runs of a block: a case has a block of runs, for one run is short."""
FOLDER = "transit-stub"
EMAIL = "email-enron"
BARS = "Means of {runs} runs; bars from the 10th to the 90th percentile."


def seeds(setup: Setup) -> range:
    """The seeds of the blocks of runs."""
    return range(QUICK_BLOCKS if setup.quick else BLOCKS)


def bars(x: float, values: Sequence[float]) -> Point:
    """The mean, with the 10th and the 90th percentile, as the paper draws them."""
    low, high = np.percentile(values, (10, 90))
    return Point(x, float(np.mean(values)), float(low), float(high))


def spread(values: Sequence[float]) -> str:
    """The percentiles in words."""
    low, high = np.percentile(values, (10, 90))
    return f"10th to 90th percentile of {len(values)} runs {low:.3g} to {high:.3g}, largest {max(values):.3g}"


def captioned(results: Results, words: str) -> str:
    """A caption that says over how many runs."""
    return f"{words} {BARS.format(runs=len(results.seeds) * RUNS)}"


def topology_files(data: Path | None) -> dict[str, str]:
    """The topologies below the folder of data, by name; none without a folder."""
    if data is None:
        return {}
    files = sorted((data / FOLDER).glob("*.npz"))
    if not files:
        raise LocalError(f"no {FOLDER}/*.npz in {data}; leave --data out for topologies of our own")
    return {file.stem: str(file) for file in files}


def email_folder(data: Path | None) -> str:
    """The folder with the multicasts below the folder of data; empty without one."""
    if data is None:
        return ""
    if not (data / EMAIL).is_dir():
        raise LocalError(f"no folder {EMAIL} in {data}; leave --data out to do without")
    return str(data / EMAIL)
