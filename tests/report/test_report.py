"""The report of a sweep: whole in one file, safe, readable on a phone and on paper, and always the same."""

import re
import shutil
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ordercast.core import LocalError, RemoteError
from ordercast.pipeline import schemas
from ordercast.pipeline.figures import figure_rows
from ordercast.pipeline.schemas import RUNS
from ordercast.report.build import report
from ordercast.report.figures import Axis, Curve, Figure, Point
from tests.report.report_tables import EVIL, claim_tables, run_row, sweep_tables, write

VOID = {"meta", "path", "use", "rect", "wbr"}
NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


class Reader(HTMLParser):
    """Collects what a page holds, and that every element is closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("sweep")
    sweep_tables(out)
    return report(out).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reader(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def test_it_is_well_formed(reader: Reader) -> None:
    assert reader.open == []
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(ids) > 10
    assert len(ids) == len(set(ids))


def test_it_needs_no_other_file(text: str, reader: Reader) -> None:
    assert {*re.findall(r"https?://[^\s\"'<)]+", text)} <= NAMESPACES
    assert not {tag for tag, _ in reader.tags} & {"script", "link", "img", "iframe", "object", "embed"}
    assert "@import" not in text
    references = [
        value
        for _, attributes in reader.tags
        for name, value in attributes.items()
        if name.endswith(("href", "src"))
    ]
    assert all((value or "").startswith("#") for value in references)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))


def test_references_within_figures_lead_somewhere(text: str) -> None:
    used = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'xlink:href="#([^"]+)"', text))
    assert used
    assert used <= set(re.findall(r'\bid="([^"]+)"', text))


def test_what_comes_from_data_is_escaped(text: str, reader: Reader) -> None:
    assert "<script" not in text
    said = "".join(reader.words)
    # As a parameter, as the error of a failed run, as the detail of a counterexample, and in a figure.
    assert said.count(EVIL) >= 4
    assert EVIL in unescape("".join(re.findall(r'aria-label="([^"]*)"', text)))


def test_it_fits_a_phone_and_a_page(text: str, reader: Reader) -> None:
    meta = [attributes for tag, attributes in reader.tags if tag == "meta"]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in meta
    assert "@media print" in text
    assert "break-inside: avoid" in text
    tables = sum(tag == "table" for tag, _ in reader.tags)
    boxes = [attributes for tag, attributes in reader.tags if attributes.get("class") == "scroll"]
    assert tables == len(boxes) == 5
    for svg in (attributes for tag, attributes in reader.tags if tag == "svg"):
        assert float((svg["viewbox"] or "").split()[2]) <= 4.5 * 72
        assert svg["role"] == "img"


def test_it_tells_the_whole_sweep(reader: Reader) -> None:
    said = " ".join(" ".join(reader.words).split())
    for words in (
        "Sweep of 5 runs",
        "3 kept every promise",
        "1 broke a promise",
        "1 failed",
        "loss 0.1",
        "2 ms",
        "1,234",
        "total order violated in wild-2, seed 2; found by columns and oracles",
        "ordercast replay traces/wild-2 --no-packets",
        "messages 6#3",
        "Latency of calm",
        "Throughput of wild over time",
        "crash the hosts it names 1 1 90 ms 90 ms 80 ms",
        "crash the others 2 1 40 ms 40 ms 39 ms",
    ):
        assert words in said or words.replace(" ", "") in said.replace(" ", ""), words


def test_it_tells_where_the_judges_differ(reader: Reader) -> None:
    said = "".join("".join(reader.words).split())
    # Of calm both kept; of wild one violated by both, and one that only the columns object to.
    assert "calm2000" in said
    assert "wild0110" in said
    assert "wild-3kepttotalorder" in said


def test_the_same_tables_give_the_same_bytes(tmp_path: Path) -> None:
    texts = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        sweep_tables(tmp_path / name)
        texts.append(report(tmp_path / name).read_bytes())
    assert texts[0] == texts[1]


def test_a_sweep_without_metrics_has_a_report_too(tmp_path: Path) -> None:
    write(tmp_path, "runs", RUNS, [run_row(0, "calm", "{}")])
    text = report(tmp_path).read_text()
    assert "Runs by point" in text
    assert "<svg" not in text


def test_a_folder_without_tables_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="neither a table 'runs' nor 'claims'"):
        report(tmp_path)
    with pytest.raises(LocalError, match="no such folder"):
        report(tmp_path / "absent")


def test_a_broken_table_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "tables" / "runs"
    folder.mkdir(parents=True)
    (folder / "part-00000.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(RemoteError, match="tables/runs: not a readable table"):
        report(tmp_path)


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("reproduction")
    claim_tables(out)
    return report(out).read_text(encoding="utf-8")


def test_a_reproduction_shows_every_claim_with_its_verdict(claims: str) -> None:
    reader = Reader()
    reader.feed(claims)
    assert reader.open == []
    said = " ".join("".join(f"{word} " for word in reader.words).split())
    assert "Of the selected claims: 1 met , 1 missed , 1 not measured ." in said
    assert "toy. one met 0.55 0.5 0.4 to 0.6 3 12.3 a ratio (Fig 1; as it was) fine" in said
    assert "toy. two missed 0.7 0.5 0.4 to 0.6 3 12.3" in said
    assert (
        "not measured \u2013 0.5 0.4 to 0.6 \u2013 \u2013 a ratio (Fig 1; as it was) no experiment yet"
        in said
    )
    assert "A paper, Figure 1 7 3" in said
    assert "clients 3 1 1 0 0 10 30" in said  # the protocol has a column of its own


def test_a_reproduction_draws_the_figures_of_its_experiments_only(claims: str) -> None:
    assert claims.count("<svg") == 1
    assert ">by the paper</text>" in claims
    assert 'aria-label="The toy: y against' in claims


def distribution(figure: str, label: str, beside: str = "", **numbers: float) -> Figure:
    return Figure(
        id=figure,
        title=f"The title of {figure}",
        caption="As it was.",
        x=Axis(label="delay (ticks)"),
        y=Axis(label="share"),
        curves=(Curve(label=label, points=(Point(1, 0), Point(2, 1)), numbers=numbers),),
        beside=beside,
    )


def test_figures_that_belong_together_stand_side_by_side_with_numbers(tmp_path: Path) -> None:
    claim_tables(tmp_path)
    shutil.rmtree(tmp_path / "tables" / "figures")
    figures = [
        distribution("one", "alone"),
        distribution("two", EVIL, "pair", p5=125.0, p50=1626.0),
        distribution("three", "later", "pair", p5=54.0, p50=848.5),
    ]
    write(tmp_path, "figures", schemas.FIGURES, figure_rows([("toy", figure) for figure in figures]))
    text = report(tmp_path).read_text(encoding="utf-8")
    alone, together = text.split('<div class="beside">')
    assert alone.count("<svg") == 1 and "<th>curve</th>" not in alone
    assert together.count("<svg") == 2
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    said = " ".join("".join(f"{word} " for word in reader.words).split())
    assert f"curve p5 p50 {EVIL} 125 1,626" in said
    assert "curve p5 p50 later 54 848.5" in said


def test_what_comes_from_experiments_is_escaped(claims: str) -> None:
    assert "<script" not in claims
    # A note, an id (with places to break it), a title, a caption, an axis.
    assert unescape(claims.replace("<wbr>", "")).count(EVIL) >= 5
