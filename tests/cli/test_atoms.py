"""`ordercast atoms draw`: the picture, and files that are no graph."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Command

SVG = "{http://www.w3.org/2000/svg}"
RING = {"0": [0, 1, 2, 3], "1": [2, 3, 4, 5], "2": [4, 5, 0, 1]}
ATOMS = {"0": [0, 1], "1": [1, 2], "2": [0, 2]}


def test_thirty_groups_are_drawn_each_with_a_dot_at_its_atoms(ordercast: Command, tmp_path: Path) -> None:
    picture, graph = tmp_path / "graph.svg", tmp_path / "graph.json"
    words = ("--groups", 30, "--hosts", 64, "--out", picture, "--write", graph, "--json")
    outcome = ordercast("atoms", "draw", *words)
    told = outcome.json()
    assert outcome.code == 0
    assert told["groups"] == 30
    tree = ElementTree.fromstring(picture.read_text())
    written = json.loads(graph.read_text())
    dots = [circle for circle in tree.iter(f"{SVG}circle") if circle.get("r") == "6"]
    assert len(dots) == sum(len(groups) for groups in written["atoms"].values())
    labels = [text.text for text in tree.iter(f"{SVG}text")]
    assert "group 0, 64 members" in labels
    frames = [rect for rect in tree.iter(f"{SVG}rect") if rect.get("class") == "node"]
    assert len(frames) >= told["nodes"] > 1

    again = ordercast("atoms", "draw", "--file", graph, "--out", tmp_path / "again.svg")
    assert again.code == 0
    assert (tmp_path / "again.svg").read_text() == picture.read_text()


def test_groups_alone_make_a_graph(ordercast: Command, tmp_path: Path) -> None:
    file = tmp_path / "groups.json"
    file.write_text(json.dumps({"groups": RING}))
    outcome = ordercast("atoms", "draw", "--file", file, "--out", tmp_path / "ring.svg", "--nodes", "apart")
    assert outcome.code == 0
    assert outcome.out.startswith("3 groups, 3 atoms on 3 nodes")


WRONG = [
    (
        {"groups": RING, "atoms": ATOMS, "paths": {"0": [0, 2], "1": [0, 1], "2": [1, 2]}},
        "closes a loop (C2)",
    ),
    (
        {"groups": RING, "atoms": ATOMS, "paths": {"0": [0, 1, 2], "1": [1, 0], "2": [2, 1]}},
        "in both directions (C3)",
    ),
    (
        {"groups": RING, "atoms": ATOMS, "paths": {"0": [0], "1": [0, 1], "2": [1, 2]}},
        "misses its atom 2 (C1)",
    ),
    ({"groups": RING, "atoms": {"0": [0, 1]}, "paths": {"0": [0], "1": [0]}}, "group 2 has no path (C1)"),
    (
        {"groups": RING, "atoms": {"0": [0, 1], "1": [2]}, "paths": {"0": [0], "1": [0], "2": [1]}},
        "double overlap of groups 0 and 2 has no atom",
    ),
    ({"groups": RING, "atoms": {"0": [7]}, "paths": {}}, "which is not there"),
    ({"groups": {"0": []}}, "group 0 has no members"),
    ({"groups": {"0": [1, 1]}}, "group 0 names a member twice"),
    ({"groups": {}}, "there is no group"),
    ({"groups": 7}, "this is no sequencing graph"),
    ({}, "this is no sequencing graph"),
]


@pytest.mark.parametrize(("content", "said"), WRONG)
def test_a_file_that_is_no_graph_is_refused_in_one_line(
    ordercast: Command, tmp_path: Path, content: object, said: str
) -> None:
    file, picture = tmp_path / "graph.json", tmp_path / "graph.svg"
    file.write_text(json.dumps(content))
    outcome = ordercast("atoms", "draw", "--file", file, "--out", picture)
    assert outcome.code == 2
    assert said in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert not picture.exists()


@pytest.mark.parametrize(
    "words", [("--file", "missing.json"), ("--out", "no/such/folder.svg"), ("--seed", -1)]
)
def test_other_wrong_use_is_refused(ordercast: Command, tmp_path: Path, words: tuple[str, object]) -> None:
    outcome = ordercast("atoms", "draw", *words)
    assert outcome.code == 2
    assert len(outcome.err.strip().splitlines()) == 1
