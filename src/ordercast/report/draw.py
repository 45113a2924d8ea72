"""Draws figures as SVG to be set into a page: the same figure gives the same bytes, anywhere.

Sizes are chosen for a phone: at a width of 360 pixels the text is still about nine pixels high. Curves
differ in colour, in marker and in line style, so that they can be told apart in black and white. The
colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart.
"""

import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from ordercast.report.figures import Axis, Curve, Figure, Mark, Reference

WIDTH_IN, HEIGHT_IN = 4.4, 3.0
_LEGEND_ROW_IN = 0.17

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 3)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "x")
_REFERENCE: dict[str, Any] = {"color": "#555555", "linewidth": 0.9, "linestyle": (0, (2, 2)), "zorder": 1}

_MARKS: dict[str, dict[str, Any]] = {
    "crash": {"color": "#a11212", "linewidth": 1.1, "linestyle": "-", "zorder": 1},
    "return": {"color": "#00603f", "linewidth": 1.1, "linestyle": (0, (5, 2)), "zorder": 1},
    "configuration": {"color": "#595959", "linewidth": 1.1, "linestyle": (0, (1, 2)), "zorder": 1},
}
_MARK_SHARE = 0.03
"""Labels of marks that are closer than this share of the axis stand together."""

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "path.simplify": True,
    # Text stays text: it can be read aloud, searched and copied.
    "svg.fonttype": "none",
    "text.parse_math": False,
}


def draw_svg(figure: Figure) -> str:
    """The figure as an SVG element, with its description for screen readers."""
    entries = len(figure.curves) + len(figure.references) + len({mark.kind for mark in figure.marks})
    with mpl.rc_context({**_STYLE, "svg.hashsalt": figure.id}):
        canvas = Canvas(figsize=(WIDTH_IN, HEIGHT_IN + _LEGEND_ROW_IN * entries), layout="constrained")
        FigureCanvasSVG(canvas)
        axes = canvas.add_subplot()
        for index, curve in enumerate(figure.curves):
            _draw_curve(axes, curve, index)
        for index, reference in enumerate(figure.references):
            _draw_reference(axes, reference, index)
        _set_axis(axes, "x", figure.x)
        _set_axis(axes, "y", figure.y)
        _draw_marks(axes, figure.marks)
        if entries:
            canvas.legend(loc="outside lower left", frameon=False, handlelength=2.6, borderpad=0.1)
        text = io.StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None})
    return _element(text.getvalue(), figure)


def _draw_curve(axes: Axes, curve: Curve, index: int) -> None:
    colour = _COLOURS[index % len(_COLOURS)]
    xs, ys = [point.x for point in curve.points], [point.y for point in curve.points]
    # The second round of colours has other lines and markers than the first.
    turn = index + index // len(_COLOURS)
    marker = _MARKERS[turn % len(_MARKERS)] if curve.marks else None
    line = _LINES[turn % len(_LINES)]
    look: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker}
    axes.plot(
        xs, ys, drawstyle="steps-post" if curve.steps else "default", label=curve.label, zorder=3, **look
    )
    lows = [point.y if point.low is None else point.low for point in curve.points]
    highs = [point.y if point.high is None else point.high for point in curve.points]
    if lows != ys or highs != ys:
        axes.fill_between(xs, lows, highs, color=colour, alpha=0.18, linewidth=0, zorder=2)


def _draw_reference(axes: Axes, reference: Reference, index: int) -> None:
    label = reference.label
    if reference.x is not None and reference.y is not None:
        marker = ("*", "p", "h", "8")[index % 4]
        shown: dict[str, Any] = {
            "color": "#000000",
            "markerfacecolor": "#ffffff",
            "linestyle": "none",
            "markersize": 9,
        }
        axes.plot([reference.x], [reference.y], marker=marker, label=label, zorder=4, **shown)
    elif reference.x is not None:
        axes.axvline(reference.x, label=label, **_REFERENCE)
    elif reference.y is not None:
        axes.axhline(reference.y, label=label, **_REFERENCE)


def _draw_marks(axes: Axes, marks: Sequence[Mark]) -> None:
    """A line for each mark, named in the legend once for its kind, with its label above."""
    low, high = axes.get_xlim()
    for place, mark in enumerate(marks):
        new = mark.kind not in {before.kind for before in marks[:place]}
        axes.axvline(mark.x, label=mark.kind if new else None, **_MARKS[mark.kind])
    axes.set_xlim(low, high)
    for x, text in mark_labels(marks, _MARK_SHARE * (high - low)):
        above = axes.get_xaxis_transform()
        axes.text(x, 1.01, text, transform=above, ha="center", va="bottom", fontsize=7, color="#333333")


def mark_labels(marks: Sequence[Mark], apart: float) -> list[tuple[float, str]]:
    """Where labels stand: those of marks that are too close to each other as one, at their first."""
    found: list[tuple[float, list[str]]] = []
    for mark in sorted(marks, key=lambda mark: mark.x):
        if found and mark.x - found[-1][0] < apart * len(",".join([*found[-1][1], mark.label])):
            found[-1][1].append(mark.label)
        else:
            found.append((mark.x, [mark.label]))
    return [(x, ",".join(labels)) for x, labels in found]


def _set_axis(axes: Axes, name: str, axis: Axis) -> None:
    getattr(axes, f"set_{name}label")(axis.label)
    getattr(axes, f"set_{name}scale")(axis.scale)
    getattr(axes, f"set_{name}lim")(axis.low, axis.high)
    where = getattr(axes, f"{name}axis")
    low, high = sorted(getattr(axes, f"get_{name}lim")())
    # On a linear axis all numbers have the letter of the largest; on a logarithmic one each has its own.
    largest = high if axis.scale == "linear" else None
    where.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value, largest)))
    if axis.whole:
        where.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if axis.scale == "log":
        if low > 0 and high / low < 300:  # a narrow range has too few powers of ten to read it by
            where.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        where.set_minor_formatter(NullFormatter())


def tick_text(value: float, largest: float | None = None) -> str:
    """A number as short as it can be read: thousands and millions by the letter that fits the largest."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value and abs(value if largest is None else largest) >= 10 * unit:
            return f"{value / unit:.4g}{letter}"
    return f"{value:.4g}"


def _element(svg: str, figure: Figure) -> str:
    """Only the element itself, with names of its own, fit to stand beside others in a page."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    prefix = escape(figure.id, quote=True)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = svg.replace("url(#", f"url(#{prefix}-").replace('xlink:href="#', f'xlink:href="#{prefix}-')
    described = escape(figure.description(), quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{described}" ', 1)
