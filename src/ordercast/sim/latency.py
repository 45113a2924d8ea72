"""Latency models: how long a packet takes from host to host if links are not the bottleneck.

Each model draws a delay in nanoseconds. A negative delay means that there is no path.
"""

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from zipfile import BadZipFile

import numpy as np

from ordercast.core import HostId, LocalError, Nanos

NO_PATH: Nanos = -1
Draw = Callable[[HostId, HostId, Random], Nanos]

# All that NumPy raises for a file that is cut off, damaged, or of another type.
_UNREADABLE = (
    OSError, ValueError, KeyError, IndexError, TypeError, OverflowError, EOFError, BadZipFile, zlib.error,
)  # fmt: skip


class Latency(ABC):
    """A distribution of one-way delay between two hosts."""

    @abstractmethod
    def draw(self, source: HostId, target: HostId, rng: Random) -> Nanos:
        """One delay, or `NO_PATH`."""


class Constant(Latency):
    """Always the same delay."""

    def __init__(self, delay_ns: Nanos) -> None:
        _require(delay_ns >= 0, f"a delay must be at least 0 ns, not {delay_ns} ns")
        self.delay_ns = delay_ns

    def draw(self, source: HostId, target: HostId, rng: Random) -> Nanos:
        """The constant."""
        return self.delay_ns


class Steady(Latency):
    """For each way, the first delay that another model drew; so nothing overtakes anything."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._delays: dict[tuple[HostId, HostId], Nanos] = {}

    def draw(self, source: HostId, target: HostId, rng: Random) -> Nanos:
        """The first delay of this way."""
        way = (source, target)
        if way not in self._delays:
            self._delays[way] = self._draw(source, target, rng)
        return self._delays[way]


class Uniform(Latency):
    """A delay drawn uniformly between two bounds."""

    def __init__(self, low_ns: Nanos, high_ns: Nanos) -> None:
        _require(0 <= low_ns <= high_ns, f"delays must have 0 <= low <= high, not {low_ns} to {high_ns} ns")
        self.low_ns = low_ns
        self._span = high_ns - low_ns + 1

    def draw(self, source: HostId, target: HostId, rng: Random) -> Nanos:
        """One delay between the bounds."""
        return self.low_ns + int(rng.random() * self._span)


class ShiftedChiSquare(Latency):
    """A minimum delay plus a scaled chi-square: the LAN and WAN model of the hybrid paper, section 3."""

    def __init__(self, mean_ns: Nanos, std_ns: Nanos, degrees: int = 4) -> None:
        _require(degrees >= 1, f"a chi-square needs at least 1 degree of freedom, not {degrees}")
        _require(std_ns >= 0, f"a standard deviation must be at least 0 ns, not {std_ns} ns")
        # A chi-square of k degrees has mean k and variance 2k.
        self._scale = std_ns / math.sqrt(2 * degrees)
        self._shift = mean_ns - self._scale * degrees
        self._shape = degrees / 2
        _require(
            self._shift >= 0, f"a mean of {mean_ns} ns is too small for a standard deviation of {std_ns} ns"
        )

    def draw(self, source: HostId, target: HostId, rng: Random) -> Nanos:
        """One delay, never below the shift."""
        return int(self._shift + self._scale * rng.gammavariate(self._shape, 2.0))


class Sites(Latency):
    """Hosts at sites: one model within a site, another one between sites."""

    def __init__(self, site_of: Mapping[HostId, int], near: Latency, far: Latency) -> None:
        self._site_of = site_of
        self._near = near
        self._far = far

    def draw(self, source: HostId, target: HostId, rng: Random) -> Nanos:
        """A delay of the model that fits the pair; a host without a site is a site of its own."""
        same = self._site_of.get(source, ~source) == self._site_of.get(target, ~target)
        return (self._near if same else self._far).draw(source, target, rng)


class Matrix(Latency):
    """Measured delays for each pair of hosts. A pair without a delay has no path, as in EpTO's own simulator.

    For hosts beyond the matrix, each pair gets one of the measured values.
    """

    def __init__(self, delays_ns: np.ndarray) -> None:
        shape = delays_ns.shape
        _require(
            len(shape) == 2 and shape[0] == shape[1], f"a latency matrix must be square, not of shape {shape}"
        )
        self._size = shape[0]
        self._rows: list[list[int]] = delays_ns.astype(np.int64).tolist()
        measured = delays_ns[~np.eye(self._size, dtype=bool) & (delays_ns >= 0)]
        _require(len(measured) > 0, "the latency matrix has no measured pair")
        self._measured: list[int] = np.sort(measured.astype(np.int64)).tolist()

    @classmethod
    def load(cls, path: Path, tick_ns: Nanos = 1_000_000, key: str = "") -> "Matrix":
        """Read a square matrix of ticks from .npy, .npz or comma-separated text; -1 is no path."""
        try:
            if path.suffix in (".npy", ".npz"):
                ticks = _array(path, key)
            else:
                lines = path.read_text(encoding="utf-8").split("\n")
                _require(any(lines), "it is empty")
                ticks = np.loadtxt(lines, delimiter=",", ndmin=2)
            ticks = ticks.astype(np.float64)
            _require(bool(np.isfinite(ticks).all()), "every delay must be a finite number; -1 means no path")
            return cls(np.where(ticks < 0, NO_PATH, ticks * tick_ns))
        except _UNREADABLE as error:
            raise LocalError(f"{path}: not a latency matrix: {error}") from error

    def draw(self, source: HostId, target: HostId, rng: Random) -> Nanos:
        """The measured delay of the pair."""
        if source < self._size and target < self._size:
            return self._rows[source][target]
        # A pair must always get the same value, whatever was drawn before: mix the two numbers.
        mixed = (source * 0x9E3779B97F4A7C15 + target * 0xC2B2AE3D27D4EB4F) & 0xFFFFFFFFFFFFFFFF
        mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        return self._measured[(mixed >> 32) % len(self._measured)]


class Graph(Latency):
    """Shortest paths over an undirected graph whose edges have lengths in nanoseconds."""

    def __init__(
        self, edges: Sequence[tuple[int, int, Nanos]], vertex_of: Mapping[HostId, int], local_ns: Nanos = 0
    ) -> None:
        self._neighbours: dict[int, list[tuple[int, Nanos]]] = {}
        for one, other, length in edges:
            _require(length >= 0, f"edge {one}-{other} has the negative length {length}")
            self._neighbours.setdefault(one, []).append((other, length))
            self._neighbours.setdefault(other, []).append((one, length))
        for host, vertex in vertex_of.items():
            _require(vertex in self._neighbours, f"host {host} is at vertex {vertex}, which has no edge")
        self._vertex_of = vertex_of
        self._local_ns = local_ns
        self._distances: dict[int, dict[int, Nanos]] = {}

    @classmethod
    def load(cls, path: Path, unit_ns: Nanos, hosts: int, seed: int) -> "Graph":
        """Read `edges` (u, v, length, ...) from an .npz and put hosts at vertices chosen by the seed."""
        try:
            table = _array(path, "edges")
            edges = [(int(u), int(v), round(float(length) * unit_ns)) for u, v, length in table[:, :3]]
            _require(bool(edges), "it has no edges")
        except _UNREADABLE as error:
            raise LocalError(f"{path}: not a graph: {error}") from error
        vertices = sorted({vertex for edge in edges for vertex in edge[:2]})
        chosen = Random(f"{seed}/graph").choices(vertices, k=hosts)
        return cls(edges, dict(enumerate(chosen)))

    def draw(self, source: HostId, target: HostId, rng: Random) -> Nanos:
        """The length of the shortest path."""
        return self.distance(source, target)

    def distance(self, source: HostId, target: HostId) -> Nanos:
        """Shortest-path delay between two hosts, or `NO_PATH`."""
        start, end = self._vertex_of[source], self._vertex_of[target]
        if start not in self._distances:
            self._distances[start] = self._shortest_from(start)
        found = self._distances[start].get(end, NO_PATH)
        return found if found < 0 else found + self._local_ns

    def _shortest_from(self, start: int) -> dict[int, Nanos]:
        distances: dict[int, Nanos] = {}
        frontier = [(0, start)]
        while frontier:
            distance, vertex = heappop(frontier)
            if vertex in distances:
                continue
            distances[vertex] = distance
            for neighbour, length in self._neighbours[vertex]:
                if neighbour not in distances:
                    heappush(frontier, (distance + length, neighbour))
        return distances


def _array(path: Path, key: str) -> np.ndarray:
    """The array of a .npy, or the one of that name (or the first) of an .npz."""
    with path.open("rb") as file:  # NumPy leaves a damaged file open
        found = np.load(file)
        if isinstance(found, np.ndarray):
            return found
        array: np.ndarray = found[key or found.files[0]]
        return array


def _require(holds: bool, complaint: str) -> None:
    if not holds:
        raise LocalError(complaint)
