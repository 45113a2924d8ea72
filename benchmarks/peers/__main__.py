"""Runs the contenders in turns; what is measured and how is said in the package's docstring."""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import benchmarks.peers
from benchmarks.peers.contender import Contender, Figures, MeasureError, Task
from benchmarks.peers.nats_jetstream import NatsJetStream
from benchmarks.peers.ordercast_bench import OrdercastApart, OrdercastBench
from benchmarks.peers.pysyncobj_raft import PySyncObj
from benchmarks.peers.redis_calls import RedisCalls
from benchmarks.peers.redis_streams import RedisStreams
from benchmarks.peers.report import summaries, table_for
from benchmarks.peers.stage import OnStage
from benchmarks.peers.zeromq import ZeroMq

FILE_COLUMNS = 150
"""How wide a table is that goes into a file; in a terminal it is as wide as that."""


def contenders() -> list[Contender]:
    """All that could take part, in the order of their turns."""
    peers = (RedisStreams(), RedisCalls(), NatsJetStream(), PySyncObj(), ZeroMq())
    return [OrdercastBench(), OrdercastApart(), *(OnStage(peer) for peer in peers)]


def present(wanted: Sequence[Contender], console: Console) -> list[Contender]:
    """Those that can take part here; the others are skipped with a word."""
    here = []
    for contender in wanted:
        missing = contender.missing()
        if missing:
            console.print(f"{contender.name} is skipped: {missing}", markup=False)
        else:
            here.append(contender)
    return here


def tasks_for(sizes: Sequence[int], seconds: float, receivers: int, clients: int) -> list[Task]:
    """Every size pipelined; clients with the first size alone, in each of the three ways."""
    pipelined = [Task(size, seconds, receivers) for size in sizes]
    ways = dict.fromkeys(((clients, False), (clients, True), (1, False)))
    return [*pipelined, *(Task(sizes[0], seconds, receivers, many, tasks) for many, tasks in ways)]


def attempt(contender: Contender, task: Task, console: Console) -> Figures | None:
    """One measurement in a folder of its own; a failure is told and is not the end."""
    with tempfile.TemporaryDirectory(prefix="ordercast-peers-", ignore_cleanup_errors=True) as folder:
        try:
            figures = contender.measure(task, Path(folder))
        except MeasureError as error:
            console.print(f"{contender.name}, {task.name}: {error}", markup=False)
            return None
    console.print(f"{contender.name}, {task.name}: {figures.ordered_per_s:,.0f}/s", markup=False)
    return figures


def main() -> None:
    """Measure and print."""
    everybody = contenders()
    names = [contender.name for contender in everybody]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=benchmarks.peers.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--size", default="64,1024", help="bytes of a message, several with commas")
    parser.add_argument("--receivers", type=int, default=3)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--only", default=",".join(names), help="contenders, with commas: %(default)s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    only = arguments.only.split(",")
    if unknown := sorted(set(only) - set(names)):
        parser.error(f"no contender {', '.join(unknown)}; there are {', '.join(names)}")
    # A request to end stops what was started, like an interrupt from the keyboard.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    progress = Console(stderr=True)
    here = present([contender for contender in everybody if contender.name in only], progress)
    sizes = [int(size) for size in arguments.size.split(",")]
    tasks = tasks_for(sizes, arguments.seconds, arguments.receivers, arguments.clients)
    found: dict[str, dict[str, list[Figures | None]]] = {
        task.name: {contender.name: [] for contender in here if contender.takes(task)} for task in tasks
    }
    for _ in range(arguments.rounds):
        for task in tasks:
            for contender in here:
                if contender.takes(task):
                    found[task.name][contender.name].append(attempt(contender, task, progress))
    result = summaries(found)
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    titles = {contender.name: contender.title for contender in here}
    console = Console() if sys.stdout.isatty() else Console(width=FILE_COLUMNS)
    for task in tasks:
        console.print(table_for(task.name, result[task.name], titles))
    console.print(
        "Ratios are ordercast to the contender: a rate above 1 and a p50 below 1 are in our favour."
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
