"""EpTO's latencies: what is read, what is refused, and how well the stand-in stands in."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ordercast.core import LocalError
from ordercast.engines.epto import latencies as made
from ordercast.experiments.epto import latencies

SMALL = np.array([[-1, 7, 20], [9, -1, -1], [300, 4, -1]], np.int16)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    target = tmp_path / latencies.FILE
    target.parent.mkdir()
    np.savez_compressed(target, lat_ticks=SMALL)
    return tmp_path


def test_the_stand_in_has_the_published_figures() -> None:
    values = made.stand_in()
    assert values.mean() == pytest.approx(made.MEAN, abs=0.5)
    assert values.std() == pytest.approx(made.DEVIATION, abs=0.5)
    for share, ticks in made.PERCENTILES:
        assert np.quantile(values, share) == pytest.approx(ticks, abs=0.5)
    assert values.min() == 1 and values.max() <= made.LONGEST
    assert np.all(np.diff(values) >= 0)


def test_the_quantiles_are_continuous_and_rise_over_the_whole_range() -> None:
    found = made.quantiles(np.linspace(0, 1, 10_001))
    assert found[0] == 1 and found[-1] == pytest.approx(made.LONGEST)
    assert np.all(np.diff(found) >= 0)
    # The tail rises steeply at its end; below it, a step of 1 in 10,000 is never more than a tick.
    assert np.diff(found[:9_800]).max() < 1


def test_the_matrix_is_of_the_first_processes_and_its_values_of_all_others(data: Path) -> None:
    file = latencies.find_file(data)
    matrix, drawn = (latencies.latencies_of(model, file) for model in (latencies.MATRIX, latencies.DRAWN))
    assert np.array_equal(matrix.matrix, SMALL)
    assert matrix.values.tolist() == drawn.values.tolist() == [4, 7, 9, 20, 300]
    assert drawn.matrix.size == 0 and drawn.longest == 300


def test_another_file_in_its_place_is_noticed(data: Path) -> None:
    arguments = latencies.file_arguments(latencies.find_file(data))
    file, digest = str(arguments["file"]), str(arguments["digest"])
    assert latencies.latencies_of(latencies.DRAWN, file, digest).longest == 300
    np.savez_compressed(data / latencies.FILE, lat_ticks=SMALL + 2 * (SMALL > 0))
    assert latencies.file_arguments(file)["digest"] != digest
    with pytest.raises(LocalError, match="not the file that the experiment was prepared with"):
        latencies.latencies_of(latencies.DRAWN, file, digest)


def test_without_data_there_is_no_file(tmp_path: Path) -> None:
    assert latencies.find_file(None) == ""
    with pytest.raises(LocalError, match="leave --data out for a stand-in"):
        latencies.find_file(tmp_path)
    with pytest.raises(LocalError, match="'matrix' need the file"):
        latencies.latencies_of(latencies.MATRIX)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"other": SMALL}, "no array 'lat_ticks'"),
        ({"lat_ticks": SMALL[:2]}, "square matrix"),
        ({"lat_ticks": SMALL.astype(float)}, "whole ticks"),
        ({"lat_ticks": SMALL.astype(np.int64) * 1000}, "at most 16384"),
        ({"lat_ticks": SMALL * 0}, "a tick or more"),
        ({"lat_ticks": np.where(SMALL == 7, -2, SMALL)}, "a tick or more"),
        ({"lat_ticks": np.full((2, 2), -1)}, "a tick or more"),
        ({"lat_ticks": np.array([["a"]], object)}, "not a file of NumPy arrays"),
    ],
)
def test_what_is_no_matrix_of_latencies_is_refused(data: Path, arrays: dict[str, Any], says: str) -> None:
    np.savez_compressed(data / latencies.FILE, **arrays)
    with pytest.raises(LocalError, match=says):
        latencies.file_arguments(latencies.find_file(data))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no archive at all"])
def test_a_mangled_file_is_refused(data: Path, content: bytes) -> None:
    (data / latencies.FILE).write_bytes(content)
    with pytest.raises(LocalError, match="not a file of NumPy arrays"):
        latencies.file_arguments(latencies.find_file(data))


def test_percentiles_make_latencies_that_are_straight_between_them() -> None:
    values = made.of_percentiles([(0.0, 10.0), (0.5, 20.0), (1.0, 120.0)]).values
    assert np.quantile(values, [0.25, 0.5, 0.75]) == pytest.approx([15, 20, 70], abs=1)
    assert values.min() == 10 and values.max() == 120
    assert set(made.of_percentiles([(0.5, 7.0)]).values.tolist()) == {7}


@pytest.mark.parametrize(
    "knots",
    [
        [(0.5, 9.0), (0.5, 10.0)],
        [(0.5, 9.0), (0.9, 8.0)],
        [(0.5, 0.0)],
        [(1.5, 9.0)],
        [(0.5, 1e6)],
        [(float("nan"), 9.0)],
    ],
)
def test_percentiles_that_do_not_rise_are_refused(knots: list[tuple[float, float]]) -> None:
    with pytest.raises(LocalError, match="must rise"):
        made.of_percentiles(knots)
