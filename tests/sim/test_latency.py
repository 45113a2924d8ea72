"""Delays from host to host: bounds, moments, measured matrices, shortest paths."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import LocalError
from ordercast.sim.latency import (
    NO_PATH,
    Constant,
    Graph,
    Matrix,
    ShiftedChiSquare,
    Sites,
    Uniform,
)

TICKS = np.array([[0, 2, -1], [3, 0, 4], [5, -1, 0]])


def draws(model: Constant | Uniform | ShiftedChiSquare, count: int = 20_000) -> np.ndarray:
    rng = Random("latency")
    return np.array([model.draw(0, 1, rng) for _ in range(count)])


def test_a_constant_is_constant() -> None:
    assert set(draws(Constant(7), 100)) == {7}


def test_uniform_draws_reach_both_bounds_and_keep_within_them() -> None:
    assert set(draws(Uniform(3, 6), 1000)) == {3, 4, 5, 6}


def test_uniform_draws_are_even() -> None:
    found = draws(Uniform(1000, 3000))
    assert found.mean() == pytest.approx(2000, rel=0.01)
    assert found.std() == pytest.approx(2000 / 12**0.5, rel=0.02)


@pytest.mark.parametrize("degrees", [1, 4, 10])
def test_chi_square_has_the_mean_and_deviation_asked_for(degrees: int) -> None:
    found = draws(ShiftedChiSquare(1_000_000, 200_000, degrees))
    assert found.mean() == pytest.approx(1_000_000, rel=0.005)
    assert found.std() == pytest.approx(200_000, rel=0.04)


def test_chi_square_is_never_below_its_shift_and_leans_to_the_right() -> None:
    found = draws(ShiftedChiSquare(1_000_000, 200_000, 4))
    shift = 1_000_000 - 4 * 200_000 / 8**0.5
    assert found.min() >= int(shift)
    assert np.median(found) < found.mean()


def test_chi_square_without_deviation_is_constant() -> None:
    assert set(draws(ShiftedChiSquare(500, 0), 100)) == {500}


def test_sites_are_near_within_and_far_between() -> None:
    sites = Sites({0: 0, 1: 0, 2: 1}, Constant(1), Constant(9))
    found = {(a, b): sites.draw(a, b, Random(0)) for a in range(4) for b in range(4) if a != b}
    assert {pair for pair, delay in found.items() if delay == 1} == {(0, 1), (1, 0)}
    assert set(found.values()) == {1, 9}  # host 3 has no site, so all others are far


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv"])
def test_a_matrix_is_read_from_any_of_the_formats(tmp_path: Path, suffix: str) -> None:
    matrix = Matrix.load(_write(tmp_path, suffix, TICKS), tick_ns=10)
    for source in range(3):
        for target in range(3):
            ticks = TICKS[source][target]
            assert matrix.draw(source, target, Random(0)) == (NO_PATH if ticks < 0 else ticks * 10)


def _write(folder: Path, suffix: str, ticks: np.ndarray) -> Path:
    path = folder / f"matrix.{suffix}"
    if suffix == "npy":
        np.save(path, ticks)
    elif suffix == "npz":
        np.savez(path, ticks=ticks)
    else:
        np.savetxt(path, ticks, delimiter=",")
    return path


def test_a_key_chooses_among_the_matrices_of_a_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", one=TICKS, two=TICKS * 2)
    assert Matrix.load(tmp_path / "two.npz", 1, "two").draw(0, 1, Random(0)) == 4
    with pytest.raises(LocalError, match=r"two\.npz: not a latency matrix"):
        Matrix.load(tmp_path / "two.npz", 1, "three")


def test_hosts_beyond_the_matrix_get_one_measured_value_a_pair_for_good() -> None:
    matrix = Matrix(TICKS.astype(float))
    first = {(a, b): matrix.draw(a, b, Random(1)) for a in range(12) for b in range(12) if max(a, b) > 2}
    second = {pair: matrix.draw(*pair, Random(2)) for pair in reversed(list(first))}
    assert first == second
    assert set(first.values()) == {2, 3, 4, 5}  # all that was measured, no diagonal, no absent pair


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("missing.csv", None),
        ("empty.csv", b""),
        ("blank.csv", b"\n\n"),
        ("words.csv", b"a,b\nc,d\n"),
        ("ragged.csv", b"0,1\n2\n"),
        ("oblong.csv", b"0,1,2\n1,0,2\n"),
        ("nan.csv", b"0,nan\n1,0\n"),
        ("infinite.csv", b"0,inf\n1,0\n"),
        ("none_measured.csv", b"0,-1\n-1,0\n"),
        ("binary.csv", b"\xff\xfe\x00"),
        ("empty.npy", b""),
        ("garbage.npy", b"garbage"),
        ("garbage.npz", b"garbage"),
        ("broken.npz", b"PK\x03\x04 but no more"),
    ],
)
def test_what_is_no_matrix_is_refused_by_name(tmp_path: Path, name: str, content: bytes | None) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LocalError, match=name):
        Matrix.load(path)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    whole = _write(tmp_path, "npz", TICKS).read_bytes()
    for share in (0.3, 0.6, 0.95):
        (tmp_path / "cut.npz").write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(LocalError, match=r"cut\.npz"):
            Matrix.load(tmp_path / "cut.npz")


EDGES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 50)), min_size=1, max_size=14)


@given(EDGES)
def test_shortest_paths_agree_with_floyd_and_warshall(edges: list[tuple[int, int, int]]) -> None:
    vertices = sorted({vertex for one, other, _ in edges for vertex in (one, other)})
    best: dict[tuple[int, int], int | None] = {(a, b): None for a in vertices for b in vertices}
    best |= {(a, a): 0 for a in vertices}
    for one, other, length in edges:
        for pair in ((one, other), (other, one)):
            known = best[pair]
            best[pair] = length if known is None else min(known, length)
    for via in vertices:
        for a in vertices:
            for b in vertices:
                first, second, known = best[a, via], best[via, b], best[a, b]
                if first is not None and second is not None and (known is None or first + second < known):
                    best[a, b] = first + second
    graph = Graph(edges, {vertex: vertex for vertex in vertices}, local_ns=3)
    for (a, b), shortest in best.items():
        assert graph.draw(a, b, Random(0)) == (NO_PATH if shortest is None else shortest + 3)


def test_a_graph_is_read_and_hosts_are_placed_by_the_seed(tmp_path: Path) -> None:
    np.savez(tmp_path / "graph.npz", edges=np.array([[0, 1, 1.5, 9], [1, 2, 2.5, 9], [2, 3, 4, 9]]))
    one, same, other = (Graph.load(tmp_path / "graph.npz", 1000, 40, seed) for seed in (1, 1, 2))
    distances = [[graph.distance(0, host) for host in range(40)] for graph in (one, same, other)]
    assert distances[0] == distances[1] != distances[2]
    possible = {0, 1500, 2500, 4000, 6500, 8000}
    assert set(distances[0]) <= possible


@pytest.mark.parametrize(
    "arrays",
    [
        {"other": np.zeros((2, 3))},
        {"edges": np.zeros(3)},
        {"edges": np.zeros((2, 2))},
        {"edges": np.zeros((0, 3))},
        {"edges": np.array([[0, 1, np.nan]])},
        {"edges": np.array([[0, 1, np.inf]])},
        {"edges": np.array([["a", "b", "c"]])},
    ],
    ids=["no edges", "flat", "no lengths", "empty", "nan", "infinite", "words"],
)
def test_what_is_no_graph_is_refused_by_name(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(LocalError, match=r"bad\.npz: not a graph"):
        Graph.load(tmp_path / "bad.npz", 1000, 3, 0)


def test_bad_parameters_are_refused() -> None:
    for build in (
        lambda: Constant(-1),
        lambda: Uniform(5, 4),
        lambda: Uniform(-1, 4),
        lambda: ShiftedChiSquare(100, 100, 4),
        lambda: ShiftedChiSquare(100, 1, 0),
        lambda: ShiftedChiSquare(100, -1),
        lambda: Graph([(0, 1, -5)], {0: 0}),
        lambda: Graph([(0, 1, 5)], {0: 2}),
    ):
        with pytest.raises(LocalError):
            build()
