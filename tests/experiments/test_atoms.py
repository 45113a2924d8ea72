"""The worlds of sequencing atoms' experiments: topologies, hosts, groups, and what is measured there."""

import heapq
from pathlib import Path

import numpy as np
import pytest

from ordercast.core import LocalError
from ordercast.experiments import Setup
from ordercast.experiments.atoms import bounds, email, nodes, stretch
from ordercast.experiments.atoms.results import email_folder, topology_files
from ordercast.experiments.atoms.runs import count_dense_nodes, count_nodes, stretches
from ordercast.experiments.atoms.runs import stretch as stretch_run
from ordercast.experiments.atoms.topology import (
    KINDS,
    NARROW,
    WIDE,
    Kind,
    Topology,
    make_topology,
    read_topology,
)
from ordercast.experiments.atoms.worlds import host_distances, occupied_groups, place_hosts, zipf_groups
from ordercast.experiments.published import all_claims

# What the two graphs have that GT-ITM made (10,000 routers each): mean and percentiles 10, 50, 90, 99 of the
# degrees; mean and percentiles 10, 50, 90 of the lengths of ways between routers of stub domains.
MEASURED = {
    "wide": (6.50, (4, 6, 10, 12), 797.0, (375.0, 784.0, 1237.0)),
    "narrow": (3.40, (1, 3, 5, 13), 804.0, (485.0, 804.0, 1126.0)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_degrees_and_ways_are_those_of_gt_itm(kind: str) -> None:
    mean, degrees, length, lengths = MEASURED[kind]
    found_degrees, found_lengths = [], []
    for seed in range(12):
        topology = make_topology(KINDS[kind], seed)
        assert len(topology.transit) == 10_000
        found_degrees.append(topology.degrees)
        routers = np.random.default_rng(seed).choice(topology.stub_routers(), (2, 150), replace=False)
        found_lengths.append(topology.between(routers[0], routers[1]))
    assert np.mean(found_degrees) == pytest.approx(mean, rel=0.03)
    assert np.percentile(found_degrees, (10, 50, 90, 99)) == pytest.approx(degrees, abs=1)
    assert np.mean(found_lengths) == pytest.approx(length, rel=0.1)
    assert np.percentile(found_lengths, (10, 50, 90)) == pytest.approx(lengths, rel=0.15)


SMALL = Kind(3, 6, 12, 120, 800.0, 130.0, 80.0, 1.0, 0.4, 0.3)


def shortest(topology: Topology, source: int) -> np.ndarray:
    """Dijkstra, to compare with."""
    ways = [[] for _ in topology.transit]  # type: list[list[tuple[int, float]]]
    for (one, other), length in zip(topology.links.tolist(), topology.lengths.tolist(), strict=True):
        ways[one].append((other, length))
        ways[other].append((one, length))
    best = np.full(len(ways), np.inf)
    best[source] = 0.0
    heap = [(0.0, source)]
    while heap:
        length, here = heapq.heappop(heap)
        for other, more in ways[here] if length == best[here] else ():
            if length + more < best[other]:
                best[other] = length + more
                heapq.heappush(heap, (best[other], other))
    return best


@pytest.mark.parametrize("seed", range(5))
def test_ways_are_shortest_ways(seed: int) -> None:
    topology = make_topology(SMALL, seed)
    routers = topology.stub_routers()
    found = topology.between(routers, routers)
    for row, source in enumerate(routers):
        assert found[row] == pytest.approx(shortest(topology, int(source))[routers])


def test_the_same_seed_gives_the_same_topology() -> None:
    one, same, other = (make_topology(NARROW, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.links, same.links) and np.array_equal(one.lengths, same.lengths)
    assert not np.array_equal(one.lengths, other.lengths)


def test_a_topology_comes_back_from_a_file(tmp_path: Path) -> None:
    made = make_topology(SMALL, 3)
    edges = np.column_stack([made.links, np.rint(made.lengths), np.ones(len(made.links))]).astype(np.int32)
    file = tmp_path / "small.npz"
    np.savez(file, transit=made.transit, edges=edges)
    read = read_topology(file)
    assert np.array_equal(read.degrees, made.degrees)
    gates = made.transit[made.links].sum(axis=1) == 1
    np.savez(file, transit=made.transit, edges=edges[~gates])
    with pytest.raises(LocalError, match="hangs on one transit router"):
        read_topology(file)
    file.write_text("nothing")
    with pytest.raises(LocalError, match="is no topology"):
        read_topology(file)


def test_hosts_of_a_cluster_are_near_each_other() -> None:
    for kind in (WIDE, NARROW):
        topology = make_topology(kind, 0)
        assert len(np.unique(place_hosts(topology, 8, 0))) == 8
        lengths = host_distances(topology, 128, seed=0)
        assert lengths.shape == (128, 128)
        inside = np.mean([lengths[first : first + 8, first : first + 8].mean() for first in range(0, 128, 8)])
        assert inside < lengths.mean() / 4
        assert (lengths[~np.eye(128, dtype=bool)] >= 1).all()


def test_sizes_of_groups() -> None:
    groups = zipf_groups(128, 64, seed=1)
    assert [len(members) for members in groups.values()][:4] == [128, 64, 43, 32]
    assert len(groups[63]) == 2
    occupied = occupied_groups(128, 32, 0.25, seed=1)
    assert np.mean([len(members) for members in occupied.values()]) == pytest.approx(32, rel=0.15)
    assert occupied_groups(128, 32, 0.0, seed=1) == {}


def test_the_stretch_of_a_way_over_one_node() -> None:
    # Hosts 0, 1 and 2 on a line; the node is at host 0.
    distances = np.array([[0.0, 4.0, 8.0], [4.0, 0.0, 4.0], [8.0, 4.0, 0.0]])
    found = stretches({0: (0, 1, 2)}, {0: (0,)}, np.array([0]), distances, {0: 3.0})
    assert found == pytest.approx({0: 12 / 12, 1: (4 + 12) / 8, 2: (8 + 12) / 12})


def test_a_run_measures_both_bounds() -> None:
    for record in (
        *stretch_run(topology="wide", groups=8, seed=0, runs=2).records,
        *count_nodes(groups=12, seed=0, runs=2).records,
        *count_dense_nodes(occupancy=0.3, groups=16, seed=0, runs=2).records,
    ):
        values = {name: float(value) for name, value in record.items()}
        assert 0 < values["load"] <= values["node_load"] <= 1.0 + 1e-9
        assert 0 < values["path"] <= 1.0
        assert values["passed_path"] >= values["path"]


def test_nodes_are_few_where_groups_are_dense() -> None:
    dense, sparse = (
        count_dense_nodes(occupancy=share, groups=32, seed=0, runs=1).records[0]["nodes"]
        for share in (1.0, 0.15)
    )
    assert dense == 1
    assert float(sparse) > 8


def test_every_claim_is_measured_by_one_experiment() -> None:
    found = [claim for part in (stretch, nodes, bounds) for each in part.EXPERIMENTS for claim in each.claims]
    assert sorted(found) == sorted(claim.id for claim in all_claims() if claim.system == "atoms")


def write_lines(path: Path, numbers: list[int]) -> None:
    import gzip

    with gzip.open(path, "wt", encoding="ascii") as file:
        file.write("".join(f"{number}\n" for number in numbers))


def test_multicasts_are_grouped_by_who_got_them(tmp_path: Path) -> None:
    folder = tmp_path / "email-enron"
    folder.mkdir()
    write_lines(folder / "email-Enron-nverts.txt.gz", [2, 3, 2, 1])
    write_lines(folder / "email-Enron-simplices.txt.gz", [11, 12, 12, 14, 11, 12, 11, 14])
    members, rates = email.read_multicasts(folder)
    assert members == {0: (0, 1), 1: (0, 1, 2)}
    assert rates == {0: 2.0, 1: 1.0}
    write_lines(folder / "email-Enron-nverts.txt.gz", [9])
    with pytest.raises(LocalError, match="the messages have 9 members, but 8 are named"):
        email.read_multicasts(folder)
    (folder / "email-Enron-nverts.txt.gz").write_text("x")
    with pytest.raises(LocalError, match="has no numbers"):
        email.read_multicasts(folder)


def test_a_real_workload_is_replayed_where_there_is_one(tmp_path: Path) -> None:
    assert email.cases(Setup()) == []
    with pytest.raises(LocalError, match=r"no transit-stub/\*.npz"):
        topology_files(tmp_path)
    with pytest.raises(LocalError, match="no folder email-enron"):
        email_folder(tmp_path)
    folder = tmp_path / "email-enron"
    folder.mkdir()
    write_lines(folder / "email-Enron-nverts.txt.gz", [3, 3, 2])
    write_lines(folder / "email-Enron-simplices.txt.gz", [1, 2, 3, 2, 3, 4, 1, 4])
    made = make_topology(SMALL, 3)
    edges = np.column_stack([made.links, np.rint(made.lengths), np.ones(len(made.links))]).astype(np.int32)
    (tmp_path / "transit-stub").mkdir()
    np.savez(tmp_path / "transit-stub" / "ts.npz", transit=made.transit, edges=edges)
    (case, *_) = email.cases(Setup(quick=True, data=tmp_path))
    file = str(case.arguments["file"])
    (record,) = email.replay(
        topology="ts", workload="e-mail", seed=0, file=file, folder=str(folder), runs=1
    ).records
    values = {name: float(value) for name, value in record.items()}
    assert values["vectors_bytes"] == 8 * 4
    assert values["central_busiest"] == pytest.approx(3 / 2)
    assert values["atoms_bytes"] == pytest.approx((24 + 24 + 12) / 3)
    assert values["atoms_stretch"] >= 1.0
