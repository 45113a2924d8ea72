"""What `ordercast history` says: for people line by line, for programs as one JSON object."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from ordercast.cli.output import console
from ordercast.judge.histories import (
    BankJudgement,
    Counterexample,
    Judgement,
    Operation,
    Value,
    explained,
    shown,
)
from ordercast.judge.histories.transactions import Anomaly, TransactionJudgement

ORDER_MAX = 20
"""How many operations of an order the JSON object has; they are the last ones."""

AnyJudgement: TypeAlias = Judgement | TransactionJudgement | BankJudgement


class JudgedFile(msgspec.Struct):
    """What was found about one file."""

    file: str
    error: str = ""
    model: str = ""
    operations: int = 0
    seconds: float = 0.0
    judgement: AnyJudgement = Judgement(None)

    def verdict(self, *, strict: bool) -> bool | None:
        """Whether it is as it must be; None if that is not known."""
        match self.judgement:
            case TransactionJudgement():
                return self.judgement.strict_serializable if strict else self.judgement.serializable
            case BankJudgement():
                return self.judgement.total_kept
        return self.judgement.linearizable


def print_judged(judged: Sequence[JudgedFile]) -> None:
    """Print what was found, for people."""
    for one in judged:
        if not one.error:
            console.print(f"{_headline(one.judgement)}: ", end="")
            console.print(_size(one), markup=False, soft_wrap=True)
            for line in _reasons(one.judgement):
                console.print(f"  {line}", markup=False, soft_wrap=True)


def _headline(judgement: AnyJudgement) -> str:
    match judgement:
        case TransactionJudgement():
            return _of_transactions(judgement)
        case BankJudgement():
            return "[green]total kept[/]" if judgement.total_kept else "[bold red]total not kept[/]"
    if judgement.linearizable is None:
        return "[yellow]not decided[/]"
    return "[green]linearizable[/]" if judgement.linearizable else "[bold red]not linearizable[/]"


def _of_transactions(judgement: TransactionJudgement) -> str:
    if judgement.strict_serializable:
        return "[green]strict serializable[/]"
    if judgement.serializable:
        return "[bold red]serializable, but not strict serializable[/]"
    return "[bold red]not serializable[/]"


def _size(one: JudgedFile) -> str:
    return f"{one.file} ({one.model}, {one.operations} operations, {one.seconds:.2f} s)"


def _reasons(judgement: AnyJudgement) -> Iterator[str]:
    match judgement:
        case TransactionJudgement():
            yield from _anomalies(judgement)
        case BankJudgement():
            yield from _wrong_totals(judgement)
        case Judgement():
            yield from _without_order(judgement)


def _without_order(judgement: Judgement) -> Iterator[str]:
    if judgement.counterexample is not None:
        yield from explained(judgement.counterexample)
    if judgement.undecided:
        keys = ", ".join(shown(key) for key in judgement.undecided if key is not None)
        where = f" for the keys {keys}" if keys else ""
        yield f"the search reached a limit{where}; --seconds and --placements raise the limits"


def _anomalies(judgement: TransactionJudgement) -> Iterator[str]:
    for one in judgement.anomalies:
        yield f"{one.kind}: {one.text}"
        for step in one.steps:
            yield f"  {step.before}"
            yield f"    {step.kind}: {step.text}:"
        if one.steps:
            yield f"  {one.steps[-1].after}"
    if judgement.more:
        yield f"and {judgement.more} more"


def _wrong_totals(judgement: BankJudgement) -> Iterator[str]:
    if judgement.wrong:
        yield str(judgement.first)
        yield from map(str, judgement.wrong)
        if judgement.more:
            yield f"and {judgement.more} more"


def content_of(judged: Sequence[JudgedFile]) -> dict[str, Any]:
    """What was found, for programs."""
    return {
        "histories": [_object(one) for one in judged if not one.error],
        "unreadable": [{"file": one.file, "detail": one.error} for one in judged if one.error],
    }


def _object(one: JudgedFile) -> dict[str, Any]:
    told = {"file": one.file, "model": one.model, "operations": one.operations, "seconds": one.seconds}
    judgement = one.judgement
    match judgement:
        case TransactionJudgement():
            return told | {
                "strict_serializable": judgement.strict_serializable,
                "serializable": judgement.serializable,
                "anomalies": [_anomaly(anomaly) for anomaly in judgement.anomalies],
                "more": judgement.more,
            }
        case BankJudgement():
            wrong = [balance._asdict() for balance in judgement.wrong]
            first = None if judgement.first is None else judgement.first._asdict()
            return told | {"total_kept": judgement.total_kept, "first": first, "wrong": wrong}
    found = judgement.counterexample
    reason = None if found is None else _counterexample(found)
    return told | {"linearizable": judgement.linearizable, "counterexample": reason}


def _anomaly(anomaly: Anomaly) -> dict[str, Any]:
    steps = [
        {
            "before": str(step.before),
            "after": str(step.after),
            "kind": step.kind,
            "key": _plain(step.key),
            "text": step.text,
        }
        for step in anomaly.steps
    ]
    transactions = [str(transaction) for transaction in anomaly.transactions]
    return {"kind": anomaly.kind, "text": anomaly.text, "transactions": transactions, "steps": steps}


def _counterexample(found: Counterexample) -> dict[str, Any]:
    stuck = found.stuck
    return {
        "key": _plain(found.key),
        "operation": _operation(stuck.operation),
        "under_way": [_operation(operation) for operation in stuck.under_way],
        "values": [_plain(state) for state in stuck.states],
        "order": [_operation(operation) for operation in stuck.order[-ORDER_MAX:]],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    return {
        "client": operation.client,
        "call": operation.call,
        "arguments": [_plain(value) for value in operation.arguments],
        "result": _plain(operation.result) if operation.known else None,
        "known": operation.known,
        "source": operation.source,
    }


def _plain(value: Value) -> object:
    """A value as JSON has it; what JSON does not have, as it is written in the file."""
    return value if value is None or isinstance(value, bool | int | str) else shown(value)
