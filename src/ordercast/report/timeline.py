"""The figures of one run over time: submissions and deliveries, latency, drops, configurations.

If a figure has nothing to show, a sentence replaces it.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from ordercast.core import MILLISECOND, SECOND
from ordercast.report.figures import Axis, Curve, Figure, Mark, Point
from ordercast.report.page import Html, element
from ordercast.report.run_rows import DELIVERIES, RunRows
from ordercast.report.runs import CURVES_MAX, distribution_points, figure_html

LEAST_MS = 5e-4
"""A latency of 0 has no place on a logarithmic axis."""
_QUANTILES = {"p50": "p50_ns", "p99": "p99_ns", "longest": "max_ns"}


def timeline(rows: RunRows, number: int, marks: Sequence[Mark]) -> list[Html]:
    """All figures of a run, the `number`-th of its page."""
    makers = (_rates, _receivers, _latency, _distribution, _drops, _configurations)
    return [make(rows, f"run-{number}", tuple(marks)) for make in makers]


def _rates(rows: RunRows, name: str, marks: tuple[Mark, ...]) -> Html:
    submitted = rows.counts(("submit",))
    delivered = [rows.counts(DELIVERIES, node) for node in rows.receivers]
    curves = []
    if submitted.any():
        curves.append(_over_time("submitted", rows, [submitted]))
    if any(each.any() for each in delivered):
        several = len(delivered) > 1
        label = "delivered by a receiver: median, smallest to largest" if several else "delivered"
        curves.append(_over_time(label, rows, delivered))
    caption = f"In windows of {_window(rows)}."
    if len({group for row in rows.nodes.values() for group in row["groups"]}) > 1:
        caption += " Receivers of different groups deliver different messages."
    return _figure(
        rows, f"{name}-rates", "Messages submitted and delivered", caption, "messages/s", curves, marks
    )


def _receivers(rows: RunRows, name: str, marks: tuple[Mark, ...]) -> Html:
    """Which receiver delivered when; the figure before says all if there is only one."""
    receivers = rows.receivers
    if len(receivers) < 2:
        return Html("")
    chosen = _spread(receivers)
    curves = [_over_time(rows.nodes[node]["name"], rows, [rows.counts(DELIVERIES, node)]) for node in chosen]
    some = f" {len(chosen)} of {len(receivers)} receivers." if len(chosen) < len(receivers) else ""
    caption = f"In windows of {_window(rows)}.{some}"
    return _figure(rows, f"{name}-receivers", "Deliveries by receiver", caption, "messages/s", curves, marks)


def _latency(rows: RunRows, name: str, marks: tuple[Mark, ...]) -> Html:
    curves = [
        Curve(
            label=label,
            points=tuple(
                Point(rows.time.of(row["start_ns"] + row["window_ns"] / 2), _milliseconds(row[column]))
                for row in rows.windows
            ),
            marks=False,
        )
        for label, column in _QUANTILES.items()
        if rows.windows
    ]
    caption = "From submission to delivery, for all deliveries in each window."
    y = Axis(label="latency (ms)", scale="log")
    return _figure(rows, f"{name}-latency", "Latency over time", caption, y, curves, marks)


def _distribution(rows: RunRows, name: str, marks: tuple[Mark, ...]) -> Html:
    title = "Distribution of latency"
    if not len(rows.shares):
        return _nothing(title, "nothing was delivered.")
    xs, ys = (rows.shares[column].to_numpy() for column in ("latency_ns", "share"))
    figure = Figure(
        id=f"{name}-distribution",
        title=title,
        caption="Share of deliveries, at all receivers, with at most this latency.",
        x=Axis(label="latency from submission to delivery (ms)", scale="log"),
        y=Axis(label="share of deliveries", low=0.0, high=1.02),
        curves=(Curve(label="all receivers", points=distribution_points(xs, ys), marks=False, steps=True),),
    )
    return figure_html(figure)


def _drops(rows: RunRows, name: str, marks: tuple[Mark, ...]) -> Html:
    counts = {node: rows.counts(("drop",), node) for node in rows.receivers}
    dropping = [node for node, each in counts.items() if each.any()]
    title = "Drop notifications"
    if not dropping:
        return _nothing(title, "there was none.")
    chosen = _spread(dropping)
    curves = [
        Curve(label=rows.nodes[node]["name"], points=_counted(rows, counts[node]), marks=False, steps=True)
        for node in chosen
    ]
    some = (
        f" {len(chosen)} of {len(dropping)} receivers that had some." if len(chosen) < len(dropping) else ""
    )
    caption = f"Notifications of messages that will not come, in windows of {_window(rows)}.{some}"
    return _figure(rows, f"{name}-drops", title, caption, "notifications per window", curves, marks)


def _configurations(rows: RunRows, name: str, marks: tuple[Mark, ...]) -> Html:
    title = "Configurations"
    views = [row for row in rows.changes if row["kind"] == "view"]
    if not views:
        return _nothing(title, "no view or configuration took effect.")
    nodes = _spread(sorted({row["node"] for row in views}))
    end = rows.time.of(rows.end_ns)
    curves = []
    for place, node in enumerate(nodes):
        # A little apart: otherwise only the last of those that agree would be seen.
        points = [
            Point(rows.time.of(row["time_ns"]), row["config"] + 0.05 * place)
            for row in views
            if row["node"] == node
        ]
        last = Point(end, points[-1].y)
        curves.append(Curve(label=rows.nodes[node]["name"], points=(*points, last), steps=True))
    caption = "The number of the configuration in force at each node. Curves are drawn a little apart."
    y = Axis(label="configuration", low=0.0, whole=True)
    return _figure(rows, f"{name}-configurations", title, caption, y, curves, marks)


def _figure(
    rows: RunRows,
    name: str,
    title: str,
    caption: str,
    y: Axis | str,
    curves: Iterable[Curve],
    marks: tuple[Mark, ...],
) -> Html:
    """A figure over the time of the run, or a sentence if it has no curve."""
    held = tuple(curve for curve in curves if curve.points)
    if not held:
        return _nothing(title, "nothing to show.")
    named = " Numbers above the figure are those of the changes." if marks else ""
    figure = Figure(
        id=name,
        title=title,
        caption=caption + named,
        x=Axis(
            label=f"time since the start ({rows.time.unit})", low=0.0, high=1.02 * rows.time.of(rows.end_ns)
        ),
        y=Axis(label=y, low=0.0) if isinstance(y, str) else y,
        curves=held,
        marks=marks,
    )
    return figure_html(figure)


def _over_time(label: str, rows: RunRows, counts: Sequence[np.ndarray]) -> Curve:
    """Rates in the middle of each window: the median of several, with the band from the least to the most."""
    rates = np.array(counts) * (SECOND / rows.window_ns)
    # The last window is not a whole one, and says nothing of a rate.
    rates = rates[:, :-1] if rates.shape[1] > 2 else rates
    middle, low, high = np.median(rates, axis=0), rates.min(axis=0), rates.max(axis=0)
    points = tuple(
        Point(
            rows.time.of((place + 0.5) * rows.window_ns),
            float(middle[place]),
            float(low[place]),
            float(high[place]),
        )
        for place in range(rates.shape[1])
    )
    return Curve(label=label, points=points, marks=False)


def _counted(rows: RunRows, counts: np.ndarray) -> tuple[Point, ...]:
    """Counts from the beginning of each window to its end."""
    xs = [rows.time.of(place * rows.window_ns) for place in range(len(counts) + 1)]
    return tuple(Point(x, y) for x, y in zip(xs, [*counts.tolist(), 0.0], strict=True))


def _window(rows: RunRows) -> str:
    return f"{rows.time.of(rows.window_ns):.3g} {rows.time.unit}"


def _milliseconds(ns: int) -> float:
    return max(ns / MILLISECOND, LEAST_MS)


def _spread(nodes: list[int]) -> list[int]:
    """As many nodes as a figure can hold, from the first to the last."""
    if len(nodes) <= CURVES_MAX:
        return nodes
    return [nodes[round(place * (len(nodes) - 1) / (CURVES_MAX - 1))] for place in range(CURVES_MAX)]


def _nothing(title: str, why: str) -> Html:
    return element("p", element("b", title), f": {why}", kind="soft")
