"""Benchmarks of a protocol on this machine: real processes and sockets, every message accounted for."""

from ordercast.lab.bench.run import run_bench
from ordercast.lab.bench.spec import BenchResult, BenchSpec, Latency

__all__ = ["BenchResult", "BenchSpec", "Latency", "run_bench"]
