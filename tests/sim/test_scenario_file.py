"""Scenario files: every key parses, and every complaint names the file and the line."""

import os
import subprocess
import sys
import typing
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ordercast.core import LocalError
from ordercast.scenario import faults
from ordercast.scenario.conditions import Conditions
from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import LatencySpec, PhaseSpec, Scenario
from ordercast.sim.build import build_world
from ordercast.sim.run import simulate
from ordercast.toml_file import naming_lines_of

EVERYTHING = """
protocol = "epto"
name = "everything"
seed = 7
groups = 2
receivers = 4
membership = [[0, 1], [1, 2]]
senders = 2
colocated = true
joiners = 1
settle_ms = 100.0
bundle_bytes = 1400
packets = true
liveness = true
codec = true
live_options = true

[options]
window = 64

[network]
loss = 0.01
duplication = 0.02
reordering = 0.03
reorder_us = 200.0

[network.latency]
kind = "links"
topology = "fat-tree"
pods = 2
racks_a_pod = 3
aggregations_a_pod = 1
cores = 2
servers_a_rack = 4
role_gbps = { peer = 5.0 }

[network.background]
load = 0.05
bytes = 1000
locality = 0.5
start_ms = 1.0
stop_ms = 20.0
burst = { host = 1, gbps = 8.0, on_us = 100.0, off_us = 200.0 }

[cpu]
receive_ns = 100
send_ns = 50
save_ns = 10
execute_ns = 5
copies = true
queue_max = 1000

[role_cpu.peer]
send_ns = 7

[clocks]
skew_us = 10.0
drift_ppm = 5.0

[workload]
kind = "periodic"
messages = 20
rate_per_s = 500.0
jitter = 0.1
file = "arrivals.csv"
bytes = 32
spread = [0.5, 0.5]
outstanding = 2
timeout_ms = 50.0
reads = 0.25

[[workload.phase]]
at_ms = 1
rate_per_s = 0
senders = [1]

[[join]]
at_ms = 1.0
node = 3
group = 1

[[leave]]
at_ms = 2.0
node = 3
group = 1

[[fault]]
kind = "crash"
at_ms = 1
host = 0

[[fault]]
kind = "restart"
at_ms = 2
host = 0
state = "lost"

[[fault]]
kind = "pause"
at_ms = 3
host = 1
for_ms = 1

[[fault]]
kind = "partition"
at_ms = 4
sides = [[0], [1, 2]]
one_way = true

[[fault]]
kind = "delay"
at_ms = 4.5
sides = [[1], [2]]
by_us = 100

[[fault]]
kind = "heal"
at_ms = 5

[[fault]]
kind = "weather"
at_ms = 6

[fault.conditions]
loss = 0.5

[[fault]]
kind = "clock"
at_ms = 7
host = 2
step_us = -5.0

[[fault]]
kind = "disk"
at_ms = 8
host = 1
what = "full"
for_ms = 3
"""
LATENCIES = {
    "constant": 'latency = { kind = "constant", us = 5 }',
    "uniform": 'latency = { kind = "uniform", low_us = 1, high_us = 2 }',
    "chi-square": 'latency = { kind = "chi-square", mean_us = 100, std_us = 10, degrees = 3 }',
    "sites": """
[network.latency]
kind = "sites"
sites = [[0, 1], [2]]
near = { kind = "constant", us = 1 }
far = { kind = "constant", us = 9 }
""",
    "matrix": 'latency = { kind = "matrix", file = "data.npz", tick_us = 10, key = "ticks" }',
    "graph": 'latency = { kind = "graph", file = "data.npz", unit_us = 10 }',
    "links": """
[network.latency]
kind = "links"
topology = "leaf-spine"
host_gbps = 1
fabric_gbps = 4
propagation_us = 1
queue_kib = 64
hosts_a_leaf = 2
spines = 3
""",
}


def write(folder: Path, text: str) -> Path:
    path = folder / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(folder: Path, text: str) -> str:
    path = write(folder, text)
    with pytest.raises(LocalError) as caught:
        load_scenario(path)
    said = str(caught.value)
    assert said.startswith(str(path))
    assert "\n" not in said
    return said.removeprefix(str(path))


OTHERWISE = {"submission", "service", "history", "hosts"}
"""Keys of listed workloads, of protocols that replicate services, and of groups that do not overlap."""


def test_groups_may_share_hosts(tmp_path: Path) -> None:
    text = 'protocol = "unordered"\ngroups = 2\nreceivers = 3\nhosts = "shared"\n'
    plan = load_scenario(write(tmp_path, text)).plan()
    hosts = [plan.nodes[node].host for node in range(6)]
    assert hosts[:3] == hosts[3:] and len(set(hosts)) == 3


def test_the_keys_of_a_service_are_read_and_run(tmp_path: Path) -> None:
    text = 'protocol = "unreplicated"\nservice = "counter"\nclients = 2\nhistory = true\n'
    text += "[workload]\nreads = 0.25\n"
    found = load_scenario(write(tmp_path, text))
    assert (found.service, found.senders, found.history) == ("counter", 2, True)
    assert found.workload.reads == 0.25
    assert simulate(found).summary().answered == 100


def test_every_key_is_read(tmp_path: Path) -> None:
    found = load_scenario(write(tmp_path, EVERYTHING))
    keys = set(msgspec.to_builtins(found))
    assert keys == set(Scenario.__struct_fields__)
    for part in (found.network, found.cpu, found.clocks, found.workload, found):
        default = Scenario(protocol="") if part is found else type(part)()  # type: ignore[call-arg]
        for name in part.__struct_fields__:
            if name not in OTHERWISE:
                assert getattr(part, name) != getattr(default, name), f"{name} is not in the file"
    assert found.membership == ((0, 1), (1, 2))
    assert found.workload.phase == (PhaseSpec(at_ms=1, rate_per_s=0, senders=(1,)),)
    assert found.fault[6] == faults.Weather(at_ms=6, conditions=Conditions(loss=0.5))


def test_every_kind_of_fault_is_in_the_file(tmp_path: Path) -> None:
    found = load_scenario(write(tmp_path, EVERYTHING))
    assert {type(fault) for fault in found.fault} == set(typing.get_args(faults.FaultSpec))


def test_a_scenario_with_every_key_runs(tmp_path: Path) -> None:
    run = simulate(load_scenario(write(tmp_path, EVERYTHING)))
    assert run.summary().submitted > 0


def test_every_kind_of_latency_is_tried() -> None:
    tags = {kind.__struct_config__.tag for kind in typing.get_args(LatencySpec)}
    assert tags == set(LATENCIES)


@pytest.mark.parametrize("kind", sorted(LATENCIES))
def test_every_kind_of_latency_is_read_and_runs(tmp_path: Path, kind: str) -> None:
    ticks, edges = np.ones((4, 4)), np.array([[0, 1, 5.0], [1, 2, 5.0]])
    np.savez(tmp_path / "data.npz", ticks=ticks, edges=edges)
    found = load_scenario(write(tmp_path, f'protocol = "unordered"\n[network]\n{LATENCIES[kind]}'))
    assert found.network.latency.__struct_config__.tag == kind
    summary = simulate(found).summary()
    assert summary.delivered == 3 * summary.submitted == 300


def test_files_are_relative_to_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "arrivals.csv").write_text("0.001\n")
    text = 'protocol = "unordered"\nworkload = { kind = "recorded", file = "arrivals.csv" }'
    found = load_scenario(write(tmp_path, text))
    assert found.workload.file == str(tmp_path / "arrivals.csv")
    assert simulate(found).summary().submitted == 1
    absolute = text.replace('"arrivals.csv"', f'"{tmp_path / "arrivals.csv"}"')
    assert load_scenario(write(tmp_path, absolute)).workload.file == str(tmp_path / "arrivals.csv")


def test_no_file_is_not_the_folder(tmp_path: Path) -> None:
    said = complaint(tmp_path, 'protocol = "unordered"\n\n[workload]\nkind = "recorded"\nfile = ""')
    assert said == ", line 3: workload: a recorded workload needs `file`: a file of arrival times"


COMPLAINTS = {
    "unknown key": ('protocol = "x"\nsedes = 3', 2, "sedes: unknown key"),
    "unknown key in a table": ('protocol = "x"\n[cpu]\nsend_ns = 1\nspeed = 3', 4, "cpu.speed: unknown key"),
    "wrong type": ('protocol = "x"\n\nseed = "seven"', 3, "seed: expected `int`, got `str`"),
    "negative loss": (
        'protocol = "x"\n[network]\n# some\nloss = -0.1',
        4,
        "network.loss: expected `float` >= 0.0",
    ),
    "loss over one": ('protocol = "x"\n[network]\nloss = 1.5', 3, "network.loss: expected `float` <= 1.0"),
    "missing field in the second fault": (
        'protocol = "x"\n[[fault]]\nkind = "heal"\nat_ms = 1\n\n[[fault]]\nkind = "crash"\nat_ms = 1',
        6,
        "fault[1]: object missing required field `host`",
    ),
    "wrong field in the second fault": (
        'protocol = "x"\n[[fault]]\nkind = "heal"\nat_ms = 1\n[[fault]]\nkind = "heal"\nat_ms = -1',
        7,
        "fault[1].at_ms: expected `float` >= 0.0",
    ),
    "unknown kind of fault": (
        'protocol = "x"\n[[fault]]\nat_ms = 1\nkind = "earthquake"',
        4,
        "fault[0].kind: invalid value 'earthquake';"
        " there are: crash, restart, pause, partition, delay, heal, weather, clock, disk",
    ),
    "table below the second fault": (
        'protocol = "x"\n[[fault]]\nkind = "heal"\nat_ms = 1\n[[fault]]\nkind = "weather"\nat_ms = 2\n'
        "[fault.conditions]\nloss = 7",
        9,
        "fault[1].conditions.loss: expected `float` <= 1.0",
    ),
    "inline table": (
        'protocol = "x"\n[network]\nlatency = { kind = "constant", us = -1 }',
        3,
        "network.latency.us: expected `float` >= 0.0",
    ),
    "unknown key in an inline table": (
        'protocol = "x"\n[network]\nlatency = { kind = "constant", ms = 1 }',
        3,
        "network.latency.ms: unknown key",
    ),
    "inline faults": (
        'protocol = "x"\nfault = [\n  { kind = "heal", at_ms = 1 },\n  { kind = "heal" },\n]',
        2,
        "fault[1]: object missing required field `at_ms`",
    ),
    "dotted key": ('protocol = "x"\nnetwork.loss = 2.0', 2, "network.loss: expected `float` <= 1.0"),
    "quoted key": ('"protocol" = "x"\n"seed" = 1.5', 2, "seed: expected `int`, got `float`"),
    "table of a table": (
        'protocol = "x"\n[network]\nloss = 0\n[network.latency]\nkind = "constant"\nus = "fast"',
        6,
        "network.latency.us: expected `float`, got `str`",
    ),
    "element of a list": (
        'protocol = "x"\nmembership = [[0, 1], [1, "two"]]',
        2,
        "membership[1][1]: expected `int`, got `str`",
    ),
    "overlapping sides": (
        'protocol = "x"\n\n[[fault]]\nkind = "partition"\nat_ms = 1\nsides = [[0], [0]]',
        3,
        "fault[0]: a partition must have at least two sides, and no host may be on two of them",
    ),
    "infinity": ('protocol = "x"\nsettle_ms = inf', 2, "settle_ms: expected `float` <= 1000000000.0"),
    "infinite time of a fault": (
        'protocol = "x"\n[[fault]]\nkind = "heal"\nat_ms = inf',
        4,
        "fault[0].at_ms: expected `float` <= 1000000000.0",
    ),
    "not a number": ('protocol = "x"\n[clocks]\nskew_us = nan', 3, "clocks.skew_us: expected `float` >= 0.0"),
    "negative cost": ('protocol = "x"\n[cpu]\nsend_ns = -1', 3, "cpu.send_ns: expected `int` >= 0"),
    "zero receivers": ('protocol = "x"\nreceivers = 0', 2, "receivers: expected `int` >= 1"),
    "too many bytes": (
        'protocol = "x"\n[workload]\nbytes = 9999999',
        3,
        "workload.bytes: expected `int` <= 1000000",
    ),
    "clients without a service": (
        'protocol = "x"\nclients = 2',
        2,
        "clients: is only allowed with `service`; without one there are `senders`",
    ),
    "clients and senders": (
        'protocol = "x"\nservice = "kv"\nsenders = 1\nclients = 2',
        4,
        "clients: senders and clients are the same nodes: give one of both",
    ),
    "no clients": ('protocol = "x"\nservice = "kv"\nclients = 0', 3, "clients: expected `int` >= 1"),
    "table in place of a number": ('protocol = "x"\n[seed]\nx = 1', 2, "seed: expected `int`, got `object`"),
}


@pytest.mark.parametrize("case", sorted(COMPLAINTS))
def test_a_complaint_names_file_line_and_key(tmp_path: Path, case: str) -> None:
    text, line, said = COMPLAINTS[case]
    assert complaint(tmp_path, text) == f", line {line}: {said}"


@pytest.mark.parametrize(
    ("service", "said"),
    [("nobody", "no service 'nobody'; name a class"), ("kv:Nobody", "service kv:Nobody: there is no module")],
)
def test_a_service_that_there_is_not_is_told_with_its_line(tmp_path: Path, service: str, said: str) -> None:
    path = write(tmp_path, f'protocol = "hydra_paxos"\nservice = "{service}"\n')
    with pytest.raises(LocalError, match="line 2: service: ") as raised, naming_lines_of(path):
        load_scenario(path).plan()
    assert f"line 2: service: {said}" in str(raised.value)


def test_a_missing_key_of_the_file_itself_has_no_line(tmp_path: Path) -> None:
    assert complaint(tmp_path, "seed = 1") == ": object missing required field `protocol`"


def test_what_is_not_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    said = complaint(tmp_path, 'protocol = "x"\nseed = = 3')
    assert said.startswith(": not TOML:")
    assert "line 2" in said


def test_what_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LocalError, match="cannot be read"):
        load_scenario(path)


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.toml", tmp_path):
        with pytest.raises(LocalError, match=f"{path}: cannot be read: "):
            load_scenario(path)


def test_umlauts_are_read_whatever_the_locale(tmp_path: Path) -> None:
    path = write(tmp_path, 'protocol = "x"\nname = "Prüfung"')
    script = (
        "import sys; from pathlib import Path; from ordercast.scenario.file import load_scenario;"
        "print(ascii(load_scenario(Path(sys.argv[1])).name))"
    )
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        env={**os.environ, **plain},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ascii("Prüfung")


def test_a_link_of_almost_no_bandwidth_is_slow_and_no_division_by_zero(tmp_path: Path) -> None:
    text = 'protocol = "unordered"\nsettle_ms = 1\n[network.latency]\nkind = "links"\nhost_gbps = 1e-12'
    assert simulate(load_scenario(write(tmp_path, text))).summary().delivered == 0


def test_an_unknown_protocol_lists_those_there_are() -> None:
    with pytest.raises(LocalError, match=r"no protocol 'hydrant'; there are: .*unordered"):
        Scenario(protocol="hydrant").plan()


@pytest.mark.parametrize(
    ("options", "said"), [({"widow": 3}, "widow"), ({"window": "wide"}, "window"), ({"window": 0}, "window")]
)
def test_wrong_options_of_a_protocol_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(LocalError, match=said):
        Scenario(protocol="unordered", options=options).plan()


@pytest.mark.parametrize(
    "fault",
    [faults.Crash(at_ms=3, host=9), faults.Partition(at_ms=3, sides=((0,), (9,)))],
)
def test_a_fault_at_a_host_that_is_not_there_is_refused(fault: faults.FaultSpec) -> None:
    wanted = Scenario(protocol="unordered", fault=(fault,))
    with pytest.raises(LocalError, match=r"there is no host 9"):
        build_world(wanted, wanted.plan())
