"""The accounts of the comparison with other systems see what went wrong; no server is needed for that."""

from io import StringIO
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks.peers.__main__ import contenders, present, tasks_for
from benchmarks.peers.account import (
    Numbers,
    check_known,
    count_lost,
    count_repeated,
    count_violations,
    slowest_rate,
)
from benchmarks.peers.contender import Figures, Task
from benchmarks.peers.ordercast_bench import arguments_for, figures_from
from benchmarks.peers.redis_streams import RedisStreams
from benchmarks.peers.report import summary
from benchmarks.peers.roles import QUIET_NS, Recorder, Shared
from benchmarks.peers.stage import OnStage, figures_of
from benchmarks.peers.zeromq import ZeroMq

SENT = 10


def order(*numbers: int) -> Numbers:
    return np.array(numbers, np.int64)


def straight() -> Numbers:
    return np.arange(SENT, dtype=np.int64)


def test_equal_orders_are_without_fault() -> None:
    orders = [straight(), straight(), straight()]
    assert (count_lost(orders, SENT), count_violations(orders), count_repeated(orders)) == (0, 0, 0)


def test_a_swapped_message_is_a_violation_with_each_other_receiver() -> None:
    swapped = order(0, 1, 2, 4, 3, 5, 6, 7, 8, 9)
    orders = [straight(), swapped, straight()]
    assert count_violations(orders) == 2
    assert count_lost(orders, SENT) == 0


@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_lost_message_is_lost_and_not_a_violation(where: int) -> None:
    orders = [straight(), straight(), straight()]
    orders[where] = np.delete(straight(), 4)
    assert count_lost(orders, SENT) == 1
    assert count_violations(orders) == 0


def test_a_lost_last_message_is_seen() -> None:
    assert count_lost([straight(), straight()[:-1]], SENT) == 1
    assert count_lost([order()], SENT) == SENT


def test_a_swap_behind_a_loss_is_still_seen() -> None:
    assert count_violations([straight(), order(0, 2, 3, 5, 4, 6)]) == 1


def test_any_common_order_is_fine() -> None:
    shuffled = order(3, 1, 4, 0, 5, 9, 2, 6, 8, 7)
    assert count_violations([shuffled, shuffled]) == 0


def test_a_repeated_message_is_counted_once_and_not_as_an_order() -> None:
    repeated = order(0, 1, 2, 1, 3)
    assert count_repeated([repeated]) == 1
    assert count_violations([order(0, 1, 2, 3), repeated]) == 0


def test_a_message_that_nobody_sent_is_refused() -> None:
    check_known(straight(), SENT)
    with pytest.raises(ValueError, match="never sent"):
        check_known(order(0, SENT), SENT)


def test_the_slowest_receiver_counts_within_the_common_window() -> None:
    second = 1_000_000_000
    fast = np.array([[0, 5], [second, 100], [3 * second, 300], [4 * second, 900]], np.int64)
    slow = np.array([[second, 10], [2 * second, 50], [3 * second, 110]], np.int64)
    assert slowest_rate([fast, slow], second, 3 * second) == 50


def test_what_the_roles_leave_becomes_figures(tmp_path: Path) -> None:
    second = 1_000_000_000
    np.save(tmp_path / "source-times.npy", order(0, 2 * second, SENT))
    rounds = np.array([[second, 3_000], [second, 5_000], [second, 4_000], [9 * second, 1]], np.int64)
    np.save(tmp_path / "source-rounds.npy", rounds)
    np.save(tmp_path / "receiver-0-order.npy", straight())
    np.save(tmp_path / "receiver-1-order.npy", order(0, 2, 1, 3, 3, 4, 5, 6, 7, 8))
    found = figures_of(Task(64, 2.0, 2, clients=4), tmp_path)
    assert (found.ordered_per_s, found.p50_us) == (1.5, 4.0)
    assert (found.lost, found.violations) == (1, 2)  # 9 is lost; 2 before 1, and 3 twice


def test_a_receiver_that_stood_still_looks_once_more_before_it_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock_ns = 1
    monkeypatch.setattr("benchmarks.peers.roles.time.monotonic_ns", lambda: clock_ns)
    shared = Shared(get_context("spawn"), 1)
    recorder = Recorder(0, shared)
    recorder.heard([bytes(64)])
    asked = [recorder.finished]  # nobody said how many there are
    shared.sent.value = 3
    clock_ns += 2 * QUIET_NS  # the process got no processor
    asked.append(recorder.finished)
    recorder.heard([bytes(64)])
    clock_ns += 2 * QUIET_NS
    asked.append(recorder.finished)
    clock_ns += QUIET_NS + 1  # it looked, and nothing came
    asked.append(recorder.finished)
    assert asked == [False, False, False, True]


def test_a_missing_server_is_skipped_with_a_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    console = Console(file=StringIO(), width=200)
    assert present([OnStage(RedisStreams())], console) == []
    assert isinstance(console.file, StringIO)
    said = console.file.getvalue()
    assert "redis is skipped: no redis-server" in said
    assert "apt-get install redis-server" in said


def test_a_missing_client_package_is_skipped_with_a_word() -> None:
    class Absent(ZeroMq):
        packages = (("a_module_that_is_not_there", "its-name-to-install"),)

    assert "pip install its-name-to-install" in Absent().missing()


def test_every_contender_has_its_own_name() -> None:
    names = [contender.name for contender in contenders()]
    assert len(set(names)) == len(names) >= 5
    assert names[0] == "ordercast"


def test_clients_are_measured_with_the_first_size_alone() -> None:
    tasks = [(task.size, task.clients, task.tasks) for task in tasks_for([64, 1024], 1.0, 3, 64)]
    assert tasks == [(64, 0, False), (1024, 0, False), (64, 64, False), (64, 64, True), (64, 1, False)]


def test_the_measurements_with_clients_cannot_be_mixed_up() -> None:
    names = [task.name for task in tasks_for([64], 1.0, 3, 64)]
    assert names[1:] == [
        "64 B, 64 clients, batched by hand",
        "64 B, 64 clients, a task each",
        "64 B, 1 client",
    ]
    alone = [task.name for task in tasks_for([64], 1.0, 3, 1)]
    assert alone[1:] == ["64 B, 1 client", "64 B, 1 client, a task each"]


def test_everyday_calls_from_tasks_are_measured_once() -> None:
    tasks = Task(64, 1.0, 3, 64, tasks=True)
    assert [one.name for one in contenders() if not one.takes(tasks)] == ["redis-calls"]
    assert all(one.takes(Task(64, 1.0, 3, 64)) for one in contenders())


def test_the_command_of_ordercast_gets_the_same_measurement() -> None:
    pipelined = arguments_for(Task(64, 2.5, 3), compact=True)
    assert pipelined[:3] == ["bench", "--protocol", "hydra"]
    assert "--max" in pipelined and "--clients" not in pipelined
    clients = arguments_for(Task(64, 2.5, 3, 64), compact=True)
    assert clients[clients.index("--clients") + 1] == "64" and "--max" not in clients
    assert "--tasks" not in clients
    assert arguments_for(Task(64, 2.5, 3, 64, tasks=True), compact=True)[-3:] == clients[-3:]
    assert "--tasks" in arguments_for(Task(64, 2.5, 3, 64, tasks=True), compact=True)


def test_figures_of_ordercast_have_latencies_only_with_clients() -> None:
    found = {
        "ordered_per_s": 10,
        "latency_us": {"p50": 1.0, "p99": 2.0, "p999": 3.0},
        "lost": 1,
        "violations": ["one", "another"],
    }
    assert figures_from(found, Task(64, 1.0, 3, 1)) == Figures(10.0, 1, 2, 1.0, 2.0)
    assert figures_from(found, Task(64, 1.0, 3)) == Figures(10.0, 1, 2)


def test_ratios_compare_rounds_and_leave_out_those_that_failed() -> None:
    ours = [Figures(100, 0, 0), None, Figures(300, 0, 0)]
    theirs = [Figures(50, 1, 0), Figures(1, 0, 0), Figures(100, 0, 2)]
    found = summary(theirs, ours)
    assert found["rate_ordercast_to_this"] == 2.5
    assert found["ordered_per_s"] == {"median": 50, "min": 1, "max": 100}
    assert (found["lost"], found["violations"], found["failed"]) == (1, 2, 0)
    assert summary(ours, None)["failed"] == 1
