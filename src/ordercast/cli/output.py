"""How results are printed: tables for people, one JSON object for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ordercast.core import format_ns, message_name

if TYPE_CHECKING:  # the judge imports libraries that commands about a live cluster do not need
    from rich.table import Table

    from ordercast.judge import Holes, Violation


class _Pipe(Console):
    """A console whose reader may close the pipe; `cli.run` decides what happens then."""

    def on_broken_pipe(self) -> None:
        """Raise the error."""
        raise BrokenPipeError


console = _Pipe(highlight=False, emoji=False)
errors = Console(stderr=True, highlight=False, emoji=False)

VIOLATIONS_SHOWN = 10
WIDTH_MAX = 1000
"""Wider than any table."""


def print_json(content: object) -> None:
    """Print one object on standard output."""
    print(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())


def print_wide(table: Table) -> None:
    """Print a table in full, even if the terminal is narrower."""
    _Pipe(highlight=False, emoji=False, width=WIDTH_MAX).print(table)


def progress_bar() -> Progress:
    """A progress bar on standard error, only on a terminal; it disappears when the work is done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )


def violation_object(violation: Violation, **more: Any) -> dict[str, Any]:
    """A violation for programs, with the names of messages."""
    return {
        "property": violation.property,
        **more,
        "nodes": violation.nodes,
        "messages": [message_name(message) for message in violation.messages],
        "times_ns": violation.times_ns,
        "detail": violation.detail,
    }


def print_violations(violations: Iterable[tuple[str, Violation]], suppressed: int = 0) -> None:
    """Print counterexamples for people, each with its run."""
    found = list(violations)
    for where, violation in found[:VIOLATIONS_SHOWN]:
        console.print(f"[bold red]{violation.headline()}[/] {escape(where)}".rstrip())
        console.print(f"  {violation.detail}", markup=False, soft_wrap=True)
    more = max(0, len(found) - VIOLATIONS_SHOWN) + suppressed
    if more:
        console.print(f"  ... and {'at least ' if suppressed else ''}{more} more")


def print_verdict(
    found: list[tuple[str, Violation]], suppressed: int, unjudged: list[str], what: str
) -> None:
    """Print what the judge found, and what it could not judge."""
    if found:
        print_violations(found, suppressed)
    else:
        judged = " that could be judged" if unjudged else ""
        console.print(f"[green]kept every promise[/]{judged}{what}", soft_wrap=True)
    for what_not in unjudged:
        console.print(f"[yellow]not judged[/]: {escape(what_not)}", soft_wrap=True)


def holes_object(holes: Holes, **more: Any) -> dict[str, Any]:
    """The holes of a run for programs, with the names of messages."""
    nodes = [
        {
            "node": found.node,
            "standing": found.standing,
            "count": found.count,
            "messages": [message_name(message) for message in found.messages],
        }
        for found in holes.nodes
    ]
    return {**more, "count": holes.count, "nodes": nodes, "nowhere": holes.nowhere}


def uncounted_object(**more: Any) -> dict[str, Any]:
    """The same for a run whose holes were not counted: their number is unknown, not zero."""
    return {**more, "count": None, "nodes": None, "nowhere": None}


_STANDING = {
    "stayed": "",
    "down": ", which was down at the end,",
    "lost": ", which came later or had restarted without its state,",
}


def print_holes(runs: list[tuple[str, Holes]]) -> None:
    """Print the holes of runs whose protocol allows holes."""
    if not any(holes.count for _, holes in runs):
        named = [where for where, _ in runs if where]
        which = f", in {len(named)} run{'' if len(named) == 1 else 's'}" if named else ""
        console.print(f"[green]no holes[/] at receivers that stayed{which}")
    for where, holes in runs:
        if holes.count:
            plural = "" if holes.count == 1 else "s"
            text = f"{escape(where)} at receivers that stayed".strip()
            console.print(f"[yellow]{holes.count} hole{plural}[/] {text}", soft_wrap=True)
        elif holes.elsewhere or holes.nowhere:
            console.print(f"not delivered {escape(where)}".strip(), soft_wrap=True)
        for line in _hole_lines(holes):
            console.print(f"  {line}", markup=False, soft_wrap=True)


def print_uncounted(runs: Iterable[str]) -> None:
    """Print the runs whose holes cannot be counted."""
    for run in runs:
        why = "the run is not complete, and missing messages may still have been in flight at its end"
        console.print(f"[yellow]holes not counted[/] in {escape(run)}: {why}", soft_wrap=True)


def _hole_lines(holes: Holes) -> Iterator[str]:
    for found in holes.nodes[:VIOLATIONS_SHOWN]:
        named = ", ".join(map(message_name, found.messages))
        more = ", ..." if found.count > len(found.messages) else ""
        yield f"node {found.node}{_STANDING[found.standing]} lacks {found.count}: {named}{more}"
    if len(holes.nodes) > VIOLATIONS_SHOWN:
        yield f"... and {len(holes.nodes) - VIOLATIONS_SHOWN} more nodes"
    if holes.nowhere:
        yield f"nobody delivered {holes.nowhere} of the submitted messages"


def latency_text(latency: dict[str, int | None]) -> str:
    """Percentiles of latency in one line."""
    parts = (f"{name} {format_ns(ns, 3)}" for name, ns in latency.items() if ns is not None)
    return ", ".join(parts) or "none delivered"
