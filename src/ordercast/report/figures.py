"""A figure as data: axes, curves with bands over seeds, and the values that a paper printed.

Experiments make figures, tables keep them as JSON, and `draw.py` draws them. Nothing here needs a
plotting library.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """One axis; its label names the unit."""

    label: str
    scale: Literal["linear", "log"] = "linear"
    low: float | None = None
    """Where it begins and ends; by default where the data do."""
    high: float | None = None
    whole: bool = False
    """Only whole numbers mean something."""


class Point(msgspec.Struct, frozen=True):
    """One value, with the band over seeds around it if there are several."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Points joined by a line, in the order given."""

    label: str
    points: tuple[Point, ...]
    marks: bool = True
    """A marker at each point; without, for curves of very many points."""
    steps: bool = False
    """Level from each point to the next, as distributions are, instead of straight from point to point."""
    numbers: dict[str, float] = {}
    """Numbers of the curve by name, such as percentiles, for the table below the figure."""


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """What the paper says: a point, or a line where only one of the two is given."""

    label: str
    x: float | None = None
    y: float | None = None


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A moment at which something happened that a curve over time may show."""

    x: float
    label: str
    """Short, for it stands above the line: a number that a table explains."""
    kind: Literal["crash", "return", "configuration"]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a report."""

    id: str
    """Words joined by hyphens; unique in a report."""
    title: str
    caption: str
    """Which paper and figure it follows, and the setup."""
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    references: tuple[Reference, ...] = ()
    marks: tuple[Mark, ...] = ()
    beside: str = ""
    """Figures that follow each other and have the same words here stand side by side."""

    def description(self) -> str:
        """The figure in words, for those who cannot see it."""
        parts = [f"{self.title}: {self.y.label} against {self.x.label}."]
        for curve in self.curves:
            if curve.points:
                first, last = curve.points[0], curve.points[-1]
                parts.append(f"{curve.label}: from {_place(first)} to {_place(last)}.")
            else:
                parts.append(f"{curve.label}: no points.")
        for reference in self.references:
            given = {"x": reference.x, "y": reference.y}
            where = ", ".join(f"{name} = {value:.4g}" for name, value in given.items() if value is not None)
            parts.append(f"{reference.label}: {where}.")
        parts += [f"{mark.kind} {mark.label} at {mark.x:.4g}." for mark in self.marks]
        return " ".join(parts)


def _place(point: Point) -> str:
    return f"({point.x:.4g}, {point.y:.4g})"


def over_seeds(values: Iterable[tuple[float, Sequence[float]]]) -> tuple[Point, ...]:
    """Points at the median over seeds, with the band from the smallest to the largest value."""
    points = []
    for x, ys in values:
        ordered = sorted(ys)
        middle = len(ordered) // 2
        median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        points.append(Point(x, median, ordered[0], ordered[-1]))
    return tuple(points)
