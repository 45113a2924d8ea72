"""How a live run is printed: its numbers, what applications saw, and the verdict."""

from pathlib import Path
from typing import Any

import msgspec

from ordercast.cli.output import console
from ordercast.cli.run_output import ending_text, number_rows, print_judgement, print_rows, run_object
from ordercast.core import MILLISECOND, format_ns, message_name
from ordercast.lab.trial.account import LiveAccount
from ordercast.lab.trial.account_rules import Complaint
from ordercast.lab.trial.operations_account import OperationsAccount
from ordercast.lab.trial.run import LiveRun
from ordercast.lab.trial.silence import Silence

LATE_NS = 20 * MILLISECOND
"""Submissions that are later than this are reported in a note."""


def live_object(run: LiveRun, folder: Path | None) -> dict[str, Any]:
    """A live run for programs, as JSON."""
    silences = [
        msgspec.to_builtins(one, str_keys=True) | {"longest_ns": one.longest_ns} for one in run.silences
    ]
    more = {
        "ignored": run.ignored,
        "late_ns": run.late_ns,
        "silences": silences,
        "account": _account_object(run.account),
    }
    found = run.operations
    if found is not None:
        longest = {
            "longest_ns": found.outage_ns,
            "begin_ns": found.outage_begin_ns,
            "limit_ns": found.limit_ns,
        }
        more |= {"operations": _account_object(found), "outages": longest}
        more |= {} if found.total is None and not found.sums else {"total": found.total}
    more |= {} if run.locks_left is None else {"locks_left": run.locks_left}
    return run_object(run, folder) | more


def _account_object(account: LiveAccount | OperationsAccount) -> dict[str, Any]:
    complaints = [
        msgspec.to_builtins(one) | {"messages": [*map(message_name, one.messages)]}
        for one in account.complaints
    ]
    found: dict[str, Any] = msgspec.to_builtins(account)
    return found | {"complaints": complaints}


def show_live(run: LiveRun, folder: Path | None) -> None:
    """Print a live run for people."""
    summary = run.summary()
    console.print(f"[bold]{summary.protocol}[/], live, seed {summary.seed}")
    rows = number_rows(summary)
    rows["packets"] = f"{summary.packets_lost} lost on purpose or because buffers were full"
    rows["lasted"] = f"{format_ns(summary.duration_ns, 4)}, {ending_text(run)}"
    rows["trace"] = f"{summary.events} events" + (f", in {folder}" if folder else "")
    rows["account"] = account_text(run.account)
    if run.operations is not None:
        rows["operations"] = operations_text(run.operations)
    if run.locks_left is not None:
        rows["locks left"] = str(run.locks_left)
    print_rows(rows)
    for silence in run.silences:
        print_rows({"crash": _silence_text(silence)})
    if run.late_ns > LATE_NS:
        late = f"submissions were up to {format_ns(run.late_ns, 3)} late, because this machine is too busy"
        console.print(f"  [yellow]note[/]: {late}", soft_wrap=True)
    for words in run.ignored:
        console.print(f"  [yellow]ignored[/]: {words}", soft_wrap=True)
    print_judgement(run)
    for complaint in run.complaints:
        print_complaint(complaint)


def print_complaint(complaint: Complaint, where: str = "") -> None:
    """Print what applications must complain of."""
    console.print(f"[bold red]{complaint.rule}, by the account of the applications[/] {where}".rstrip())
    console.print(f"  {complaint.detail}", markup=False, soft_wrap=True)


def account_text(account: LiveAccount) -> str:
    """The account in one line."""
    told = f"{account.dropped} drops and {account.unconfirmed} unconfirmed messages told"
    limit = "" if account.limit_ns is None else f" (limit {format_ns(account.limit_ns, 3)})"
    handed = f", {account.in_flight} lost by killed receivers" if account.in_flight else ""
    return (
        f"{account.delivered} of {account.accepted} messages delivered to all; {account.missing} missing,"
        f" {account.twice} twice, {account.disorder} disagreements on order; {told}{handed};"
        f" longest wait {format_ns(account.outage_ns, 3)}{limit}"
    )


def operations_text(account: OperationsAccount) -> str:
    """The account of the calls to a service in one line."""
    limit = "" if account.limit_ns is None else f" (limit {format_ns(account.limit_ns, 3)})"
    total = "different totals" if account.total is None else account.total
    sums = f"; {account.sums} sums came to {total}" if account.sums else ""
    compared = f"{account.checked} compared with a single service" if account.checked else "none compared"
    return (
        f"{account.answered} of {account.invoked} answered ({account.refused} refused, {account.failed}"
        f" failed), {account.unknown} unknown; {compared}{sums}; longest time without an answer"
        f" {format_ns(account.outage_ns, 3)}{limit}"
    )


def _silence_text(silence: Silence) -> str:
    told = [
        f"node {node} {'forever' if found is None else format_ns(found, 3)}"
        for node, found in silence.receivers.items()
    ]
    return f"of host {silence.host} at {format_ns(silence.time_ns, 4)}; longest silence: {', '.join(told)}"
