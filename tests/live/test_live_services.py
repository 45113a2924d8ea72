"""Scenarios with a service on real processes: every protocol that serves, both loops, and killed replicas."""

import json
from pathlib import Path

import pytest

from ordercast.catalogue import broken_protocols, find_protocol, protocol_names
from ordercast.cli import run
from ordercast.core import Crashes, message_sender
from ordercast.scenario.file import load_scenario
from ordercast.services.sharded import KEYS, START
from ordercast.trace import ABORTED, Kind, events_of, find_runs

SERVING = [name for name in protocol_names() if name not in broken_protocols() and find_protocol(name).serves]
CLOSED = """
[workload]
kind = "closed"
messages = {messages}
outstanding = 4
timeout_ms = 5000
"""
OPEN = """
[workload]
messages = {messages}
rate_per_s = 300
reads = 0.4
"""


def told_of(
    folder: Path, capsys: pytest.CaptureFixture[str], protocol: str, more: str, messages: int = 200
) -> dict[str, object]:
    path = folder / "scenario.toml"
    head = f'protocol = "{protocol}"\nservice = "kv"\nreceivers = 3\nsenders = 2\nlive_options = true\n'
    path.write_text(head + more.format(messages=messages))
    code = run(["live", str(path), "--out", str(folder / "traces"), "--json"])
    told: dict[str, object] = json.loads(capsys.readouterr().out)
    assert (code, told["violations"]) == (0, []), told
    return told


@pytest.mark.parametrize("protocol", SERVING)
@pytest.mark.parametrize("workload", [CLOSED, OPEN], ids=["closed", "open"])
def test_clients_call_and_all_answers_are_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], protocol: str, workload: str
) -> None:
    told = told_of(tmp_path, capsys, protocol, workload)
    operations = told["operations"]
    assert isinstance(operations, dict) and isinstance(told["outages"], dict)
    assert (operations["invoked"], operations["answered"], operations["unknown"]) == (200, 200, 0)
    assert operations["checked"] == 200
    assert 0 < told["outages"]["longest_ns"] < told["outages"]["limit_ns"]
    assert told["complete"] and told["ending"] == "settled"
    assert run(["check", str(tmp_path / "traces")]) == 0


@pytest.mark.deep
@pytest.mark.parametrize(
    "protocol", [name for name in SERVING if find_protocol(name).guarantees.crashes is not Crashes.NONE]
)
@pytest.mark.parametrize("host", [0, 2])
def test_a_killed_replica_stops_no_client_for_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], protocol: str, host: int
) -> None:
    fault = f'\n[[fault]]\nkind = "crash"\nat_ms = 300\nhost = {host}\n'
    told = told_of(tmp_path, capsys, protocol, CLOSED + fault, messages=4000)
    operations = told["operations"]
    assert isinstance(operations, dict)
    assert operations["answered"] == 4000 and operations["complaints"] == []


@pytest.mark.deep
@pytest.mark.parametrize("path", sorted(Path("examples/services").glob("*.toml")), ids=lambda path: path.stem)
def test_the_examples_of_killed_hosts_lose_no_answer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["live", str(path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["violations"], told["operations"]["complaints"]) == (0, [], [])
    wanted, operations = load_scenario(path).workload.messages, told["operations"]
    # An answer that was taken back does not count any more: the outcome is unknown.
    assert operations["answered"] + operations["undone"] == wanted
    assert operations["unknown"] == operations["undone"]
    assert bool(operations["undone"]) == (path.stem == "llft-group-cut")
    assert 0 < told["outages"]["longest_ns"] <= told["outages"]["limit_ns"]


@pytest.mark.parametrize("protocol", ["hydra_txn", "lock_store"])
def test_places_and_values_of_a_live_run_agree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], protocol: str
) -> None:
    path = tmp_path / "scenario.toml"
    shape = 'groups = 2\nreceivers = 3\nhosts = "shared"\nsenders = 2\nlive_options = true\nhistory = true\n'
    path.write_text(
        f'protocol = "{protocol}"\nservice = "list_append"\n{shape}' + CLOSED.format(messages=100)
    )
    assert run(["live", str(path), "--out", str(tmp_path / "traces"), "--json"]) == 0
    capsys.readouterr()
    assert run(["check", str(tmp_path / "traces")]) == 0
    capsys.readouterr()
    assert run(["history", str(tmp_path / "traces"), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["histories"]
    assert (told["model"], told["operations"], told["strict_serializable"]) == ("list-append", 100, True)


@pytest.mark.deep
@pytest.mark.parametrize("protocol", ["eris", "hydra_txn", "lock_store"])
def test_a_bank_keeps_its_money_whoever_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], protocol: str
) -> None:
    code = run(["live", "examples/bank.toml", "--protocol", protocol, "--out", str(tmp_path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["violations"], told["total"], told["locks_left"]) == (0, [], KEYS * START, 0), told
    assert 0 < told["outages"]["longest_ns"] <= told["outages"]["limit_ns"]
    assert told["operations"]["sums"] > 300 and told["operations"]["complaints"] == []
    assert told["operations"]["unknown"] <= 16, "8 transactions of the killed client, and their conclusions"
    killed, *others = told["silences"]
    assert len(others) == (1 if protocol == "lock_store" else 3)
    (stored,) = find_runs(tmp_path)
    aborted = [
        event
        for event in events_of(stored.table())
        if event.kind is Kind.RELEASED and event.label == ABORTED and event.message is not None
    ]
    assert any(message_sender(event.message or 0) == killed["host"] for event in aborted)
