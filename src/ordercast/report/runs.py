"""The sections of a report about what runs did: points, latencies, throughput over time."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core import MILLISECOND, SECOND, format_ns
from ordercast.report import summary
from ordercast.report.draw import draw_svg
from ordercast.report.figures import Axis, Curve, Figure, Point
from ordercast.report.page import Content, Html, element, join, section, table
from ordercast.report.stored_tables import StoredTables
from ordercast.report.summary import PointKey, by_point

CURVES_MAX = 6
"""More curves than that cannot be told apart in one figure."""
CURVE_POINTS_MAX = 150


def figure_html(figure: Figure) -> Html:
    """A figure with its caption below, and a table of the numbers of its curves if they have some."""
    caption = element("figcaption", element("b", figure.title), figure.caption)
    return element("figure", Html(draw_svg(figure)), caption, _numbers_html(figure))


def _numbers_html(figure: Figure) -> Html:
    """A row for each curve."""
    names = list(dict.fromkeys(name for curve in figure.curves for name in curve.numbers))
    if not names:
        return Html("")
    rows: list[list[Content]] = [
        [curve.label, *(_number(curve.numbers.get(name)) for name in names)] for curve in figure.curves
    ]
    return table(f"{figure.title}: {figure.x.label}", ["curve", *names], rows)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:,.6g}"


def count(number: int | None) -> str | None:
    """A number with its thousands set apart."""
    return None if number is None else f"{number:,}"


def duration(ns: float | None) -> str | None:
    """A time in the unit that a person would choose."""
    return None if ns is None else format_ns(round(ns), 3)


def plural(number: int, thing: str) -> str:
    """As one says it."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def head(tables: StoredTables) -> tuple[str, Html]:
    """What the report is about."""
    runs = tables.rows("runs")
    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    points, seeds = by_point(runs), {run["seed"] for run in runs}
    statuses = Counter(run["status"] for run in runs)
    events = sum(run["events"] or 0 for run in runs)
    ran = (
        f"{plural(len(runs), 'run')} of {', '.join(protocols) or 'nothing'}: {plural(len(points), 'point')} "
        f"with {plural(len(seeds), 'seed')}, {events:,} events."
    )
    return f"Sweep of {plural(len(runs), 'run')}", join([element("p", ran), verdicts_line(statuses)])


def verdicts_line(statuses: Counter[str]) -> Html:
    """How many runs kept their promises, and how many did not."""
    parts = []
    if statuses["kept"] or not statuses.total():
        parts.append(element("span", f"{statuses['kept']:,} kept every promise", kind="verdict good"))
    for status, text in (("violated", "broke a promise"), ("failed", "failed")):
        if statuses[status]:
            parts.append(element("span", f"{statuses[status]:,} {text}", kind="verdict bad"))
    return element("p", join(parts, ", "), ".")


def points(tables: StoredTables) -> Html:
    """A row for each protocol and set of parameters."""
    rows = []
    for point in summary.points(tables):
        broken: list[Content] = [_alarm(point.statuses["violated"]), _alarm(point.statuses["failed"])]
        rate = None if point.messages_per_s is None else round(point.messages_per_s)
        rows.append(
            [point.key.protocol, point.key.text(), count(point.runs), count(point.statuses["kept"]), *broken]
            + [count(point.submitted), count(point.delivered)]
            + [duration(ns) for ns in (point.p50_ns, point.p99_ns, point.max_ns)]
            + [count(rate)]
        )
    if not rows:
        return Html("")
    heads = ["protocol", "parameters", "runs", "kept", "violated", "failed", "submitted", "delivered"]
    heads += ["p50", "p99", "max", "messages/s"]
    note = (
        "Latency is from submission to delivery, over all receivers and seeds. Throughput is the median over "
        "seeds of the messages delivered per second, without the first and the last fifth of each run."
    )
    return section(
        "Runs by point", table("Runs by point", heads, rows, ["parameters"]), element("p", note, kind="soft")
    )


def _alarm(number: int) -> Content:
    return element("b", f"{number:,}", kind="bad") if number else "0"


def latencies(tables: StoredTables) -> Html:
    """The distribution of latency, a figure a protocol."""
    shares = tables.table("point_distribution") if tables.has("point_distribution") else None
    if shares is None:
        return Html("")
    found = []
    for protocol, keys in _by_protocol(tables).items():
        chosen = _spread(keys)
        curves = []
        for key in chosen:
            mine = shares.filter(
                pc.and_(
                    pc.equal(shares["protocol"], protocol), pc.equal(shares["parameters"], key.parameters)
                )
            )
            xs, ys = (mine[name].to_numpy() for name in ("latency_ns", "share"))
            if len(xs):
                curves.append(
                    Curve(label=key.text(), points=distribution_points(xs, ys), marks=False, steps=True)
                )
        if curves:
            caption = f"Share of deliveries with at most this latency, all seeds and receivers.{_some(keys)}"
            figure = Figure(
                id=f"latency-{protocol}",
                title=f"Latency of {protocol}",
                caption=caption,
                x=Axis(label="latency from submission to delivery (ms)", scale="log"),
                y=Axis(label="share of deliveries", low=0.0, high=1.02),
                curves=tuple(curves),
            )
            found.append(figure_html(figure))
    return section("Latency distributions", *found)


def distribution_points(latencies: np.ndarray, shares: np.ndarray) -> tuple[Point, ...]:
    """Some points of a distribution, from the first to the last, on an axis of milliseconds."""
    # A latency of 0 has no place on a logarithmic axis; half a microsecond is below everything modelled.
    xs = np.maximum(latencies, 500) / MILLISECOND
    chosen = np.unique(np.linspace(0, len(xs) - 1, min(len(xs), CURVE_POINTS_MAX)).round().astype(int))
    first = Point(float(xs[0]), 0.0)
    return (first, *(Point(float(xs[index]), float(shares[index])) for index in chosen))


def throughputs(tables: StoredTables) -> Html:
    """Deliveries over time, a figure a protocol."""
    if not tables.has("throughput"):
        return Html("")
    windows = tables.table("throughput")
    runs_of = by_point(tables.rows("runs"))
    found = []
    for protocol, keys in _by_protocol(tables).items():
        chosen = _spread(keys)
        curves = [
            Curve(label=key.text(), points=series, marks=False)
            for key in chosen
            if (series := _over_time(windows, [run["run"] for run in runs_of[key]]))
        ]
        if curves:
            caption = (
                "Messages delivered for the first time, per second. Lines: median over seeds; bands: from "
                f"the smallest to the largest value.{_some(keys)}"
            )
            figure = Figure(
                id=f"throughput-{protocol}",
                title=f"Throughput of {protocol} over time",
                caption=caption,
                x=Axis(label="time (ms)"),
                y=Axis(label="messages delivered per second", low=0.0),
                curves=tuple(curves),
            )
            found.append(figure_html(figure))
    return section("Throughput over time", *found)


def _over_time(windows: pa.Table, runs: Sequence[str]) -> tuple[Point, ...]:
    """One curve for the runs of a point, in windows twice as long as the longest that one of them has."""
    mine = windows.filter(pc.is_in(windows["run"], pa.array(runs, pa.string())))
    if not len(mine):
        return ()
    starts, lengths, messages = (mine[name].to_numpy() for name in ("start_ns", "window_ns", "messages"))
    codes = mine["run"].combine_chunks().dictionary_encode().indices.to_numpy()
    length = 2 * int(lengths.max())
    index = starts // length
    totals = np.zeros((codes.max() + 1, index.max() + 1))
    np.add.at(totals, (codes, index), messages)
    ends = np.zeros(len(totals), int)
    np.maximum.at(ends, codes, index)
    points = []
    for place in range(totals.shape[1]):
        # The last window of a run is not a whole one, and says nothing of its rate.
        rates = totals[(ends > place) | (ends == 0), place] * (SECOND / length)
        if len(rates):
            middle, low, high = float(np.median(rates)), float(rates.min()), float(rates.max())
            points.append(Point((place + 0.5) * length / MILLISECOND, middle, low, high))
    return tuple(points)


def _by_protocol(tables: StoredTables) -> dict[str, list[PointKey]]:
    found: dict[str, list[PointKey]] = {}
    for key in by_point(tables.rows("runs")):
        found.setdefault(key.protocol, []).append(key)
    return found


def _spread(keys: list[PointKey]) -> list[PointKey]:
    """As many points as a figure can hold, from the first to the last."""
    if len(keys) <= CURVES_MAX:
        return keys
    return [keys[round(place * (len(keys) - 1) / (CURVES_MAX - 1))] for place in range(CURVES_MAX)]


def _some(keys: list[PointKey]) -> str:
    return f" {CURVES_MAX} of {len(keys)} points." if len(keys) > CURVES_MAX else ""
