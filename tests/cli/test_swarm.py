"""`ordercast swarm` and `ordercast replay`, on good protocols and on broken ones."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.core import Message, Seen
from ordercast.protocols.atomic_multicast.receiver import Receiver
from ordercast.sim.run import Run, simulate
from tests.cli.conftest import Command
from tests.deep import deep_after
from tests.live.processes import PATIENCE_S, until


def test_a_good_protocol_has_no_failures_in_one_process_or_in_two(ordercast: Command) -> None:
    words = ("swarm", "--protocol", "unordered", "--seeds", "0:12", "--json")
    one, two = (ordercast(*words, "--jobs", jobs) for jobs in (1, 2))
    assert one.code == two.code == 0
    told = one.json()
    assert told == two.json()
    assert (told["protocol"], told["runs"], told["failures"]) == ("unordered", 12, [])
    assert 0 < told["delivered"] < told["submitted"], "some senders or receivers were down"
    assert (told["drops"], told["holes"]) == (0, 0)
    assert sum(told["endings"].values()) == 12 and 0 < told["incomplete"] < 12
    assert told["slowest_recovery_ns"] == 0, "nothing is sent again"
    assert "on 12 seeds" in ordercast(*words[:-1]).out


def test_the_numbers_of_a_swarm_are_told_in_words(ordercast: Command) -> None:
    said = ordercast("swarm", "--protocol", "hydra", "--seeds", "0:3", "--jobs", "1").out
    assert " messages delivered, " in said and " drop notifications, 0 holes" in said
    assert "endings: " in said and "slowest recovery after the last fault: " in said


def test_a_swarm_with_one_kind_of_fault_has_no_other(ordercast: Command) -> None:
    words = ("--protocol", "atomic_multicast", "--fault", "disk")
    told = ordercast("swarm", *words, "--seeds", "0:3", "--jobs", "1", "--json").json()
    assert (told["fault"], told["runs"], told["failures"]) == ("disk", 3, [])
    replayed = ordercast("replay", *words, "--seed", "1", "--no-packets").out
    kinds = set(re.findall(r"fault: (\w+)", replayed))
    assert "Disk" in kinds and kinds <= {"Disk", "Crash", "Restart", "Weather", "Heal"}
    assert set(re.findall(r"(?:loss|duplication|reordering)=[\d.]+", replayed)) == {
        "loss=0.0",
        "duplication=0.0",
        "reordering=0.0",
    }


def test_a_kind_of_fault_that_a_protocol_does_not_tolerate_is_refused(ordercast: Command) -> None:
    outcome = ordercast("swarm", "--protocol", "unreplicated", "--fault", "disk", "--seeds", "0:3")
    assert outcome.code == 2 and "unreplicated does not claim to tolerate disk" in outcome.err


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unordered multicast that does not recognise duplicates."""
    monkeypatch.setattr(Seen, "admit", lambda self, number: True)


@pytest.mark.usefixtures("broken")
def test_failures_name_seed_property_and_message_and_replay_shows_them(ordercast: Command) -> None:
    outcome = ordercast("swarm", "--protocol", "unordered", "--seeds", "0:20", "--jobs", 1, "--json")
    content = outcome.json()
    failure = content["failures"][0]
    assert outcome.code == 1 and content["runs"] == 20
    assert set(failure) == {"seed", "property", "message"}
    assert failure["property"] == "integrity"
    replayed = ordercast("replay", "--protocol", "unordered", "--seed", failure["seed"])
    assert replayed.code == 1
    assert failure["message"] in replayed.out
    as_json = ordercast("replay", "--protocol", "unordered", "--seed", failure["seed"], "--json").json()
    assert "deliver" in as_json["events"][-1], "the story ends with the event that broke the promise"
    whole = ordercast("replay", "--protocol", "unordered", "--seed", failure["seed"], "--json", "--whole")
    assert len(whole.json()["events"]) > len(as_json["events"])
    text = ordercast("swarm", "--protocol", "unordered", "--seeds", "0:20", "--jobs", 1)
    assert text.code == 1 and "ordercast replay" in text.out
    alone = ordercast(
        "swarm", "--protocol", "unordered", "--seeds", "0:20", "--jobs", 1, "--fault", "duplication"
    )
    (again,) = re.findall(r"ordercast replay (.*)", alone.out)
    assert again.endswith("--fault duplication") and ordercast("replay", *again.split()).code == 1


def test_a_protocol_that_raises_has_failed_and_the_other_seeds_go_on(
    ordercast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(self: Seen, number: int) -> bool:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(Seen, "admit", explode)
    outcome = ordercast("swarm", "--protocol", "unordered", "--seeds", "0:5", "--jobs", 1, "--json")
    failures = outcome.json()["failures"]
    assert outcome.code == 1
    assert [failure["seed"] for failure in failures] == [0, 1, 2, 3, 4]
    assert {failure["property"] for failure in failures} == {"protocol failed"}
    assert "ZeroDivisionError: on purpose" in failures[0]["message"]
    replayed = ordercast("replay", "--protocol", "unordered", "--seed", 0)
    assert (replayed.code, replayed.err) == (1, "")
    assert failures[0]["message"] in replayed.out, "the finding"
    assert "submit" in replayed.out and "receive" in replayed.out, "the events up to it"
    assert ordercast("simulate", "--protocol", "unordered").code == 1


def test_replay_of_a_seed_shows_packets_and_faults(ordercast: Command) -> None:
    outcome = ordercast("replay", "--protocol", "atomic_multicast", "--seed", 2)
    assert outcome.code == 0
    for part in ("group 0: nodes", "submit", "send", "receive", "Request", "kept every promise"):
        assert part in outcome.out
    assert re.search(r"send .* to node \d+  Request\(.*payload=<\d+#\d+>.*\)", outcome.out), "what it carries"
    quiet = ordercast("replay", "--protocol", "atomic_multicast", "--seed", 2, "--no-packets")
    assert "Request" not in quiet.out and "deliver" in quiet.out


def test_the_run_of_a_trace_is_replayed(ordercast: Command, tmp_path: Path) -> None:
    words = ("--protocol", "atomic_multicast", "--seed", 5, "--loss", 0.1, "--messages", 20, "--json")
    written = ordercast("simulate", *words, "--out", tmp_path).json()
    replayed = ordercast("replay", tmp_path, "--no-packets", "--json").json()
    assert replayed["trace_hash"] == written["trace_hash"]
    ordercast("simulate", *words, "--seed", 6, "--out", tmp_path)
    assert "name the folder of exactly one simulated run" in ordercast("replay", tmp_path).err


def members(group: int) -> dict[int, float]:
    """The processes of a group, and the seconds of CPU that each has used."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if int(fields[2]) == group:
            found[int(path.parent.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def at_work(group: int) -> list[int]:
    """The children of the leader of a group that have done more than start."""
    return [pid for pid, cpu_s in members(group).items() if pid != group and cpu_s > 1.5]


@pytest.mark.parametrize("how", deep_after(1, [signal.SIGINT, signal.SIGKILL]))
def test_a_swarm_that_is_stopped_leaves_nobody_behind(how: signal.Signals) -> None:
    # A shell that runs the tests in the background lets its children ignore interrupts.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{heed}; from ordercast.cli import main; main()"]
    words = ["swarm", "--protocol", "atomic_multicast", "--seeds", "0:100000", "--jobs", "2"]
    with subprocess.Popen(
        [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            assert until(lambda: len(at_work(process.pid)) == 2)
            process.send_signal(how)
            out, err = process.communicate(timeout=PATIENCE_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if how is signal.SIGINT:
        assert (process.returncode, out, err) == (130, b"", b"ordercast: interrupted\n")
    assert until(lambda: not members(process.pid))


def test_a_file_names_its_own_protocol(ordercast: Command, tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text('protocol = "unordered"\n')
    assert "remove --protocol" in ordercast("replay", path, "--protocol", "atomic_multicast").err
    assert "remove --fault" in ordercast("replay", path, "--fault", "loss").err


@pytest.mark.usefixtures("broken")
def test_a_failing_seed_is_shrunk_to_a_file_that_fails_in_the_same_way(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    swarm = ordercast("swarm", "--protocol", "unordered", "--seeds", "0:20", "--jobs", 1, "--json")
    seed = swarm.json()["failures"][0]["seed"]
    words = ("shrink", "--protocol", "unordered", "--seed", seed)
    shown = ordercast(*words)
    assert shown.code == 0
    for part in (
        "integrity violated",
        "events",
        "messages",
        "faults",
        "hosts",
        "ordercast replay unordered-",
    ):
        assert part in shown.out
    path = tmp_path / f"unordered-{seed}-small.toml"
    replayed = ordercast("replay", path)
    assert replayed.code == 1 and "integrity violated" in replayed.out
    assert "exists; choose another file" in ordercast(*words).err
    content = ordercast(*words, "--force", "--json").json()
    assert content["after"]["events"] < content["before"]["events"] and content["finished"]
    run = ordercast("simulate", path, "--out", tmp_path / "runs", "--json")
    assert run.code == 1
    from_folder = ordercast("shrink", tmp_path / "runs", "--out", tmp_path / "again.toml", "--json").json()
    assert from_folder["violation"]["property"] == "integrity"


@pytest.mark.usefixtures("broken")
def test_an_interrupted_search_keeps_the_smallest_scenario_so_far(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    count = iter(range(1000))

    def interrupted(scenario: object, plan: object) -> Run:
        if next(count) > 8:
            monkeypatch.undo()
            monkeypatch.setattr(Seen, "admit", lambda self, number: True)
            monkeypatch.chdir(tmp_path)
            raise KeyboardInterrupt
        return simulate(scenario, plan)  # type: ignore[arg-type]

    monkeypatch.setattr("ordercast.sim.shrinking.simulate", interrupted)
    swarm = ordercast("swarm", "--protocol", "unordered", "--seeds", "0:20", "--jobs", 1, "--json")
    seed = swarm.json()["failures"][0]["seed"]
    outcome = ordercast("shrink", "--protocol", "unordered", "--seed", seed, "--out", "small.toml")
    assert outcome.code == 130 and "the search was interrupted" in outcome.out
    assert ordercast("replay", "small.toml").code == 1


def test_what_does_not_fail_is_not_shrunk(ordercast: Command) -> None:
    outcome = ordercast("shrink", "--protocol", "unordered", "--seed", 0)
    assert outcome.code == 2 and "keeps every promise, so there is nothing to shrink" in outcome.err


def test_the_replay_of_a_missing_delivery_ends_with_the_last_event_that_was_of_use(
    ordercast: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    receive = Receiver.on_message

    def deaf(self: Receiver, source: int, message: Message) -> None:
        if self.env.me != 2:
            receive(self, source, message)

    monkeypatch.setattr(Receiver, "on_message", deaf)
    path = tmp_path / "deaf.toml"
    path.write_text('protocol = "atomic_multicast"\nsettle_ms = 200\n[workload]\nmessages = 3\n')
    short, whole = (ordercast("replay", path, "--json", *more).json() for more in ((), ("--whole",)))
    assert {found["property"] for found in short["violations"]} == {"agreement"}
    assert len(short["events"]) < len(whole["events"])
    assert "deliver" in short["events"][-1], "what only packets did after that was of no use"
    (reason,) = short["reasons"]
    assert re.fullmatch(
        r"at node 2 \(receiver\) the election of a leader waits for nodes 0, 1 to say .*; node 0 .*",
        reason,
    )
    more = len(whole["events"]) - len(short["events"])
    assert f"... and {more} more events; --whole shows them" in ordercast("replay", path).out
