"""A trace that cannot be written any more: its host goes on, says so, and the run is not complete."""

import logging
import os
from pathlib import Path

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, Plan, message_id
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.open_host import open_host
from ordercast.net.host.recording.recorder import TraceRecorder
from ordercast.net.host.recording.spool_file import cut_path
from ordercast.net.host.recording.spool_to_parquet import finish_run, spool_folder
from ordercast.trace import Kind, StoredRun, events_of, find_runs
from tests.live.cluster_files import write_cluster
from tests.live.live_lab import run
from tests.live.wires import until

FULL = "/dev/full"
SENDER = 1

pytestmark = pytest.mark.skipif(not Path(FULL).exists(), reason="needs a device that is always full")


@pytest.fixture
def plan() -> Plan:
    protocol = find_protocol("unordered")
    return protocol.deploy(Deployment.disjoint(1, 1, 1), protocol.options())


def begun(folder: Path) -> TraceRecorder:
    recorder = TraceRecorder(folder, "demo-1", SENDER, (SENDER,))
    recorder.begin(10, saved=False)
    return recorder


def submit(recorder: TraceRecorder, at_ns: int, number: int) -> None:
    recorder.submitted(SENDER, (0,), message_id(SENDER, number), [at_ns], [b"x"])
    recorder.flush()


def fill_disk(recorder: TraceRecorder) -> None:
    """Whatever is written from now on finds no room."""
    full = os.open(FULL, os.O_WRONLY)
    os.dup2(full, recorder._file)
    os.close(full)


def finished(folder: Path, plan: Plan) -> StoredRun:
    (found,) = find_runs(finish_run(folder, plan, "demo-1", complete=True))
    return found


def test_the_record_ends_where_the_disk_was_full_and_the_run_is_not_complete(
    plan: Plan, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder, failures = begun(tmp_path), [0]
    recorder.on_failure = lambda: failures.append(1)
    submit(recorder, 20, 0)
    fill_disk(recorder)
    for number in range(1, 5):
        submit(recorder, 20 + number, number)
    assert sum(failures) == 1
    assert [record.levelno for record in caplog.records] == [logging.CRITICAL]
    assert recorder._buffer == [], "and nothing piles up"
    recorder.close()
    found = finished(tmp_path, plan)
    assert not found.description.complete
    assert "host-0001" in caplog.text
    events = [(event.time_ns, event.kind) for event in events_of(found.table())]
    assert events == [(20, Kind.SUBMIT), (20, Kind.CRASH)]


def test_a_disk_that_is_full_at_the_very_end_is_told_of_too(plan: Plan, tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    submit(recorder, 20, 0)
    fill_disk(recorder)
    recorder.close()
    assert not finished(tmp_path, plan).description.complete


def test_a_disk_that_is_full_when_the_next_file_begins_is_told_of_too(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = begun(tmp_path)
    submit(recorder, 20, 0)
    recorder._bytes_max = 1
    with monkeypatch.context() as patched:
        patched.setattr(recorder, "_folder", tmp_path / "demo-1" / "spool" / "host-0001.lock" / "none")
        submit(recorder, 21, 1)
    assert recorder.failure is not None
    submit(recorder, 22, 2)
    recorder.close()
    found = finished(tmp_path, plan)
    assert not found.description.complete, "the mark is made at the end, where it could not be before"
    assert [event.time_ns for event in events_of(found.table()) if event.kind is Kind.SUBMIT] == [20]


def test_the_next_life_is_recorded_again_but_the_run_stays_incomplete(plan: Plan, tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    submit(recorder, 20, 0)
    fill_disk(recorder)
    submit(recorder, 21, 1)
    recorder.close()
    again = TraceRecorder(tmp_path, "demo-1", SENDER, (SENDER,))
    again.begin(30, saved=True)
    submit(again, 31, 2)
    again.close()
    found = finished(tmp_path, plan)
    assert not found.description.complete
    kinds = [event.kind for event in events_of(found.table())]
    assert kinds == [Kind.SUBMIT, Kind.CRASH, Kind.RECOVER, Kind.SUBMIT]


def test_a_run_without_failures_is_complete(plan: Plan, tmp_path: Path) -> None:
    recorder = begun(tmp_path)
    submit(recorder, 20, 0)
    recorder.close()
    assert finished(tmp_path, plan).description.complete


def test_a_host_whose_trace_fails_goes_on_and_counts_it(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        plan = cluster.plan()
        sender = plan.senders[0]
        host = plan.nodes[sender].host
        recorder = TraceRecorder(tmp_path, "demo-1", host, (sender,))
        live = open_host(cluster, host, plan=plan, recorder=recorder)
        await live.start()
        fill_disk(recorder)
        for number in range(3):
            assert live.submit(sender, (0,), [b"%d" % number]) is not None
            assert await live.drain(5.0)
        await until(lambda: live.metrics.packets_out > 0)
        assert live.running and live.failure is None
        assert live.metrics.trace_failures == 1
        await live.stop()
        assert cut_path(spool_folder(tmp_path / "demo-1"), host).exists()

    run(main(load_cluster(write_cluster(tmp_path))))
