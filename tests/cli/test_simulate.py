"""`ordercast simulate`, as a user meets it."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from ordercast.core import Seen
from tests.cli.conftest import Command

KEYS = {
    "protocol", "seed", "trace_hash", "events", "submitted", "delivered", "dropped", "violations",
    "latency_ns", "throughput_per_s",
}  # fmt: skip


@pytest.mark.parametrize("protocol", ["unordered", "atomic_multicast"])
def test_json_has_what_is_documented_and_nothing_else_is_printed(ordercast: Command, protocol: str) -> None:
    words = ("--receivers", 3, "--groups", 2, "--messages", 50, "--seed", 4, "--loss", 0.02)
    outcome = ordercast("simulate", "--protocol", protocol, *words, "--json")
    content = outcome.json()
    assert outcome.code == 0 and outcome.err == ""
    assert set(content) >= KEYS
    assert (content["protocol"], content["seed"], content["submitted"]) == (protocol, 4, 50)
    assert content["violations"] == []
    assert set(content["latency_ns"]) == {"p50", "p90", "p99", "max"}
    assert content["latency_ns"]["p50"] <= content["latency_ns"]["max"]


def test_the_same_seed_gives_the_same_hash_and_another_one_another(ordercast: Command) -> None:
    words = ("simulate", "--protocol", "atomic_multicast", "--loss", 0.1, "--json", "--seed")
    hashes = [ordercast(*words, seed).json()["trace_hash"] for seed in (3, 3, 4)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_options_override_the_file(ordercast: Command, tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text('protocol = "unordered"\nseed = 1\n[workload]\nmessages = 7\n')
    assert ordercast("simulate", path, "--json").json()["submitted"] == 7
    content = ordercast("simulate", path, "--messages", 9, "--seed", 2, "--json").json()
    assert (content["submitted"], content["seed"]) == (9, 2)


def test_options_of_the_protocol_can_be_set(ordercast: Command) -> None:
    one = ordercast("simulate", "--protocol", "hydra", "--option", "sequencers=1", "--json")
    three = ordercast("simulate", "--protocol", "hydra", "--option", "sequencers=3", "--json")
    assert (one.code, three.code) == (0, 0)
    assert one.out != three.out
    wrong = ordercast("simulate", "--protocol", "hydra", "--option", "sequencer=1")
    assert wrong.code == 2
    assert "options.sequencer" in wrong.err


def test_a_violation_is_exit_code_1_and_names_nodes_and_messages(
    ordercast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seen, "admit", lambda self, number: True)
    words = ("simulate", "--protocol", "unordered", "--duplication", 0.5)
    outcome = ordercast(*words, "--json")
    violation = outcome.json()["violations"][0]
    assert outcome.code == 1
    assert violation["property"] == "integrity"
    assert violation["nodes"] and "#" in violation["messages"][0]
    text = ordercast(*words)
    assert text.code == 1 and "integrity violated" in text.out and "a second time" in text.out


UNORDERED = 'protocol = "unordered"\n'
BAD = {
    "unknown key": (UNORDERED + "[network]\nlos = 0.1\n", "line 3: network.los: unknown key"),
    "negative loss": (UNORDERED + "\n[network]\nloss = -0.1\n", "line 4: network.loss"),
    "wrong type": (UNORDERED + 'seed = "one"\n', "line 2: seed"),
    "not TOML": (UNORDERED + "seed = = 2\n", "not TOML: ", "line 2"),
    "unknown protocol": ('protocol = "paxos"\n', "line 1: protocol: ", "paxos", "atomic_multicast"),
    "unknown option": (UNORDERED + "[options]\nwin = 3\n", "line 3: options.win: unknown key (of unordered)"),
    "unknown kind": (UNORDERED + '[[fault]]\nkind = "flood"\nat_ms = 1\n', "line 3", "flood"),
    "no such host": (UNORDERED + '[[fault]]\nkind="crash"\nat_ms=1\nhost=99\n', "line 5", "no host 99"),
    "missing matrix": (
        UNORDERED + '[network]\nlatency = { kind = "matrix", file = "no.npz" }\n',
        "line 3: network.latency",
        "no.npz: not a latency matrix",
    ),
    "bad range": (
        UNORDERED + '[network.latency]\nkind = "uniform"\nlow_us = 9\nhigh_us = 3\n',
        "line 2: network.latency",
        "delays must have 0 <= low <= high, not 9000 to 3000 ns",
    ),
    "overlap": (
        'protocol = "atomic_multicast"\nmembership = [[0, 1], [1, 2]]\n',
        "line 2: membership",
        "disjoint",
    ),
    "empty group": (
        'protocol = "unordered"\nmembership = [[0, 1], []]\n',
        "line 2: membership",
        "group 1 has no receiver; unordered needs one in every group",
    ),
    "empty groups": (
        'protocol = "epto"\nmembership = [[], []]\n',
        "line 2: membership",
        "a deployment needs at least one group with a receiver",
    ),
    "too wide a spread": (UNORDERED + "[workload]\nspread = [1, 1]\n", "line 3: workload.spread"),
    "unknown role": (
        UNORDERED + "[role_cpu.king]\nsend_ns = 1\n",
        "line 2: role_cpu.king",
        "receiver, sender",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_scenario_is_one_clear_line_and_exit_code_2(
    ordercast: Command, tmp_path: Path, name: str
) -> None:
    text, *wanted = BAD[name]
    path = tmp_path / "bad.toml"
    path.write_text(text)
    outcome = ordercast("simulate", path, "--json")
    assert outcome.code == 2 and outcome.out == ""
    assert len(outcome.err.strip().splitlines()) == 1
    for part in wanted:
        assert part in outcome.err


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("simulate",), "--protocol"),
        (("simulate", "missing.toml"), "missing.toml"),
        (("simulate", "--protocol", "unordered", "--loss", "-0.5"), "network.loss"),
        (("simulate", "--protocol", "unordered", "--receivers", "0"), "receivers"),
        (("simulate", "--protocol", "unordered", "--receivers", "many"), "--receivers"),
        (("simulate", "--protocol", "unordered", "--workload", "sometimes"), "workload.kind"),
        (("simulate", "--protocol", "unordered", "--nonsense"), "--nonsense"),
        (("simulate", "--protocol", "unordered", "--out", "/proc/nowhere"), "/proc/nowhere"),
        (("explode",), "explode"),
        (("swarm", "--protocol", "unordered", "--seeds", "a:b"), "a:b"),
        (("swarm", "--protocol", "unordered", "--seeds", "5:5"), "5:5"),
        (("swarm", "--protocol", "nothing", "--seeds", "0:5"), "nothing"),
        (("replay", "--protocol", "unordered"), "--seed"),
        (("check", "nowhere"), "nowhere"),
        (("simulate", "--protocol", "unordered", "--receivers", "99999999999"), "receivers"),
        (("simulate", "--protocol", "unordered", "--spread", "much"), "much"),
        (("swarm", "--protocol", "unordered", "--seeds", "0:99999999999999999999999"), "no seed"),
    ],
)
def test_bad_usage_is_one_clear_line_and_exit_code_2(
    ordercast: Command, words: tuple[str, ...], wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = ordercast(*words)
    assert outcome.code == 2 and outcome.out == ""
    assert len(outcome.err.strip().splitlines()) == 1
    assert wanted in outcome.err


def test_a_defect_is_one_line_with_a_code_of_its_own(
    ordercast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*words: object, **more: object) -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr("ordercast.cli.simulate.run_scenario", explode)
    outcome = ordercast("simulate", "--protocol", "unordered")
    assert outcome.code == 70
    assert len(outcome.err.strip().splitlines()) == 1 and "on purpose" in outcome.err


def test_what_was_not_judged_is_said(ordercast: Command, tmp_path: Path) -> None:
    path = tmp_path / "cut.toml"
    path.write_text(
        'protocol = "atomic_multicast"\nsettle_ms = 50\n'
        '[[fault]]\nkind = "partition"\nat_ms = 0\nsides = [[0, 1, 2], [3]]\n'
    )
    outcome = ordercast("simulate", path, "--out", tmp_path)
    assert outcome.code == 0
    assert "that could be judged" in outcome.out
    assert "not judged: agreement and validity of this run, because a partition was" in outcome.out
    assert len(ordercast("check", tmp_path, "--json").json()["incomplete"]) == 1
    assert "because the run is not complete" in ordercast("check", tmp_path).out


def test_faults_beyond_the_contract_are_named(ordercast: Command, tmp_path: Path) -> None:
    path = tmp_path / "beyond.toml"
    path.write_text(
        'protocol = "unordered"\n[[fault]]\nkind = "crash"\nat_ms = 5\nhost = 0\n'
        '[[fault]]\nkind = "restart"\nat_ms = 9\nhost = 0\n'
    )
    assert ordercast("simulate", path, "--json").json()["beyond_contract"] == ["restart"]
    assert "does not claim to tolerate restart" in ordercast("simulate", path).out


def test_a_slow_run_is_waited_for(ordercast: Command) -> None:
    words = ("--messages", 1000, "--rate", 100_000, "--receive-ns", 200_000, "--senders", 2)
    content = ordercast("simulate", "--protocol", "atomic_multicast", *words, "--json").json()
    assert (content["delivered"], content["violations"], content["ending"]) == (3000, [], "settled")
    assert content["duration_ns"] > 2_000_000_000


def test_messages_may_go_to_several_groups(ordercast: Command) -> None:
    words = ("simulate", "--protocol", "atomic_multicast", "--groups", 2, "--json")
    assert ordercast(*words, "--spread", "0,1").json()["delivered"] == 100 * 6
    assert ordercast(*words).json()["delivered"] == 100 * 3


def test_runs_of_different_scenarios_keep_to_their_folders(ordercast: Command, tmp_path: Path) -> None:
    for loss in (0.0, 0.1, 0.1):
        assert ordercast("simulate", "--protocol", "unordered", "--loss", loss, "--out", tmp_path).code == 0
    assert len(list(tmp_path.iterdir())) == 2


def test_the_installed_command_never_shows_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from ordercast.cli import main; main()", "simulate", "none.toml"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("ordercast: none.toml") and "Traceback" not in done.stderr


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_reader_that_goes_away_is_neither_good_nor_bad_news(more: list[str]) -> None:
    command = [sys.executable, "-c", "from ordercast.cli import main; main()"]
    words = ["replay", "--protocol", "atomic_multicast", "--seed", "1", *more]
    with subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert process.returncode == 141 and errors == ""


def test_the_version_is_that_of_the_package(ordercast: Command) -> None:
    assert ordercast("--version").out == f"ordercast {version('ordercast')}\n"


def test_help_teaches(ordercast: Command) -> None:
    overview = ordercast("--help")
    assert overview.code == 0
    for name in ("protocols", "simulate", "swarm", "replay", "check", "demo"):
        assert name in overview.out
        page = ordercast(name, "--help")
        assert page.code == 0 and "--help" in page.out
    assert "Example" in ordercast("simulate", "--help").out


def test_protocols_lists_guarantees(ordercast: Command) -> None:
    content = {one["name"]: one for one in ordercast("protocols", "--json").json()["protocols"]}
    assert content["unordered"]["guarantees"]["order"] == "none"
    assert content["atomic_multicast"]["guarantees"]["agreement"] == "all"
    assert "window" in content["atomic_multicast"]["options"]
    text = ordercast("protocols")
    assert text.code == 0 and "across-groups" in text.out
    assert "flush = adaptive" in " ".join(text.out.split())


def test_what_was_not_promised_may_be_missing_and_the_summary_says_so(ordercast: Command) -> None:
    lossy = ordercast("simulate", "--protocol", "hydra", "--loss", 0.1)
    assert lossy.code == 0 and "deliveries missing, which the protocol allows" in lossy.out
    assert "missing" not in ordercast("simulate", "--protocol", "hydra").out


def test_the_demonstration_ends_well_and_keeps_traces(ordercast: Command, tmp_path: Path) -> None:
    outcome = ordercast("demo", "--out", tmp_path)
    assert outcome.code == 0
    assert "the orders differ" in outcome.out
    assert outcome.out.count("the same order everywhere") == 2
    assert ordercast("check", tmp_path, "--json").json()["runs"] == 3


def test_json_of_the_whole_world_is_valid(ordercast: Command) -> None:
    outcome = ordercast("replay", "--protocol", "unordered", "--seed", 3, "--json")
    content = json.loads(outcome.out)
    assert outcome.code == 0 and content["violations"] == [] and content["events"]
