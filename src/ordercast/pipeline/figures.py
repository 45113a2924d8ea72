"""The figures of a reproduction as data: the table `figures` and the file `figures.json`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ordercast.pipeline.json_file import write_json
from ordercast.report.figures import Figure

FIGURES_FILE = "figures.json"

Drawn = Sequence[tuple[str, Figure]]
"""Figures with the names of their experiments."""


def figure_rows(drawn: Drawn) -> list[dict[str, Any]]:
    """Rows of FIGURES, in the order of the figures."""
    return [
        {"place": place, "experiment": experiment, "figure": figure.id}
        | {"content": msgspec.json.encode(figure).decode()}
        for place, (experiment, figure) in enumerate(drawn)
    ]


def write_figures(drawn: Drawn, out: Path) -> Path:
    """Write `figures.json`: all points of all curves, and the numbers in the tables below the figures."""
    figures = [{"experiment": experiment, **msgspec.to_builtins(figure)} for experiment, figure in drawn]
    return write_json({"figures": figures}, out / FIGURES_FILE)
