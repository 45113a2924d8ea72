"""Runs the contenders in turns; what is measured and how is said in the package's docstring."""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import benchmarks.groups
from benchmarks.groups.account import Figures
from benchmarks.groups.load import GROUPS, Load
from benchmarks.groups.stage import CONTENDERS, measure, missing
from benchmarks.peers.contender import MeasureError

ADDED_UP = ("disagreements", "within_group", "lost", "twice")
Found = dict[str, dict[str, list[Figures]]]
"""By contender and load: the figures of each round."""


def loads(contender: str, seconds: float, rate: float) -> dict[str, Load]:
    """Both loads; the rate is that of all processes together."""
    most = Load(contender=contender, seconds=seconds)
    paced = Load(contender=contender, seconds=seconds, rate=rate / len(most.nodes))
    return {"most": most, "paced": paced}


def attempt(name: str, load: Load, console: Console) -> Figures | None:
    """One measurement in a folder of its own; a failure is told and is not the end."""
    with tempfile.TemporaryDirectory(prefix="ordercast-groups-", ignore_cleanup_errors=True) as folder:
        try:
            found = measure(load, Path(folder))
        except (MeasureError, OSError) as error:
            console.print(f"{load.contender}, {name}: {error}", markup=False)
            return None
    told = f"{found.delivered_per_s:,.0f}/s, {found.disagreements:,} disagreements"
    console.print(f"{load.contender}, {name}: {told}", markup=False)
    return found


def report(found: Found, absent: Mapping[str, str]) -> dict[str, object]:
    """The medians of all rounds, and the sums of what is counted."""
    return {
        "groups": len(GROUPS),
        "contenders": {
            contender: {name: middle(rounds) if rounds else None for name, rounds in by_load.items()}
            for contender, by_load in found.items()
        },
        "absent": dict(absent),
    }


def middle(rounds: Sequence[Figures]) -> dict[str, float]:
    """Medians; what is counted is added up."""
    return {
        name: sum(values) if name in ADDED_UP else median(values)
        for name in Figures._fields
        if (values := [getattr(one, name) for one in rounds])
    }


def table_for(name: str, found: Found) -> Table:
    """The table of one load."""
    table = Table(title=name)
    for heading in ("contender", "messages/s", "p50 us", "p99 us", "disagreements", "share", "lost"):
        table.add_column(heading, justify="left" if heading == "contender" else "right")
    for contender, by_load in found.items():
        if by_load[name]:
            row = middle(by_load[name])
            figures = (row["delivered_per_s"], row["p50_us"], row["p99_us"], row["disagreements"])
            texts = (f"{one:,.0f}" for one in figures)
            table.add_row(contender, *texts, f"{row['share']:.2%}", f"{row['lost']:,.0f}")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.groups",
        description=benchmarks.groups.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=600.0, help="messages per second, if paced")
    parser.add_argument("--only", default=",".join(CONTENDERS), help="contenders, with commas: %(default)s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    only = arguments.only.split(",")
    if unknown := sorted(set(only) - set(CONTENDERS)):
        parser.error(f"no contender {', '.join(unknown)}; there are {', '.join(CONTENDERS)}")
    progress = Console(stderr=True)
    absent = {name: why for name in only if (why := missing(name))}
    for name, why in absent.items():
        progress.print(f"{name} is skipped: {why}", markup=False)
    found: Found = {name: {"most": [], "paced": []} for name in only if name not in absent}
    for _ in range(arguments.rounds):
        for contender, rounds in found.items():
            for name, load in loads(contender, arguments.seconds, arguments.rate).items():
                figures = attempt(name, load, progress)
                if figures is not None:
                    rounds[name].append(figures)
    if arguments.json:
        print(json.dumps(report(found, absent), indent=2))
        return
    for name in ("most", "paced"):
        Console().print(table_for(name, found))


if __name__ == "__main__":
    main()
