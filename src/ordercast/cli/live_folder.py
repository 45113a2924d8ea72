"""All scenarios of a folder on real processes, one after the other, in one table."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from rich.markup import escape
from rich.table import Table

from ordercast.cli.live_output import live_object, print_complaint
from ordercast.cli.output import errors, print_json, print_violations, print_wide
from ordercast.core import LocalError, OrdercastError, format_ns
from ordercast.lab.trial.run import LiveRun

RunFile: TypeAlias = Callable[[Path, str], tuple[LiveRun, Path | None]]
"""Runs a scenario file, and shows its progress under a title."""

_LEFT = ("scenario", "protocol", "verdict")
_COLUMNS = (
    "scenario", "protocol", "delivered", "missing", "twice", "disorder", "dropped", "unconfirmed", "outage",
    "limit", "verdict",
)  # fmt: skip


class FolderRun(NamedTuple):
    """What came of one file of a folder."""

    name: str
    run: LiveRun | None
    """None if it could not be run."""
    folder: Path | None
    error: str

    @property
    def verdict(self) -> str:
        """In one or a few words."""
        if self.run is None:
            return "not run"
        rules = [violation.property for violation in self.run.violations]
        rules += [complaint.rule for complaint in self.run.complaints]
        return ", ".join(dict.fromkeys(rules)) or "kept"

    def content(self) -> dict[str, Any]:
        """For programs."""
        if self.run is None:
            return {"scenario": self.name, "error": self.error}
        return {"scenario": self.name, **live_object(self.run, self.folder)}


def run_folder(folder: Path, run_file: RunFile, *, json: bool) -> int:
    """Run all scenarios of a folder and print what came of them; returns the exit code."""
    runs = list(_runs(folder, run_file))
    failed = [one.name for one in runs if one.verdict != "kept"]
    if json:
        print_json({"runs": [one.content() for one in runs], "failed": failed})
    else:
        _print(runs)
    if any(one.run is not None and one.verdict != "kept" for one in runs):
        return 1
    return 2 if failed else 0


def _runs(folder: Path, run_file: RunFile) -> Iterator[FolderRun]:
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise LocalError(f"{folder}: there is no scenario file (*.toml) in this folder")
    for place, path in enumerate(paths, 1):
        try:
            run, trace = run_file(path, f"{place} of {len(paths)}: {path.stem}")
            yield FolderRun(path.stem, run, trace, "")
        except OrdercastError as error:
            errors.print(f"ordercast: {path.name}: {error}", markup=False, soft_wrap=True)
            yield FolderRun(path.stem, None, None, str(error))


def _print(runs: list[FolderRun]) -> None:
    table = Table(box=None, pad_edge=False)
    for title in _COLUMNS:
        table.add_column(title, justify="left" if title in _LEFT else "right", no_wrap=True)
    for one in runs:
        table.add_row(*_row(one))
    print_wide(table)
    for one in runs:
        if one.run is not None:
            where = f"in {escape(one.name)}"
            print_violations([(where, found) for found in one.run.violations])
            for complaint in one.run.complaints:
                print_complaint(complaint, where)


def _row(one: FolderRun) -> list[str]:
    colour = "green" if one.verdict == "kept" else "red"
    verdict = f"[{colour}]{escape(one.verdict)}[/]"
    if one.run is None:
        return [escape(one.name), *[""] * (len(_COLUMNS) - 2), verdict]
    account = one.run.account
    counts = (account.missing, account.twice, account.disorder, account.dropped, account.unconfirmed)
    limit = "" if account.limit_ns is None else format_ns(account.limit_ns, 3)
    return [
        escape(one.name),
        one.run.scenario.protocol,
        f"{account.delivered} of {account.accepted}",
        *map(str, counts),
        format_ns(account.outage_ns, 3),
        limit,
        verdict,
    ]
