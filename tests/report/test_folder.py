"""The report of a folder of runs: every run over time, with its crashes, and what could not be said."""

from html import unescape

import pytest

from ordercast.report.build import report
from ordercast.report.draw import draw_svg, mark_labels
from ordercast.report.figures import Axis, Curve, Figure, Mark, Point
from tests.report.report_tables import EVIL, folder_tables
from tests.report.test_report import Reader


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("folder")
    folder_tables(out)
    return report(out).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def said(text: str) -> str:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(ids) == len(set(ids)) > 10
    return " ".join(" ".join(reader.words).split())


def test_every_run_is_in_the_table_with_its_verdict(said: str) -> None:
    for words in (
        "Report on 3 runs",
        "1 kept every promise , 1 broke a promise , 1 failed",
        "calm-0 calm live 2023-11-14 22:13:20 8 s broken no",
        "Not complete: calm-0.",
        "cut off",
        "total order violated in calm-0",
    ):
        assert words in said
    assert said.count(EVIL) >= 2, "the run that could not be read is in the table and among the failures"


def test_times_of_counterexamples_count_from_the_start(said: str) -> None:
    assert "times 5 s" in said
    assert "ordercast replay" not in said, "a live run does not happen again"


def test_changes_are_numbered_and_marked(text: str, said: str) -> None:
    for words in (
        "1 after 0.000 s sequencer-0 (host 2) crashed; it records no events",
        "2 3.000 s receiver-1 (host 1) crashed",
        "3 3.500 s configuration 4 of group 0: issuer 7 removed; members 0, 1 2 2.5 s",
        "4 6.000 s receiver-1 (host 1) restarted without its saved state",
    ):
        assert words in said
    described = unescape(text)
    assert "crash 2 at 3. configuration 3 at 3.5. return 4 at 6." in described
    assert "crash 1 at" not in described, "nobody knows when it was"


def test_recoveries_are_told_for_the_host_itself_and_for_the_others(said: str) -> None:
    unknown = " ".join(3 * ["\N{EN DASH}"])
    assert f"after 0.000 s crash of sequencer-0 (host 2) 1 elsewhere {unknown} 90 ms" in said
    assert "3.000 s crash of receiver-1 (host 1) 1 elsewhere 1 of 1 40 ms 40 ms 39 ms" in said
    assert "3.000 s crash of receiver-1 (host 1) 1 on its host 1 of 1 3.1 s 3.1 s 3.05 s" in said


def test_all_figures_of_a_run_are_there(text: str, said: str) -> None:
    for words in (
        "Messages submitted and delivered",
        "Deliveries by receiver",
        "Latency over time",
        "Distribution of latency",
        "Notifications of messages that will not come",
        "The number of the configuration in force",
        "receiver-1 1 1 0 0 ",
    ):
        assert words in said
    assert text.count("<svg") == 6, "the run in which nothing happened has none"


def test_a_figure_without_anything_to_show_says_so(said: str) -> None:
    idle = said[said.index("idle-1", said.index("receiver-1 1 1 0 0")) :]
    for words in (
        "Messages submitted and delivered : nothing to show.",
        "Distribution of latency : nothing was delivered.",
        "Drop notifications : there was none.",
        "Configurations : no view or configuration took effect.",
        "No changes: no crash, no restart, no new configuration.",
        "No crash and no other fault.",
    ):
        assert words in idle


def marks(*places: float) -> tuple[Mark, ...]:
    return tuple(Mark(x=x, label=str(number), kind="crash") for number, x in enumerate(places, 1))


def test_labels_of_marks_that_are_close_stand_together() -> None:
    assert mark_labels(marks(1.0, 1.5, 9.0), apart=0.3) == [(1.0, "1,2"), (9.0, "3")]
    assert mark_labels((), apart=0.3) == []


def test_a_kind_of_mark_is_in_the_legend_once() -> None:
    figure = Figure(
        id="marked",
        title="t",
        caption="c",
        x=Axis(label="x"),
        y=Axis(label="y", whole=True),
        curves=(Curve(label="curve", points=(Point(0, 1), Point(9, 3))),),
        marks=marks(2.0, 6.0),
    )
    svg = draw_svg(figure)
    assert svg.count(">crash</text>") == 1
    assert svg.count("stroke: #a11212") == 3, "two lines, and one in the legend"
    assert ">1.5</text>" not in svg and ">2.5</text>" not in svg, "only whole numbers mean something"
