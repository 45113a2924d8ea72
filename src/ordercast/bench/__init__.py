"""How fast a protocol is on this machine: real processes, real sockets, every message accounted for."""

from ordercast.bench.run import run_bench
from ordercast.bench.spec import BenchResult, BenchSpec, Latency

__all__ = ["BenchResult", "BenchSpec", "Latency", "run_bench"]
