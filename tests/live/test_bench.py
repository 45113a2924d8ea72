"""The benchmark: a short one on real processes, and one that cannot start."""

import sys
from collections.abc import Callable

import numpy as np
import pytest

from ordercast.core import HostId, LocalError
from ordercast.lab.bench import processes as bench
from ordercast.lab.bench.account import Account, to_all
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


def test_what_all_delivered_is_counted_once_and_when_the_last_one_had_it() -> None:
    twice = Account(np.array([3, 1, 2, 3]), np.array([10, 20, 30, 40]))
    late = Account(np.array([1, 3, 4]), np.array([25, 15, 35]))
    messages, times = to_all([twice, late])
    assert messages.tolist() == [1, 3]
    assert times.tolist() == [25, 15]
    assert to_all([twice, Account(messages[:0], times[:0])]).messages.tolist() == []
