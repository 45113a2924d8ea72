"""`ordercast history`: judge histories of operations from any system, by their values alone."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Annotated, NamedTuple

import typer
from rich.progress import Progress, TaskID

from ordercast.cli.history_output import AnyJudgement, JudgedFile, content_of, print_judged
from ordercast.cli.output import errors, print_json, progress_bar
from ordercast.core import Consistency, LocalError, OrdercastError
from ordercast.judge.histories import (
    PLACEMENTS_MAX,
    Balances,
    History,
    Recorded,
    Watch,
    judge_balances,
    judge_history,
    read_recorded,
)
from ordercast.judge.histories.transactions import Transactions, judge_transactions
from ordercast.scenario.run_history import history_of_stored
from ordercast.trace import read_run, run_folders


class Source(NamedTuple):
    """Where a history is, and how to read it."""

    path: Path
    read: Callable[[], Recorded]
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
    consistency: Annotated[
        str,
        typer.Option(help="What transactions must be: strict-serializable or serializable.", metavar="C"),
    ] = Consistency.STRICT_SERIALIZABLE.value,
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

    Transactions that append to lists and read them ([bold]:txn[/], as Jepsen's list-append) are judged by
    their dependencies: is there an order of all transactions that explains what they read, and in which
    none that was answered comes behind one that was invoked later? If not, a cycle is named, and its kind.
    Of a [bold]bank[/] with transfers and readings, the total of all accounts must be the same in every
    reading.

    In a folder, all runs of the built-in services [bold]register[/], [bold]kv[/] and [bold]list_append[/]
    are judged that keep their values ([bold]history = true[/] in the scenario).

    The exit code is 1 if a history is not linearizable, or its transactions are not consistent. Otherwise it
    is 2 if a file cannot be read, or if the search reached a limit without a verdict; and 0 if all is well.

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
    if consistency not in (Consistency.STRICT_SERIALIZABLE, Consistency.SERIALIZABLE):
        raise LocalError(f"--consistency must be strict-serializable or serializable, not {consistency!r}")
    strict = consistency == Consistency.STRICT_SERIALIZABLE
    sources = [source for path in files for source in _sources(path)]
    if master is None:
        judged = _judge_all(sources, seconds, placements)
    else:
        judged = _judge_on_spark(sources, seconds, placements, master)
    for one in judged:
        if one.error:
            errors.print(f"ordercast: {one.error}", markup=False, soft_wrap=True)
    if json:
        print_json(content_of(judged))
    else:
        print_judged(judged)
    verdicts = [None if one.error else one.verdict(strict=strict) for one in judged]
    if any(verdict is False for verdict in verdicts):
        return 1
    return 0 if all(verdicts) else 2


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
        yield Source(path, partial(read_recorded, path))
        return
    try:
        folders = run_folders(path)
    except OrdercastError as error:
        yield Source(path, partial(_refuse, error))
        return
    for folder in folders:
        yield Source(folder, partial(_read_run, folder), is_run=True)


def _read_run(folder: Path) -> Recorded:
    return history_of_stored(read_run(folder))


def _refuse(error: OrdercastError) -> Recorded:
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
        recorded = source.read()
        model, operations, judgement = _judged(recorded, watch, placements)
    except OrdercastError as error:
        return JudgedFile(str(path), error=str(error))
    return JudgedFile(str(path), "", model, operations, round(monotonic() - started, 6), judgement)


def _judged(recorded: Recorded, watch: Watch, placements: int) -> tuple[str, int, AnyJudgement]:
    """The model of a history, the number of its operations, and the judgement."""
    match recorded:
        case Transactions():
            return "list-append", len(recorded.transactions), judge_transactions(recorded.transactions)
        case Balances():
            return "bank", recorded.operations, judge_balances(recorded)
        case History():
            found = judge_history(recorded, watch, placements)
            return recorded.model.name, len(recorded.operations), found
