"""Groups that share hosts, and faults of a file that name a role."""

from pathlib import Path
from typing import Any

import pytest

from ordercast.scenario import Scenario
from ordercast.scenario.faults import Crash
from ordercast.scenario.file import load_content, load_scenario
from ordercast.scenario.spec import to_scenario
from ordercast.sim import simulate
from ordercast.toml_file import KeyedError

EXAMPLE = Path(__file__).parents[2] / "examples" / "bank.toml"


def bank(**more: Any) -> dict[str, Any]:
    return {"protocol": "hydra_txn", "service": "bank", "groups": 3, "clients": 2, "hosts": "shared"} | more


def test_replica_k_of_every_group_is_on_one_host() -> None:
    plan = to_scenario(bank()).plan()
    assert [[plan.nodes[node].host for node in members] for members in plan.groups.values()] == [
        [0, 1, 2]
    ] * 3
    others = [node.host for node in plan.nodes if node.role != "replica"]
    assert len(set(others)) == len(others) and min(others) > 8


def test_what_was_on_the_host_of_a_receiver_moves_with_it() -> None:
    plan = Scenario(protocol="multi_paxos", groups=2, senders=6, colocated=True, hosts="shared").plan()
    assert [node.host for node in plan.nodes] == [0, 1, 2] * 4


def test_groups_of_different_sizes_share_the_hosts_of_the_largest() -> None:
    plan = Scenario(protocol="multi_paxos", membership=((0, 1), (2, 3, 4)), hosts="shared").plan()
    assert [plan.nodes[node].host for node in range(5)] == [2, 3, 2, 3, 4]


def test_groups_that_overlap_at_different_places_cannot_share() -> None:
    with pytest.raises(KeyedError, match="hosts: groups that overlap cannot share hosts, and node 1"):
        Scenario(protocol="atoms", membership=((0, 1, 2), (1, 2, 3)), hosts="shared").plan()


def test_a_crash_of_a_shared_host_takes_a_replica_of_every_shard() -> None:
    run = simulate(to_scenario(bank(fault=[{"kind": "crash", "at_ms": 5, "host": 0}])))
    crashed = {event.node for event in run.events() if event.kind == "crash"}
    assert crashed == {0, 3, 6} and run.violations == []
    assert run.summary().answered == run.summary().submitted


@pytest.mark.parametrize(
    ("role", "place", "host"), [("sequencer", 1, 12), ("client", 0, 9), ("replica", 4, 1)]
)
def test_a_fault_may_name_a_role_instead_of_a_host(role: str, place: int, host: int) -> None:
    fault = {"kind": "crash", "at_ms": 5, "role": role, "place": place}
    assert to_scenario(bank(fault=[fault])).fault == (Crash(at_ms=5, host=host),)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"role": "juror"}, r"fault\[0\].role: hydra_txn has no role juror; its roles are: client, conf"),
        ({"role": "client", "place": 2}, r"fault\[0\].place: there is no client 2; .* from 0 to 1"),
        ({"role": "client", "place": "x"}, r"fault\[0\].place: there is no client 'x'"),
        ({"role": "client", "host": 2}, r"fault\[0\].host: a fault is at a host or at a role"),
        ({"role": ["client"]}, r"fault\[0\].role: hydra_txn has no role \['client'\]"),
    ],
)
def test_a_wrong_role_is_told(fault: dict[str, Any], said: str) -> None:
    with pytest.raises(KeyedError, match=said):
        to_scenario(bank(fault=[{"kind": "crash", "at_ms": 5} | fault]))


def test_a_file_keeps_its_roles_until_it_is_read() -> None:
    content = load_content(EXAMPLE)
    assert [fault["role"] for fault in content["fault"][::2]] == [
        "client",
        "sequencer",
        "coordinator",
        "replica",
    ]
    faults = load_scenario(EXAMPLE).fault
    moved = to_scenario(content | {"senders": 5}).fault
    assert [getattr(one, "host", None) for one in faults[2:4]] == [13, 13]
    assert [getattr(one, "host", None) for one in moved[2:4]] == [14, 14]
