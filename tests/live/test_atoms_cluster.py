"""Sequencing atoms on real processes: overlapping groups, one made under load, and nodes that are killed."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from ordercast.cli import run as command
from ordercast.core import LocalError
from ordercast.lab.trial.run import LiveRun, run_live
from ordercast.net.api.join import join
from ordercast.scenario.changes import Join
from ordercast.scenario.faults import Crash
from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.trace import Kind, events_of
from tests.live.cluster_files import write_cluster

JOINER = 1
"""A receiver that is in no group at the start."""
EXAMPLES = Path(__file__).parents[2] / "examples" / "faults"


def delivered(run: LiveRun) -> Counter[tuple[int, int]]:
    """How many messages each receiver got of each group."""
    rows = [event for event in events_of(run.table) if event.kind is Kind.DELIVER]
    return Counter((event.node, group) for event in rows for group in event.groups or ())


def test_a_group_is_made_while_messages_flow(tmp_path: Path) -> None:
    scenario = Scenario(
        protocol="atoms",
        live_options=True,
        membership=((0, 1, 2), (0, 1), ()),
        senders=3,
        colocated=True,
        options={"compact": True},
        workload=WorkloadSpec(kind="periodic", messages=240, rate_per_s=40),
        join=(Join(at_ms=300, node=2, group=1), Join(at_ms=500, node=1, group=2)),
        settle_ms=1500,
    )
    run, _ = run_live(scenario, tmp_path)
    assert run.violations == [] and run.hindrance == "" and run.complaints == ()
    assert run.account.accepted == run.account.delivered == 240
    got = delivered(run)
    assert got[0, 0] == got[1, 0] == got[2, 0] > 0
    assert 0 < got[2, 1] < got[0, 1] == got[1, 1]
    assert 0 < got[1, 2] < got[0, 0], "what is sent before there is a member is for nobody"


@pytest.mark.deep
@pytest.mark.parametrize("name", ["atoms-node-killed", "atoms-compact-host-restarted"])
def test_a_sequencing_node_is_killed_under_load_and_its_atoms_move(name: str, tmp_path: Path) -> None:
    scenario = load_scenario(EXAMPLES / f"{name}.toml")
    run, folder = run_live(scenario, tmp_path)
    assert run.violations == [] and run.complaints == ()
    account = run.account
    assert account.missing == account.twice == account.disorder == 0
    detection = scenario.all_options().detection_ns
    assert account.limit_ns == 5 * detection and account.outage_ns <= account.limit_ns
    killed = next(fault for fault in scenario.fault if isinstance(fault, Crash))
    (silence,) = run.silences
    assert silence.host == killed.host
    joined = {(one.node, one.group) for one in scenario.join}
    assert all(delivered(run)[pair] > 0 for pair in joined), "subscriptions took effect"
    assert folder is not None
    assert command(["check", str(tmp_path)]) == 0


def test_compact_needs_as_many_receivers_as_nodes() -> None:
    scenario = Scenario(protocol="atoms", receivers=2, options={"compact": True})
    with pytest.raises(
        LocalError, match=r"compact puts 3 sequencing nodes and 3 replicas .* only 2 receivers"
    ):
        scenario.plan()


def test_a_store_refuses_the_saved_state_of_other_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_cluster(
        tmp_path,
        protocol="atoms",
        receivers=2,
        top="senders = 1\ncolocated = true",
        options="nodes = 1\nstore = 1\ncopies = 1",
        hosts=(0, 1, 3),
    )
    ends = ("--config", str(path))
    assert command(["cluster", "up", *ends]) == 0
    assert command(["cluster", "down", *ends]) == 0
    path.write_text(path.read_text().replace("= 2\n", "= [0]\nother = [1]\n", 1))
    assert path.read_text().count("other") == 1
    capsys.readouterr()
    assert command(["cluster", "up", *ends]) == 2
    assert "the saved state is that of other groups, nodes or options" in " ".join(
        capsys.readouterr().err.split()
    )
    command(["cluster", "down", *ends])


def test_a_receiver_that_joined_later_can_be_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_cluster(
        tmp_path,
        protocol="atoms",
        receivers=1,
        top="senders = 1\ncolocated = true\njoiners = 1",
        options="nodes = 1\nstore = 1\ncopies = 1",
        hosts=(0, JOINER, 3),
        spares=(JOINER,),
    )
    path.write_text(path.read_text().replace("= 1\n[[host]]", "= [0]\nlater = []\n[[host]]", 1))
    ends = ("--config", str(path))
    assert command(["cluster", "up", *ends]) == 0
    try:
        assert command(["tail", "later", *ends]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert "nobody that answers receives group 'later' now" in told and "--node 0, 1" in told
        assert asyncio.run(watched(path)) == 0
    finally:
        command(["cluster", "down", *ends])


async def watched(path: Path) -> int:
    """Join a group that nobody receives, and watch it with the command until a message has come."""
    async with join(path, "later", host=JOINER) as group:
        assert group.joined == ("later",)
        words = ["tail", "later", "-n", "1", "--config", str(path)]
        watching = asyncio.create_task(asyncio.to_thread(command, words))
        while not watching.done():
            await asyncio.to_thread(command, ["send", "later", "hello", "--config", str(path)])
            await asyncio.sleep(0.3)
        return watching.result()
