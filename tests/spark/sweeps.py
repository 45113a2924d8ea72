"""Small sweeps for the tests, and ways to run and to compare them."""

import dataclasses
import sys
from functools import partial
from pathlib import Path

import msgspec
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from ordercast.core.guarantees import Order
from ordercast.pipeline import sweep as job
from ordercast.pipeline.simulate import Simulate, simulate
from ordercast.pipeline.sweep_file import Sweep, load_sweep
from ordercast.scenario.spec import Scenario
from ordercast.sim.run import Run
from ordercast.sim.run import simulate as run_scenario


def small_sweep(folder: Path, *, seeds: str = "0:6", messages: int = 20) -> Sweep:
    """Unordered multicast with delays that vary, so that receivers do differ in their order."""
    text = f"""\
name = "small"
seeds = "{seeds}"
[scenario]
protocol = "unordered"
senders = 2
network.latency = {{ kind = "uniform", low_us = 50, high_us = 5000 }}
workload.messages = {messages}
"""
    path = folder / "small.toml"
    path.write_text(text)
    return load_sweep(path)


def promising_order(scenario: Scenario) -> Run:
    """A run of a protocol that promises an order which it does not keep."""
    plan = scenario.plan()
    guarantees = msgspec.structs.replace(plan.guarantees, order=Order.GROUP)
    return run_scenario(scenario, dataclasses.replace(plan, guarantees=guarantees))


def use(monkeypatch: pytest.MonkeyPatch, simulate_one: Simulate) -> None:
    """Have sweeps run their scenarios in another way."""
    # Workers need not find the tests: what is in their modules travels itself, and not by its name.
    for name in {simulate_one.__module__, __name__}:
        cloudpickle.register_pickle_by_value(sys.modules[name])  # type: ignore[no-untyped-call]
    monkeypatch.setattr(job, "simulate", partial(simulate, simulate_one=simulate_one))


def table_bytes(out: Path) -> dict[str, bytes]:
    """All tables of a folder as they are on disk."""
    tables = out / "tables"
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(tables.glob("*/*"))}


def trace_bytes(out: Path) -> dict[str, bytes]:
    """All files of all traces."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted((out / "traces").rglob("*"))
        if path.is_file()
    }


def rows(spark: SparkSession, out: Path, name: str) -> list[dict[str, object]]:
    """The rows of a table."""
    frame = getattr(job.sweep_tables(spark, out), name)
    return [row.asDict(recursive=True) for row in frame.collect()]
