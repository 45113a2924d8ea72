"""The numbers of EpTO's page, computed again, and its programs, run."""

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from ordercast.cli import run as run_command
from ordercast.core import MILLISECOND, Stamp
from ordercast.engines.epto.network import Latencies
from ordercast.engines.epto.run import run
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.types import Offsets
from ordercast.net.api.pending import Pending
from ordercast.protocols.epto.parameters import Parameters, parameters
from ordercast.protocols.epto.views import SHUFFLE, SPARE, cyclon_options

PAGE = (Path(__file__).parents[2] / "docs" / "protocols" / "epto.md").read_text()
CALM, ROUGH, WILD = (0.0, 0.0), (0.05, 0.01), (0.10, 0.10)
"""Loss and churn of the columns."""


def table(heading: str) -> list[list[str]]:
    """The rows below a line that begins so, without the rule."""
    lines = PAGE.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {heading}"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [row for row in rows if not set(row[0]) <= set("- ")]


def block(language: str, place: int) -> str:
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    return blocks[place]


def chosen(
    n: int, clock: Literal["logical", "global"], target: float, weather: tuple[float, float]
) -> Parameters:
    loss, churn = weather
    return parameters(n, loss=loss, churn=churn, drift=0.01, latency=MILLISECOND, clock=clock, target=target)


def test_fanouts_and_ttls_of_the_page_are_those_of_the_lemmas() -> None:
    rows = table("peers | K")[1:]
    assert [row[0] for row in rows] == ["10", "30", "100", "1,000", "10,000", "100,000", "1,000,000"]
    for row in rows:
        n = int(row[0].replace(",", ""))
        for weather, cell in zip((CALM, ROUGH, WILD), row[1:4], strict=True):
            found = [chosen(n, "logical", target, weather) for target in (1e-6, 1e-9)]
            assert {each.fanout for each in found} == {int(cell.removesuffix(" *"))}
            assert found[0].within_target
            assert found[1].within_target is not cell.endswith("*")
        columns = zip(("global", "logical", "global", "logical"), (1e-6, 1e-6, 1e-9, 1e-9), strict=True)
        ttls = [
            chosen(n, "global" if clock == "global" else "logical", target, CALM) for clock, target in columns
        ]
        assert [each.ttl for each in ttls] == [int(cell) for cell in row[4:]]


def rounds(latency: float, fanout: int = 17) -> tuple[float, float]:
    """Until an event is delivered, in the median, and until 99 % of first balls have come."""
    round_ticks = 100
    setup = Setup(processes=100, fanout=fanout, ttl=15, round_ticks=round_ticks)
    outcome = run(setup, Latencies.constant(round(latency * round_ticks)), arrivals=True, cores=1)
    assert outcome.missing.count == 0
    ticks = percentile(outcome.delays, 0.5), percentile(outcome.arrivals, 0.99)
    return ticks[0] / round_ticks, ticks[1] / round_ticks


def percentile(histogram: Offsets, share: float) -> int:
    return int(np.searchsorted(np.cumsum(histogram), share * histogram.sum()))


def test_ages_run_ahead_as_the_page_says() -> None:
    latencies, delivered, come = table("latency, in rounds")
    for latency, *said in zip(latencies[1:], delivered[1:], come[1:], strict=True):
        assert [f"{found:.1f}" for found in rounds(float(latency))] == said
    assert f"{rounds(0.01, fanout=99)[0]:.1f}" == "1.7"
    assert "With K = 99 and a latency of 0.01 rounds it is 1.7 rounds." in PAGE


def test_the_sizes_of_cyclon_are_those_of_the_page() -> None:
    assert f"A view has K + {SPARE} entries, {SHUFFLE} are exchanged, once a round" in PAGE
    options = cyclon_options("cyclon", 19, 125, 1)
    (taken,) = [row for row in table("entries, exchanged") if row[0].endswith("(taken)")]
    assert (
        taken[0]
        == f"{options.view}, {options.length}, {options.period_ns // 125}, {options.patience} (taken)"
    )


def test_the_engine_runs_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(block("python", 1), names)
    said = capsys.readouterr().out
    assert said.startswith("200 events, median delay ") and said.endswith(" ticks, 0 missing\n")
    assert {hole.cause for hole in names["outcome"].holes()} <= {row[0].strip("`") for row in table("cause")}


def test_a_program_sees_how_sure_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    class Group:
        def pending(self) -> list[Pending]:
            known = Pending(3 << 40 | 17, b"buy", 3, Stamp(7, 3), 0, 0.995, "round 3 of 45")
            return [known, known._replace(stable=0.5), known._replace(stable=None)]

    exec(block("python", 0), {"group": Group()})
    assert capsys.readouterr().out == "3#17 b'buy' round 3 of 45\n"


def test_the_command_that_chooses_works(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = re.findall(r"^ordercast (epto parameters .*)$", PAGE, flags=re.MULTILINE)
    assert run_command(line.split()) == 0
    said = capsys.readouterr().out
    assert "fanout  24" in said and "ttl     77" in said
    assert "That is a fanout of 24 and a TTL of 77." in PAGE
    (row,) = (row for row in table("peers | K") if row[0] == "10,000")
    assert (row[2], row[5]) == ("24", "77"), "as the table has it"


@pytest.mark.deep
def test_the_runs_of_the_engine_are_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for line in re.findall(r"^ordercast (epto simulate .*)$", PAGE, flags=re.MULTILINE):
        assert run_command(line.split()) == 0
        said.append(capsys.readouterr().out)
    first, _, third = said
    assert re.search(r"^holes +none$", first, flags=re.MULTILINE)
    assert re.search(r"^holes +[1-9].*came too late", third, flags=re.MULTILINE)
