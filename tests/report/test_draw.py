"""Figures are drawn the same each time, can be told apart without colour, and are described in words."""

import re

import msgspec
import pytest

from ordercast.report.draw import draw_svg, tick_text
from ordercast.report.figures import Axis, Curve, Figure, Point, Reference, over_seeds


def figure(**changes: object) -> Figure:
    curves = tuple(
        Curve(
            label=f"curve {n}", points=over_seeds([(1.0, [n, n + 1.0]), (10.0, [n + 2.0, n + 3.0, n + 9.0])])
        )
        for n in range(3)
    )
    content = Figure(
        id="two-a",
        title="Throughput and latency",
        caption="Like Figure 2a.",
        x=Axis(label="throughput (k/s)", scale="log"),
        y=Axis(label="latency (us)", low=0.0),
        curves=curves,
        references=(Reference(label="paper: 0.61", y=0.61), Reference(label="paper", x=2.0, y=3.0)),
    )
    return msgspec.structs.replace(content, **changes)


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert draw_svg(figure()) == draw_svg(figure())
    assert draw_svg(figure()) != draw_svg(figure(references=()))


def test_there_is_no_date_and_no_link_in_it() -> None:
    svg = draw_svg(figure())
    assert svg.startswith("<svg ")
    assert "<metadata" not in svg
    assert not re.search(r"\b20\d\d-\d\d-\d\d", svg)
    assert set(re.findall(r"https?://[^\"]+", svg)) == {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_text_stays_text() -> None:
    svg = draw_svg(figure(title="not drawn", x=Axis(label="cost in $ and $")))
    assert ">cost in $ and $</text>" in svg
    assert ">curve 2</text>" in svg
    assert ">paper: 0.61</text>" in svg


def test_curves_differ_in_colour_line_and_marker() -> None:
    curves = tuple(Curve(label=f"{n}", points=(Point(1, n), Point(2, n))) for n in range(10))
    svg = draw_svg(figure(curves=curves, references=()))
    lines = re.findall(r'<g id="two-a-line2d_\d+">\s*<path d="[^"]*" clip-path="[^"]*" style="([^"]*)"', svg)
    looks = [style for style in lines if "stroke-width: 1.5" in style]
    assert len(looks) == len(set(looks)) == 10


def test_two_figures_share_no_names() -> None:
    one, other = (set(re.findall(r'\bid="([^"]+)"', draw_svg(figure(id=name)))) for name in ("one", "other"))
    assert one
    assert not one & other


def test_a_band_is_drawn_only_where_seeds_differ() -> None:
    alone = tuple(Curve(label="one seed", points=over_seeds([(1.0, [2.0]), (2.0, [3.0])])) for _ in range(1))
    assert "opacity: 0.18" in draw_svg(figure())
    assert "opacity: 0.18" not in draw_svg(figure(curves=alone))


def test_over_seeds_takes_the_median_and_the_extremes() -> None:
    assert over_seeds([(1.0, [5.0, 1.0, 3.0]), (2.0, [4.0, 2.0])]) == (Point(1, 3, 1, 5), Point(2, 3, 2, 4))


def test_the_description_names_every_curve_and_reference() -> None:
    words = figure().description()
    assert "Throughput and latency: latency (us) against throughput (k/s)." in words
    assert "curve 1: from (1, 1.5) to (10, 4)." in words
    assert "paper: 0.61: y = 0.61." in words
    assert figure(curves=(Curve(label="none", points=()),)).description().count("no points") == 1


def test_a_figure_survives_its_table() -> None:
    assert msgspec.json.decode(msgspec.json.encode(figure()), type=Figure) == figure()


@pytest.mark.parametrize(
    ("value", "largest", "text"),
    [
        (0.05, 1.0, "0.05"),
        (0, 5e4, "0"),
        (500, 5e4, "0.5k"),
        (1200, 1300, "1200"),
        (3e6, 2e7, "3M"),
        (12_500, None, "12.5k"),
        (10, None, "10"),
    ],
)
def test_ticks_are_short(value: float, largest: float | None, text: str) -> None:
    assert tick_text(value, largest) == text


def test_a_distribution_is_drawn_in_steps() -> None:
    points = (Point(1, 1), Point(2, 5))
    step, straight = (
        draw_svg(figure(curves=(Curve(label="c", points=points, steps=steps),), references=()))
        for steps in (True, False)
    )
    # One corner more: along to the next point first, and then up to it.
    path = re.compile(r'<path d="(M [^"]*)" clip-path="[^"]*" style="fill: none; stroke: #0072b2')
    corners = [
        len(re.findall(r"[ML]", found.group(1))) for svg in (step, straight) if (found := path.search(svg))
    ]
    assert corners == [3, 2]


def test_a_curve_without_points_can_be_drawn() -> None:
    assert "<svg" in draw_svg(figure(curves=(Curve(label="none", points=()),), references=()))
