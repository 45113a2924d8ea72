"""Holes, where agreement is probabilistic: `ordercast simulate` and `ordercast check` say who lacks what."""

from pathlib import Path

import msgspec
import pytest

from tests.cli.conftest import Command

SCENARIO = """
protocol = "epto"
seed = 3
receivers = 6
senders = 2
settle_ms = 50
options = {{ fanout = {fanout}, ttl = {ttl} }}
workload = {{ messages = 40 }}
"""


def scenario(folder: Path, fanout: int, ttl: int) -> Path:
    """Few relays of few balls: then there are holes. With 0 both are chosen so that there are none."""
    path = folder / "scenario.toml"
    path.write_text(SCENARIO.format(fanout=fanout, ttl=ttl))
    return path


@pytest.fixture
def holed(ordercast: Command, tmp_path: Path) -> Path:
    """A folder with a run that has holes."""
    assert ordercast("simulate", scenario(tmp_path, 1, 3), "--out", tmp_path / "traces").code == 0
    return tmp_path / "traces"


def test_a_run_with_holes_kept_its_promises_and_says_who_lacks_what(ordercast: Command, holed: Path) -> None:
    told = ordercast("check", holed, "--json")
    assert told.code == 0
    (holes,) = told.json()["holes"]
    assert holes["count"] == sum(found["count"] for found in holes["nodes"]) > 0
    assert {found["standing"] for found in holes["nodes"]} == {"stayed"}
    outcome = ordercast("check", holed)
    (run,) = (folder.name for folder in holed.iterdir())
    assert outcome.code == 0
    assert "kept every promise" in outcome.out
    assert f"{holes['count']} holes in {run} at receivers that stayed" in outcome.out
    first = holes["nodes"][0]
    assert f"node {first['node']} lacks {first['count']}: {', '.join(first['messages'])}" in outcome.out


def test_simulate_tells_the_same(ordercast: Command, holed: Path, tmp_path: Path) -> None:
    (checked,) = ordercast("check", holed, "--json").json()["holes"]
    del checked["run"]
    path = scenario(tmp_path, 1, 3)
    assert ordercast("simulate", path, "--json").json()["holes"] == checked
    assert f"{checked['count']} holes at receivers that stayed" in ordercast("simulate", path).out


def test_a_run_without_holes_says_so(ordercast: Command, tmp_path: Path) -> None:
    outcome = ordercast("simulate", scenario(tmp_path, 0, 0), "--out", tmp_path / "traces")
    assert "no holes at receivers that stayed" in outcome.out
    assert "no holes at receivers that stayed" in ordercast("check", tmp_path / "traces").out


def test_other_protocols_have_none(ordercast: Command, tmp_path: Path) -> None:
    words = ("--protocol", "unordered", "--loss", 0.3, "--out", tmp_path)
    assert "holes" not in ordercast("simulate", *words, "--json").json()
    assert ordercast("check", tmp_path, "--json").json()["holes"] == []
    assert "hole" not in ordercast("check", tmp_path).out


def not_complete(folder: Path, *, settled: bool) -> None:
    """Make the only run of a folder one that was not complete."""
    (path,) = folder.glob("*/run.json")
    content = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode(content | {"complete": False, "settled": settled}))


def test_holes_that_were_not_counted_are_not_said_to_be_none(
    ordercast: Command, holed: Path, tmp_path: Path
) -> None:
    not_complete(holed, settled=False)
    (name,) = (folder.name for folder in holed.iterdir())
    (holes,) = ordercast("check", holed, "--json").json()["holes"]
    assert holes == {"run": name, "count": None, "nodes": None, "nowhere": None}
    alone = ordercast("check", holed).out
    assert f"holes not counted in {name}: the run is not complete" in alone
    assert "no holes" not in alone
    assert ordercast("simulate", scenario(tmp_path, 0, 0), "--out", holed).code == 0
    beside = ordercast("check", holed).out
    assert f"holes not counted in {name}" in beside
    assert "no holes at receivers that stayed, in 1 run\n" in beside


def test_they_are_counted_where_only_nodes_were_missing_at_the_end(ordercast: Command, holed: Path) -> None:
    before = ordercast("check", holed, "--json").json()["holes"]
    not_complete(holed, settled=True)
    found = ordercast("check", holed, "--json").json()
    assert len(found["incomplete"]) == 1
    assert found["holes"] == before != []


def test_deliveries_out_of_order_are_told(ordercast: Command, tmp_path: Path) -> None:
    path = scenario(tmp_path, 1, 3)
    path.write_text(path.read_text().replace("ttl = 3", 'ttl = 3, late = "tag"'))
    found = ordercast("simulate", path, "--json").json()
    assert found["out_of_order"] > 0
    said = ordercast("simulate", path, "--out", tmp_path / "traces").out
    assert f", and {found['out_of_order']} tagged as out of order" in said
    assert ordercast("check", tmp_path / "traces", "--json").json()["out_of_order"] == found["out_of_order"]
    checked = ordercast("check", tmp_path / "traces").out
    assert f"{found['out_of_order']} deliveries tagged as out of order\n" in checked


def test_there_is_no_word_of_them_where_there_are_none(ordercast: Command, holed: Path) -> None:
    assert "out of order" not in ordercast("check", holed).out
    assert ordercast("check", holed, "--json").json()["out_of_order"] == 0


def test_simulate_says_that_a_partition_kept_it_from_counting(ordercast: Command, tmp_path: Path) -> None:
    path = scenario(tmp_path, 0, 0)
    fault = '[[fault]]\nkind = "partition"\nat_ms = 1\nsides = [[0, 1, 2], [3, 4, 5]]\n'
    path.write_text(f"{path.read_text()}\n{fault}")
    assert ordercast("simulate", path, "--json").json()["holes"]["count"] is None
    said = ordercast("simulate", path).out
    assert "holes not counted, because a partition was still in force" in said
    assert "no holes" not in said
