"""How one run, simulated or live, is printed: its numbers, faults beyond its contract, and the verdict."""

from pathlib import Path
from typing import Any, Protocol

import msgspec

from ordercast.cli.output import (
    console,
    holes_object,
    latency_text,
    print_holes,
    print_json,
    print_verdict,
    uncounted_object,
    violation_object,
)
from ordercast.cli.properties import at_end_named
from ordercast.core import Fault, format_ns
from ordercast.judge import Holes, Violation
from ordercast.scenario.summary import Summary
from ordercast.trace import RunDescription


class Shown(Protocol):
    """What is printed about a run."""

    @property
    def violations(self) -> list[Violation]:
        """The violations that the judge found."""

    @property
    def suppressed(self) -> dict[str, int]:
        """The number of further violations of each property, which are not listed."""

    @property
    def holes(self) -> Holes | None:
        """The holes, if agreement is probabilistic and the run settled."""

    @property
    def description(self) -> RunDescription:
        """Who took part, and what the protocol promised."""

    @property
    def beyond_contract(self) -> list[Fault]:
        """Faults in this run that the protocol does not claim to tolerate."""

    @property
    def hindrance(self) -> str:
        """Why the promises about the end could not be judged; empty if they were judged."""

    def summary(self) -> Summary:
        """The numbers of the run."""


def run_object(run: Shown, folder: Path | None) -> dict[str, Any]:
    """A run for programs, as JSON."""
    content: dict[str, Any] = msgspec.to_builtins(run.summary())
    content["violations"] = [violation_object(violation) for violation in run.violations]
    content["suppressed"] = run.suppressed
    content["beyond_contract"] = run.beyond_contract
    if run.holes is not None:
        content["holes"] = holes_object(run.holes)
    elif run.description.may_have_holes:
        content["holes"] = uncounted_object()
    return content | ({"out": str(folder)} if folder else {})


def show_run(run: Shown, folder: Path | None, json: bool) -> None:
    """Print a simulated run, for people or as one JSON object."""
    if json:
        print_json(run_object(run, folder))
        return
    summary = run.summary()
    console.print(f"[bold]{summary.protocol}[/], seed {summary.seed}")
    print_rows(
        number_rows(summary)
        | {
            "packets": f"{summary.packets_lost} lost, {summary.overflowed} dropped by busy hosts",
            "lasted": f"{format_ns(summary.duration_ns, 4)} of virtual time, {ending_text(run)}",
            "trace": f"{summary.events} events, hash {summary.trace_hash[:16]}"
            + (f", in {folder}" if folder else ""),
        }
    )
    print_judgement(run)


def number_rows(summary: Summary) -> dict[str, str]:
    """The numbers of messages submitted and delivered, latency, throughput, and answers of a service."""
    return {
        "submitted": f"{summary.submitted} messages",
        "delivered": f"{summary.delivered} in total at all receivers"
        + (f", and {summary.out_of_order} tagged as out of order" if summary.out_of_order else ""),
        "dropped": f"{summary.dropped} drop notifications",
        "latency": latency_text(summary.latency_ns),
        "throughput": f"{summary.throughput_per_s:,.0f} messages per second",
    } | _answer_rows(summary)


def _answer_rows(summary: Summary) -> dict[str, str]:
    if summary.answered is None:
        return {}
    latency = latency_text(summary.answer_latency_ns or {})
    return {
        "operations": f"{summary.answered} answered, {summary.unknown} of unknown outcome",
        "to answer": latency if summary.answered else "none answered",
    }


def print_rows(rows: dict[str, str]) -> None:
    """Print one name and its text per line."""
    for name, text in rows.items():
        console.print(f"  {name:<11}{text}", markup=False, soft_wrap=True)


def print_judgement(run: Shown) -> None:
    """Print the verdict, and the faults that the protocol does not claim to tolerate."""
    summary = run.summary()
    beyond = ", ".join(run.beyond_contract)
    if beyond:
        claim = f"{summary.protocol} does not claim to tolerate {beyond}"
        console.print(f"  [yellow]beyond its contract[/]: {claim}", soft_wrap=True)
    at_end = at_end_named(serves=bool(run.description.service))
    unjudged = [] if summary.complete else [f"{at_end} of this run, because {run.hindrance}"]
    found = [("", violation) for violation in run.violations]
    print_verdict(found, sum(run.suppressed.values()), unjudged, " of its protocol")
    if run.holes is not None:
        print_holes([("", run.holes)])
    elif run.description.may_have_holes:
        console.print(f"[yellow]holes not counted[/], because {run.hindrance}", soft_wrap=True)


def ending_text(run: Shown) -> str:
    """How the run ended. If a fully judged run has no violation, missing deliveries are allowed."""
    ending = run.summary().ending
    allowed = ending == "deliveries missing" and not run.hindrance and not run.violations
    return f"{ending}, which the protocol allows" if allowed else ending
