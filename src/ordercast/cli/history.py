"""`ordercast history`: judge histories of operations from any system, by their values alone."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from rich.progress import Progress, TaskID

from ordercast.cli.output import console, errors, print_json, progress_bar
from ordercast.core import OrdercastError
from ordercast.judge.histories import (
    PLACEMENTS_MAX,
    Counterexample,
    History,
    Judgement,
    Operation,
    Value,
    Watch,
    explained,
    judge_history,
    read_history,
    shown,
)
from ordercast.scenario.run_history import history_of_stored
from ordercast.trace import read_run, run_folders

ORDER_MAX = 20
"""How many operations of an order the JSON object has; they are the last ones."""


class JudgedFile(msgspec.Struct):
    """What was found about one file."""

    file: str
    error: str = ""
    model: str = ""
    operations: int = 0
    seconds: float = 0.0
    judgement: Judgement = Judgement(None)

    @property
    def verdict(self) -> bool | None:
        """Whether it is linearizable; None if that is not known."""
        return self.judgement.linearizable


class Source(NamedTuple):
    """Where a history is, and how to read it."""

    path: Path
    read: Callable[[], History]
    is_run: bool = False


def history(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Histories, one per file, and folders of runs with values."),
    ],
    seconds: Annotated[
        float, typer.Option(help="Give up on a file after this time.", min=0, metavar="S")
    ] = 300.0,
    placements: Annotated[
        int, typer.Option(help="Give up on a key after this many steps; each takes half a kilobyte.", min=1)
    ] = PLACEMENTS_MAX,
    master: Annotated[
        str | None,
        typer.Option(
            help="Search on Spark, a task for each run and key: local[*] or spark://...", metavar="M"
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Judge histories of operations: is there one order that explains every answer?

    A history says which operations clients invoked, when each was answered, and with which value. It is
    [bold]linearizable[/] if each operation can be given one moment between its invocation and its answer,
    such that the operations, executed one after the other at these moments, give the same answers. If there
    is no such order, the command names the first answer that cannot be explained. Nothing is assumed about
    the system: only the values count.

    Two formats are read: logs of Jepsen, and one EDN map per line. The operations are [bold]read[/],
    [bold]write[/] and [bold]cas[/] on a register, or [bold]get[/], [bold]put[/], [bold]append[/] and
    [bold]cas[/] on texts by key. An operation of unknown outcome (:info, or no answer at all) may take effect
    at any later time, or never. docs/histories.md has the details.

    In a folder, all runs of the built-in services [bold]register[/] and [bold]kv[/] are judged that keep
    their values ([bold]history = true[/] in the scenario).

    The exit code is 1 if a history is not linearizable. Otherwise it is 2 if a file cannot be read, or if the
    search reached a limit without a verdict; and 0 if every history is linearizable.

    [bold]Examples[/]

    ordercast history examples/histories/register.log

    ordercast history examples/histories/* --json

    ordercast history traces --master 'local[*]'

    A history in which client 1 reads a value that has been overwritten:

    {:process 0 :type :invoke :f :write :value 5}\n
    {:process 0 :type :ok :f :write :value 5}\n
    {:process 1 :type :invoke :f :read}\n
    {:process 1 :type :ok :f :read :value nil}
    """
    sources = [source for path in files for source in _sources(path)]
    if master is None:
        judged = _judge_all(sources, seconds, placements)
    else:
        judged = _judge_on_spark(sources, seconds, placements, master)
    for one in judged:
        if one.error:
            errors.print(f"ordercast: {one.error}", markup=False, soft_wrap=True)
    if json:
        print_json(_content(judged))
    else:
        _print(judged)
    if any(one.verdict is False for one in judged):
        return 1
    return 0 if all(one.verdict for one in judged) else 2


def _judge_on_spark(sources: list[Source], seconds: float, placements: int, master: str) -> list[JudgedFile]:
    """Judge the runs on Spark, and the files here."""
    from ordercast.pipeline.histories import Limits, judge_histories
    from ordercast.pipeline.session import check_master, running_spark

    check_master(master)
    runs = [source for source in sources if source.is_run]
    judged = _judge_all([source for source in sources if not source.is_run], seconds, placements)
    started = monotonic()
    with running_spark(master, "ordercast history") as spark:
        found = judge_histories(
            spark, [str(run.path.absolute()) for run in runs], Limits(seconds, placements)
        )
    taken = round(monotonic() - started, 6)
    return judged + [
        JudgedFile(str(run.path), one.error, one.model, one.operations, taken, one.judgement)
        for run, one in zip(runs, found, strict=True)
    ]


def _judge_all(sources: list[Source], seconds: float, placements: int) -> list[JudgedFile]:
    judged = []
    with progress_bar() as bar:
        task = bar.add_task("judging", total=len(sources))
        for source in sources:
            judged.append(_judge(source, _watch(bar, task, source.path, seconds), placements))
            bar.advance(task)
    return judged


def _sources(path: Path) -> Iterator[Source]:
    """The history in a file, or those of all runs in a folder."""
    if not path.is_dir():
        yield Source(path, partial(read_history, path))
        return
    try:
        folders = run_folders(path)
    except OrdercastError as error:
        yield Source(path, partial(_refuse, error))
        return
    for folder in folders:
        yield Source(folder, partial(_read_run, folder), is_run=True)


def _read_run(folder: Path) -> History:
    return history_of_stored(read_run(folder))


def _refuse(error: OrdercastError) -> History:
    raise error


def _watch(bar: Progress, task: TaskID, path: Path, seconds: float) -> Watch:
    """Shows how far the search is, and ends it in time."""
    deadline = monotonic() + seconds

    def watch(placements: int) -> bool:
        bar.update(task, description=f"{path.name}: {placements} steps")
        return monotonic() < deadline

    return watch


def _judge(source: Source, watch: Watch, placements: int) -> JudgedFile:
    started, path = monotonic(), source.path
    try:
        history = source.read()
    except OrdercastError as error:
        return JudgedFile(str(path), error=str(error))
    judgement = judge_history(history, watch, placements)
    seconds = round(monotonic() - started, 6)
    return JudgedFile(str(path), "", history.model.name, len(history.operations), seconds, judgement)


def _print(judged: list[JudgedFile]) -> None:
    """Print what was found, for people."""
    for one in judged:
        if not one.error:
            console.print(f"{_headline(one.judgement)}: ", end="")
            console.print(_size(one), markup=False, soft_wrap=True)
            for line in _reasons(one.judgement):
                console.print(f"  {line}", markup=False, soft_wrap=True)


def _headline(judgement: Judgement) -> str:
    if judgement.linearizable is None:
        return "[yellow]not decided[/]"
    return "[green]linearizable[/]" if judgement.linearizable else "[bold red]not linearizable[/]"


def _size(one: JudgedFile) -> str:
    return f"{one.file} ({one.model}, {one.operations} operations, {one.seconds:.2f} s)"


def _reasons(judgement: Judgement) -> Iterator[str]:
    if judgement.counterexample is not None:
        yield from explained(judgement.counterexample)
    if judgement.undecided:
        keys = ", ".join(shown(key) for key in judgement.undecided if key is not None)
        where = f" for the keys {keys}" if keys else ""
        yield f"the search reached a limit{where}; --seconds and --placements raise the limits"


def _content(judged: list[JudgedFile]) -> dict[str, Any]:
    """What was found, for programs."""
    return {
        "histories": [_object(one) for one in judged if not one.error],
        "unreadable": [{"file": one.file, "detail": one.error} for one in judged if one.error],
    }


def _object(one: JudgedFile) -> dict[str, Any]:
    found = one.judgement.counterexample
    return {
        "file": one.file,
        "model": one.model,
        "linearizable": one.verdict,
        "operations": one.operations,
        "seconds": one.seconds,
        "counterexample": None if found is None else _counterexample(found),
    }


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
