"""From spool files to a whole trace: nothing lost or doubled, whoever was killed when, and judged right."""

from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Delivered, Deployment, LocalError, NodeId, Plan, RemoteError, message_id
from ordercast.core.bundle import Bundle
from ordercast.judge import audit, verdict
from ordercast.net.host.recording import spool_to_parquet
from ordercast.net.host.recording.recorder import TraceRecorder
from ordercast.net.host.recording.spool_to_parquet import finish_run, spool_folder
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import simulate
from ordercast.trace import Event, Kind, StoredRun, events_of, find_runs
from tests.deep import deep_after
from tests.live.processes import until
from tests.live.recording import kill, lived, record

SEEDS = 8
SENDER = 3


@pytest.fixture
def plan() -> Plan:
    protocol = find_protocol("unordered")
    return protocol.deploy(Deployment.disjoint(1, 3, 1), protocol.options())


def begun(
    folder: Path, host: int, at_ns: int, *, saved: bool = False, bytes_max: int = 1 << 20
) -> TraceRecorder:
    recorder = TraceRecorder(folder, "demo-1", host, (host,), bytes_max=bytes_max)
    recorder.begin(at_ns, saved=saved)
    return recorder


def submit(recorder: TraceRecorder, at_ns: int, number: int) -> None:
    recorder.submitted(SENDER, (0,), message_id(SENDER, number), [at_ns], [b"x"])
    recorder.flush()


def deliver(recorder: TraceRecorder, at_ns: int, node: NodeId, number: int, submitted_ns: int) -> None:
    bundle = Bundle(message_id(SENDER, number), (submitted_ns,), [b"x"])
    recorder.delivered(at_ns, node, Delivered(b"", (0,), SENDER), bundle)
    recorder.flush()


def by_node(events: list[Event]) -> dict[NodeId, list[Event]]:
    found: dict[NodeId, list[Event]] = defaultdict(list)
    for event in events:
        found[event.node].append(event)
    return found


def stored(folder: Path) -> StoredRun:
    (run,) = find_runs(folder)
    return run


def events_at(folder: Path) -> list[Event]:
    return list(events_of(stored(folder).table()))


@pytest.mark.parametrize("protocol", ["hydra", "atomic_multicast", "unordered"])
@pytest.mark.parametrize("seed", deep_after(3, range(SEEDS)))
def test_a_run_is_the_same_and_judged_the_same_written_down_by_live_hosts(
    protocol: str, seed: int, tmp_path: Path
) -> None:
    """Crashes, restarts, drops, views, bundles and clocks that differ: whatever the swarm has."""
    scenario = swarm_scenario(protocol, seed)
    plan = scenario.plan()
    run = simulate(scenario, plan)
    found = stored(record(run, plan, tmp_path))
    table = found.table()
    events = list(events_of(table))
    assert by_node(events) == by_node(lived(run))
    assert found.description.source == "live"
    assert verdict(found.description, events).violations == []
    assert audit(found.description, table).violations == []
    assert not spool_folder(found.folder).exists()


def test_steps_and_positions_go_on_over_segments_and_lives(plan: Plan, tmp_path: Path) -> None:
    for life in range(3):
        recorder = begun(tmp_path, 0, 100 * life, saved=life > 0, bytes_max=300)
        for number in range(7):
            deliver(recorder, 100 * life + number, 0, 7 * life + number, 0)
        kill(recorder)
    folder = finish_run(tmp_path, plan, "demo-1", complete=False)
    run = stored(folder)
    assert len(run.segments()) > 3
    table = run.table()
    assert table["step"].to_pylist() == list(range(21 + 5))
    assert [place for place in table["position"].to_pylist() if place is not None] == list(range(21))
    assert [event.kind for event in events_of(table)][7:9] == [Kind.CRASH, Kind.RECOVER]


def test_a_killed_life_leaves_a_crash_at_its_last_event_and_the_next_says_what_it_had(
    plan: Plan, tmp_path: Path
) -> None:
    first = begun(tmp_path, 0, 100)
    deliver(first, 120, 0, 0, 10)
    kill(first)
    second = begun(tmp_path, 0, 500, saved=True)
    kill(second)
    third = begun(tmp_path, 0, 900, saved=False)
    deliver(third, 950, 0, 1, 11)
    third.close()
    events = events_at(finish_run(tmp_path, plan, "demo-1", complete=False))
    assert [(event.time_ns, event.kind, event.label) for event in events] == [
        (120, Kind.DELIVER, None),
        (120, Kind.CRASH, None),
        (500, Kind.RECOVER, "saved"),
        (500, Kind.CRASH, None),
        (900, Kind.RECOVER, "lost"),
        (950, Kind.DELIVER, None),
    ]


def test_a_host_that_was_killed_and_stayed_away_is_down_at_the_end(plan: Plan, tmp_path: Path) -> None:
    sender, dead, alive = begun(tmp_path, SENDER, 1), begun(tmp_path, 0, 1), begun(tmp_path, 1, 1)
    submit(sender, 10, 0)
    deliver(dead, 20, 0, 0, 10)
    deliver(alive, 21, 1, 0, 10)
    kill(dead)
    alive.close()
    sender.close()
    folder = finish_run(tmp_path, plan, "demo-1", complete=True)
    assert [(e.node, e.time_ns) for e in events_at(folder) if e.kind is Kind.CRASH] == [(0, 20)]
    assert stored(folder).description.complete


def test_what_a_killed_life_left_is_turned_by_the_next(plan: Plan, tmp_path: Path) -> None:
    first = begun(tmp_path, 0, 1)
    deliver(first, 20, 0, 0, 10)
    kill(first)
    second = begun(tmp_path, 0, 100, saved=True)
    segment = tmp_path / "demo-1" / spool_to_parquet.segment_name(0, 0)
    assert until(segment.exists)
    assert second.error == ""
    second.close()
    assert len(events_at(finish_run(tmp_path, plan, "demo-1", complete=False))) == 3


@pytest.mark.parametrize("step", ["segment", "state"])
def test_turning_that_was_cut_off_is_done_again(
    plan: Plan, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = begun(tmp_path, 0, 1)
    for number in range(5):
        deliver(recorder, 20 + number, 0, number, 10)
    recorder.close()

    class CutOff(BaseException):
        pass

    def cut_off(path: Path, *args: object) -> None:
        raise CutOff

    target = {"segment": (spool_to_parquet, "_replace"), "state": (Path, "unlink")}[step]
    with monkeypatch.context() as patched:
        patched.setattr(*target, cut_off)
        with pytest.raises(CutOff):
            finish_run(tmp_path, plan, "demo-1", complete=False)
    with pytest.raises(RemoteError, match="cut off"):
        list(find_runs(tmp_path))
    folder = finish_run(tmp_path, plan, "demo-1", complete=False)
    table = stored(folder).table()
    assert table["step"].to_pylist() == list(range(5))
    assert finish_run(tmp_path, plan, "demo-1", complete=True) == folder
    assert not stored(folder).description.complete


def test_a_run_is_not_finished_while_a_host_runs(plan: Plan, tmp_path: Path) -> None:
    recorder = begun(tmp_path, 0, 1)
    with pytest.raises(LocalError, match="host 0 is still running"):
        finish_run(tmp_path, plan, "demo-1", complete=False)
    with pytest.raises(LocalError, match="host 0 is still running"):
        TraceRecorder(tmp_path, "demo-1", 0, (0,))
    recorder.close()
    finish_run(tmp_path, plan, "demo-1", complete=False)


def test_damage_in_the_middle_of_a_life_is_named(plan: Plan, tmp_path: Path) -> None:
    recorder = begun(tmp_path, 0, 1, bytes_max=300)
    kill(recorder)
    recorder = begun(tmp_path, 0, 2, bytes_max=300)
    recorder._turner.stop()  # so that the files are still there to be damaged
    for number in range(8):
        deliver(recorder, 20 + number, 0, number, 10)
    recorder.close()
    spools = spool_to_parquet.spools_of(spool_folder(tmp_path / "demo-1"), 0)
    content = bytearray(spools[-2].read_bytes())
    content[-9] ^= 1
    spools[-2].write_bytes(content)
    with pytest.raises(RemoteError, match=rf"{spools[-2].name}: damaged at byte \d+ of {len(content)}"):
        finish_run(tmp_path, plan, "demo-1", complete=False)


def test_a_host_that_left_in_good_order_before_the_end_counts_as_crashed(plan: Plan, tmp_path: Path) -> None:
    sender, left, stayed = (begun(tmp_path, host, 10) for host in (SENDER, 0, 1))
    submit(sender, 20, 0)
    deliver(left, 30, 0, 0, 20)
    deliver(stayed, 40, 1, 0, 20)
    for recorder in (sender, left, stayed):
        recorder.close()
    run = stored(finish_run(tmp_path, plan, "demo-1", complete=False, settled=True, gone={0}))
    assert (run.description.complete, run.description.settled) == (False, True)
    crashes = [(event.node, event.time_ns) for event in events_of(run.table()) if event.kind is Kind.CRASH]
    assert crashes == [(0, 30)], "at the time of its last event; the others were there"


def test_a_run_in_which_nothing_happened_can_be_read(plan: Plan, tmp_path: Path) -> None:
    begun(tmp_path, 0, 1).close()
    folder = finish_run(tmp_path, plan, "demo-1", complete=True, scenario={"seed": 3})
    found = stored(folder)
    assert events_at(folder) == []
    assert found.description.scenario == {"seed": 3}
    assert verdict(found.description, []).violations == []
    assert audit(found.description, found.table()).violations == []


def test_clocks_that_differ_by_an_hour_do_not_accuse_anybody(plan: Plan, tmp_path: Path) -> None:
    """The receivers' clocks are an hour behind: all deliveries stand before their submissions."""
    hour = 3600 * 10**9
    sender, ahead, behind = (
        begun(tmp_path, SENDER, 2 * hour),
        begun(tmp_path, 1, 3 * hour),
        begun(tmp_path, 0, hour),
    )
    for number in range(50):
        submit(sender, 2 * hour + 1000 * number, number)
        deliver(ahead, 3 * hour + 1000 * number + 500, 1, number, 2 * hour + 1000 * number)
        deliver(behind, hour + 1000 * number + 500, 0, number, 2 * hour + 1000 * number)
    for recorder in (sender, ahead, behind):
        recorder.close()
    found = stored(finish_run(tmp_path, plan, "demo-1", complete=True))
    table = found.table()
    assert verdict(found.description, events_of(table)).violations == []
    assert audit(found.description, table).violations == []
    simulated = msgspec.structs.replace(found.description, source="simulator")
    assert {one.property for one in verdict(simulated, events_of(table)).violations} == {"integrity"}
    assert {one.property for one in audit(simulated, table).violations} == {"integrity"}
