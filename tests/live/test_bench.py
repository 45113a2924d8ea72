"""The benchmark: a short one on real processes, and one that cannot start."""

import sys
from collections.abc import Callable

import pytest

from ordercast.core import HostId, LocalError
from ordercast.lab.bench import run as bench
from ordercast.lab.bench.run import run_bench
from ordercast.lab.bench.spec import BenchSpec
from tests.cli.conftest import Command, ordercast

__all__ = ["ordercast"]  # a fixture


def test_a_short_one_accounts_for_all_messages(ordercast: Command) -> None:
    words = ("--protocol", "hydra", "--receivers", 2, "--rate", 500, "--seconds", 0.5)
    told = ordercast("bench", *words, "--json").json()
    assert 0 <= told["lost"] < told["submitted"], "a sequencer that a busy machine holds up is suspected"
    assert told["violations"] == []
    assert set(told["cpu_us_per_message"]) >= {"sequencer", "total"}


def test_a_host_that_ends_at_its_start_ends_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Callable[[HostId, int], list[str]]:
        return lambda host, leash: [sys.executable, "-c", "import sys; sys.exit('the port is taken')"]

    monkeypatch.setattr(bench, "node_command", broken)
    with pytest.raises(LocalError, match="ended or does not answer: the port is taken"):
        run_bench(BenchSpec(protocol="hydra", receivers=1))
