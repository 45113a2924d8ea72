"""Sweep files: which rows they stand for, and complaints that name the line."""

import json
from pathlib import Path

import msgspec
import pytest

from ordercast.catalogue import protocol_names
from ordercast.core import LocalError
from ordercast.pipeline import sweep_file
from ordercast.pipeline.sweep_file import Sweep, load_sweep
from ordercast.scenario.spec import Scenario
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import simulate

EXAMPLES = Path(__file__).parents[2] / "examples"

SMALL = """\
seeds = "3:5"

[scenario]
protocol = "unordered"
workload.messages = 10

[grid]
"network.loss" = [0, 0.5]
receivers = [1, 2]
"""


def load(folder: Path, text: str) -> Sweep:
    path = folder / "some.toml"
    path.write_text(text)
    return load_sweep(path)


def scenarios(sweep: Sweep) -> list[Scenario]:
    return [msgspec.json.decode(row.scenario, type=Scenario) for row in sweep.rows]


def test_the_grid_and_the_seeds_give_every_combination_in_order(tmp_path: Path) -> None:
    sweep = load(tmp_path, SMALL)
    shapes = [(one.network.loss, one.receivers, one.seed) for one in scenarios(sweep)]
    assert shapes == [(loss, count, seed) for loss in (0, 0.5) for count in (1, 2) for seed in (3, 4)]
    assert [row.place for row in sweep.rows] == list(range(8))
    assert {one.workload.messages for one in scenarios(sweep)} == {10}
    assert json.loads(sweep.rows[2].parameters) == {"network.loss": 0, "receivers": 2}
    assert (sweep.name, sweep.rows[2].protocol, sweep.rows[2].seed) == ("some", "unordered", 3)


def test_a_row_has_the_name_that_its_run_will_have(tmp_path: Path) -> None:
    sweep = load(tmp_path, SMALL)
    runs = [simulate(scenario).description.run for scenario in scenarios(sweep)[:3]]
    assert [row.run for row in sweep.rows[:3]] == runs


def test_a_star_is_every_protocol(tmp_path: Path) -> None:
    sweep = load(tmp_path, 'seeds = 1\n[grid]\nprotocol = "*"\n')
    assert [row.protocol for row in sweep.rows] == protocol_names()
    assert {row.parameters for row in sweep.rows} == {"{}"}, "the protocol has a column of its own"


def test_keys_need_no_quotes(tmp_path: Path) -> None:
    sweep = load(tmp_path, SMALL.replace('"network.loss"', "network.loss"))
    assert sweep.rows == load(tmp_path, SMALL).rows


def test_cases_change_single_keys_but_latencies_as_a_whole(tmp_path: Path) -> None:
    text = """
seeds = [7]
[scenario]
protocol = "unordered"
network = { loss = 0.1, latency = { kind = "uniform", low_us = 1, high_us = 2 } }

[[case]]
name = "near"

[[case]]
network.latency = { kind = "constant", us = 9 }
workload.messages = 5

[[case]]
name = "crash"
fault = [{ kind = "crash", at_ms = 1, host = 0 }]
"""
    near, far, crash = scenarios(load(tmp_path, text))
    assert msgspec.to_builtins(near.network.latency)["high_us"] == 2
    assert msgspec.to_builtins(far.network.latency) == {"kind": "constant", "us": 9}
    assert (far.network.loss, far.workload.messages) == (0.1, 5)
    assert len(crash.fault) == 1
    cases = [json.loads(row.parameters)["case"] for row in load(tmp_path, text).rows]
    assert cases == ["near", "case 2", "crash"]


def test_a_swarm_takes_the_scenario_of_each_seed(tmp_path: Path) -> None:
    sweep = load(tmp_path, 'seeds = "0:4"\nswarm = true\n[grid]\nprotocol = "*"\n')
    wanted = [swarm_scenario(protocol, seed) for protocol in protocol_names() for seed in range(4)]
    assert scenarios(sweep) == wanted
    assert [row.place for row in sweep.rows] == list(range(len(wanted)))


def test_files_are_relative_to_the_sweep_wherever_it_is_read_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "arrivals.csv").write_text("0.1\n0.2\n")
    text = ONE + "workload = { kind = 'recorded', file = 'arrivals.csv' }"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some.toml").write_text(text)
    sweep = load_sweep(Path("some.toml"))
    assert sweep.files == [tmp_path / "arrivals.csv"]
    assert scenarios(sweep)[0].workload.file == str(tmp_path / "arrivals.csv")
    monkeypatch.chdir("/")
    assert load_sweep(tmp_path / "some.toml").rows == sweep.rows


ONE = "seeds = 1\n[scenario]\nprotocol = 'unordered'\n"
GRID = "seeds = 1\n[grid]\nprotocol = '*'\n"
SWARM = "seeds = 1\nswarm = true\n"
HEAL, CRASH = ("kind = 'heal'\nat_ms = 1\n", "kind = 'crash'\nat_ms = 1\nhost = 99\n")

BAD = [
    ("", "the seeds are missing"),
    ("seeds = ", "not TOML"),
    ("seeds = 'few'", "line 1: seeds: seeds must be A:B or one number, not 'few'"),
    ("seeds = '5:5'", "line 1: seeds: there is no seed in 5:5"),
    ("seeds = [1, 1]", "line 1: seeds: the same seed is listed twice"),
    ("seeds = []", "line 1: seeds: give at least one seed"),
    ("seeds = -1", "line 1: seeds: give at least one seed"),
    ("seeds = 1.5", "line 1: seeds: expected `int | str | array | null`, got `float`"),
    ("seeds = '0:99999999'\n[grid]\nprotocol = ['unordered']", "line 1: seeds: 99999999 runs are too many"),
    ("seeds = 1", "the protocol is missing"),
    ("seeds = 1\ncolour = 2", "line 2: colour: unknown key; a sweep has name, seeds"),
    ("seeds = 1\n[scenario]\nseed = 1", "line 3: scenario.seed: the seeds of a sweep go into seeds"),
    ("seeds = 1\n[grid]\nprotocol = ['nobody']", "line 3: grid.protocol: no protocol 'nobody'"),
    ("seeds = 1\n[grid]\nprotocol = 'unordered'", 'line 3: grid.protocol: a list of names, or "*"'),
    (GRID + "'network.loss' = 0", "line 4: grid.network.loss: a list of values"),
    (GRID + "receivers = []", "line 4: grid.receivers: a list of values"),
    (GRID + "seed = [1]", "line 4: grid.seed: the seeds of a sweep go into seeds"),
    (GRID + "'network.loss' = [2]", "line 4: grid.network.loss: expected `float` <= 1.0 (here: 2)"),
    (GRID + "'network.lost' = [0]", "line 4: grid.network.lost: unknown key"),
    (GRID + "'senders.loss' = [0]\n[scenario]\nsenders = 2", "line 4: grid.senders.loss: 'senders' of the"),
    (ONE + "colour = 1", "line 4: scenario.colour: unknown key"),
    (ONE + "options = { colour = 1 }", "line 4: scenario.options.colour: unknown key (of unordered)"),
    (
        ONE + f"[[scenario.fault]]\n{HEAL}[[scenario.fault]]\n{CRASH}",
        "line 10: scenario.fault[1].host: there",
    ),
    (ONE + "[[case]]\n[[case]]\nnetwork.loss = 3", "line 6: case[1].network.loss: expected `float` <= 1.0"),
    (
        ONE + "[[case]]\nname = 'a'\n[[case]]\nname = 'a'",
        "line 7: case[1].name: another case has the same name",
    ),
    (ONE + "[[case]]\nseed = 3", "line 5: case[0].seed: the seeds of a sweep"),
    (ONE + "[grid]\n'network.loss' = [0, 0.0]", "line 5: grid.network.loss: two rows are the same run"),
    (ONE + "workload.spread = [nan]", "line 4: scenario.workload.spread"),
    (ONE + "workload = { kind = 'recorded', file = 'no.csv' }", "line 4: scenario.workload.file"),
    (SWARM, "scenario.protocol: the protocol is missing"),
    (SWARM + "[scenario]\nprotocol = 'unordered'\nreceivers = 2", "line 5: scenario.receivers: with swarm"),
    (
        SWARM + "[grid]\nprotocol = ['unordered', 'unordered']",
        "line 4: grid.protocol: the same protocol is listed",
    ),
    (SWARM + "[grid]\nprotocol = ['nobody']", "line 4: grid.protocol: no protocol 'nobody'"),
    (SWARM + "[scenario]\nprotocol = 'unordered'\n[[case]]", "line 5: case[0]: with swarm"),
]


@pytest.mark.parametrize(("text", "complaint"), BAD)
def test_a_complaint_names_the_file_the_line_and_the_key(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(LocalError) as caught:
        load(tmp_path, text)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'some.toml'}")
    assert complaint in said
    assert "\n" not in said


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="cannot be read: No such file"):
        load_sweep(tmp_path / "nothing.toml")


def test_rows_that_differ_in_nothing_but_recorded_packets_would_share_a_folder(tmp_path: Path) -> None:
    text = "seeds = 1\n[scenario]\nprotocol = 'unordered'\n[grid]\npackets = [false, true]\n"
    with pytest.raises(LocalError, match=r"the same run, .*: packets False; and packets True"):
        load(tmp_path, text)


def test_a_defect_of_a_protocol_is_not_a_mistake_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(sweep_file, "build_world", explode)
    assert len(load(tmp_path, SMALL).rows) == 8


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("every-*.toml")), ids=lambda path: path.stem)
def test_the_examples_are_sweeps_of_every_protocol(path: Path) -> None:
    sweep = load_sweep(path)
    assert {row.protocol for row in sweep.rows} == set(protocol_names())
    assert len(sweep.rows) >= 25 * len(protocol_names())
