"""What the documents say is true: their programs run, their commands work, their links lead somewhere."""

import os
import re
import signal
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ordercast import protocols
from ordercast.catalogue import find_protocol, protocol_names
from ordercast.cli import run
from ordercast.core import MILLISECOND, Deployment, Fault
from ordercast.judge import PROPERTIES, rows_of
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.supervisor_client import report
from ordercast.scenario import Scenario, load_scenario
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.schedule import schedule
from ordercast.scenario.spec import PhaseSpec
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim import conformance, simulate
from ordercast.sim.build import build_world
from tests.deep import deep_after
from tests.live.cluster_files import free_port_range
from tests.live.processes import alive, until

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
# A sweep has seeds, a scenario has one; tests/spark runs the sweeps.
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.toml")) if "\nseeds" not in path.read_text()]


def blocks(document: str, language: str) -> list[str]:
    parts = re.split(r"^```(.*)\n", (ROOT / document).read_text(), flags=re.MULTILINE)
    fences, contents = parts[1::4], parts[2::4]
    return [content for fence, content in zip(fences, contents, strict=True) if fence == language]


def commands(document: str) -> list[list[str]]:
    lines = [line for block in blocks(document, "") for line in block.splitlines()]
    starts = [line.split("  ")[0].split() for line in lines if line.startswith("ordercast ")]
    return [words[1:] for words in starts]


def on_spark(words: list[str]) -> bool:
    """Commands that tests/spark runs, on its own Spark."""
    return words[0] in ("sweep", "reproduce", "report") or "--master" in words


LIVE = {"cluster", "send", "tail", "call", "gateway", "why", "top", "node", "live", "bench"}
"""Commands that start processes or speak to them."""
ENDLESS = {"tail", "gateway", "top", "node", "bench"}
"""Those that end when they are told to, or take their time; tests/live tries them."""
MINUTES_LONG = ["live", "examples/faults"]
"""A deep test runs it (tests/live/test_live_folder.py)."""
NEEDS_CLUSTER = {"cluster", "send", "call", "why"}
"""Those that need a cluster that is up: a list of commands after the story of one only names them."""


def test_the_first_program_of_the_readme_runs_and_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    program, *_ = blocks("README.md", "python")
    exec(program, {})
    lines = capsys.readouterr().out.splitlines()
    assert len({line.split("delivered")[1] for line in lines[:3]}) == 1
    assert "p50" in lines[3]
    assert len(program.splitlines()) <= 15


def test_the_live_program_of_the_readme_is_the_example_and_is_short() -> None:
    _, program, _ = blocks("README.md", "python")
    assert program == (ROOT / "examples" / "live" / "orders.py").read_text()  # tests/live runs it
    assert len(program.splitlines()) < 25


def test_the_tutorial_goes_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    protocol, suite, mended, _, _ = blocks("docs/tutorial.md", "python")
    exec(protocol, names)
    exec(suite, names)
    (said,) = [block.strip() for block in blocks("docs/tutorial.md", "") if block.startswith("fault: ")]
    assert said in capsys.readouterr().out
    exec(mended, names)
    guarantees = names["GUARANTEES"]
    names["GUARANTEES"] = type(guarantees)(
        **{field: getattr(guarantees, field) for field in guarantees.__struct_fields__}
        | {"tolerates": (*guarantees.tolerates, Fault.LOSS)}
    )
    assert {failure.property for failure in conformance(names["plan"], range(10))} == {
        "agreement",
        "probe",
        "validity",
    }


def test_the_packages_of_the_tutorial_are_protocols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol, _, mended, package, layer = blocks("docs/tutorial.md", "python")
    program = "\n".join((protocol, mended.split("\nassert ")[0], package))
    for name, content in (("my_sequencer", program), ("compressed", layer)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(content)
    monkeypatch.setattr(protocols, "__path__", [*protocols.__path__, str(tmp_path)])
    assert {"my_sequencer", "compressed", "hydra"} <= set(protocol_names())
    assert len(layer.splitlines()) < 60
    for options in ({}, {"over": "hydra", "below": {"sequencers": 3}}, {"over": "my_sequencer"}):
        for seed in range(3):
            scenario = Scenario(protocol="compressed", options=options, seed=seed)
            assert simulate(scenario).violations == []
    for name in ("my_sequencer", "compressed"):
        assert simulate(swarm_scenario(name, 1)).violations == []
    (text,) = blocks("docs/tutorial.md", "toml")
    (tmp_path / "layered.toml").write_text(text)
    assert load_scenario(tmp_path / "layered.toml").options["over"] == "hydra"


def test_the_process_of_the_tutorial_is_driven_by_hand() -> None:
    names: dict[str, Any] = {}
    (by_hand,) = re.findall(
        r"^  ```python\n(.*?)^  ```$", (ROOT / "docs/tutorial.md").read_text(), re.M | re.S
    )
    exec(blocks("docs/tutorial.md", "python")[0], names)
    exec(textwrap.dedent(by_hand), names)
    assert names["driver"].waits() == []


@pytest.mark.parametrize("document", deep_after(1, ["README.md", "docs/tutorial.md"]))
def test_every_command_of_a_document_works(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    found = [words for words in commands(document) if not on_spark(words)]
    assert len([words for words in found if words[0] not in LIVE]) >= 6
    down = found.index(["cluster", "down"])
    with cluster_ended():
        for index, words in enumerate(found):
            if {"my_sequencer", "compressed"} & set(words):
                continue  # packages that readers write
            if words == MINUTES_LONG:
                continue
            if words[0] in ENDLESS or (index > down and words[0] in NEEDS_CLUSTER):
                continue
            assert run(quick(words)) == 0, f"{' '.join(words)}: {capsys.readouterr().err}"


def quick(words: list[str]) -> list[str]:
    """A command, with fewer seeds, or at ports that are free."""
    if words[:2] == ["cluster", "init"]:
        return [*words, "--port", str(free_port_range(9))]
    return ["0:6" if re.fullmatch(r"[0-9]+:[0-9]+", word) else word for word in words]


@contextmanager
def cluster_ended() -> Iterator[None]:
    """Leaves no cluster of this folder behind, whatever goes wrong."""
    try:
        yield
    finally:
        if Path("cluster.toml").exists() and (found := report(load_cluster(Path("cluster.toml")))):
            os.kill(found.pid, signal.SIGKILL)  # the hosts follow
            assert until(lambda: not any(host.pid and alive(host.pid) for host in found.hosts))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_keeps_its_promises(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(path)]) == 0


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_to_files(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", path.read_text())
    for target in targets:
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_protocol_has_a_page_and_a_row_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in protocol_names():
        page = (ROOT / "docs" / "protocols" / f"{name}.md").read_text()
        assert "## Guarantees" in page and "## Deviations" in page
        assert f"docs/protocols/{name}.md" in readme


def test_every_option_of_a_protocol_is_on_its_page() -> None:
    for name in protocol_names():
        protocol = find_protocol(name)
        page = (ROOT / "docs" / "protocols" / f"{name}.md").read_text()
        for option in (*protocol.options.__struct_fields__, *protocol.live):
            assert f"`{option}`" in page, f"{name}: {option}"


def test_the_page_of_checks_has_the_properties_of_the_registry() -> None:
    page = (ROOT / "docs" / "checks.md").read_text()
    rows = [line for line in page.split("## ")[0].splitlines() if line.startswith("| `")]
    assert rows == rows_of(PROPERTIES)


def test_the_scenario_of_the_page_is_a_scenario(tmp_path: Path) -> None:
    text, _, _ = blocks("docs/scenarios.md", "toml")
    path = tmp_path / "page.toml"
    path.write_text(text)
    scenario = load_scenario(path)
    assert scenario.deployment() == Deployment.disjoint(2, 3, 4)
    page = (ROOT / "docs" / "scenarios.md").read_text()
    for key in Scenario.__struct_fields__:
        assert key in page


@pytest.mark.parametrize("page", ["docs/scenarios.md", "docs/membership.md"])
def test_the_changes_of_the_pages_can_be_made(tmp_path: Path, page: str) -> None:
    text = blocks(page, "toml")[-1]
    path = tmp_path / "page.toml"
    path.write_text(text)
    scenario = load_scenario(path)
    assert {type(change) for change in scenario.changes} == {Join, Leave}
    assert build_world(scenario, scenario.plan()).plan.joiners == (3,)


def test_the_phases_of_the_page_are_phases(tmp_path: Path) -> None:
    _, text, _ = blocks("docs/scenarios.md", "toml")
    path = tmp_path / "page.toml"
    path.write_text(f'protocol = "unordered"\nsenders = 4\n{text}')
    scenario = load_scenario(path)
    plan = scenario.plan()
    planned = list(schedule(scenario, plan))
    assert {one.sender for one in planned if one.at_ns < 500 * MILLISECOND} == set(plan.senders[2:])
    assert len(planned) < scenario.workload.messages
    page = (ROOT / "docs" / "scenarios.md").read_text()
    for key in PhaseSpec.__struct_fields__:
        assert f"| `{key}` |" in page
