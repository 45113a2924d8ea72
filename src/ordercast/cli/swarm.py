"""`ordercast swarm`: simulate many seeds, each with its own scenario and faults of all kinds."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Annotated

import msgspec
import typer

from ordercast.catalogue import find_protocol
from ordercast.cli.output import console, print_json, progress_bar
from ordercast.core import LocalError, exception_text
from ordercast.scenario.seeds import parse_seeds
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import simulate


class SwarmFailure(msgspec.Struct, frozen=True):
    """A violation or exception that a seed found."""

    seed: int
    property: str
    message: str


def swarm(
    protocol: Annotated[str, typer.Option(help="Protocol name; `ordercast protocols` lists them.")],
    seeds: Annotated[str, typer.Option(help="Seeds A:B, from A to B-1; or one seed.")] = "0:100",
    jobs: Annotated[int, typer.Option(help="Number of processes; 0 means one per core.", min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Test a protocol on many seeds, with all faults that it claims to tolerate.

    Each seed draws a deployment, a network, a load and a schedule of faults. At the end all faults heal, and
    every message that the protocol owes must be delivered. `ordercast replay` shows what a seed did.

    [bold]Example[/]

    ordercast swarm --protocol atomic_multicast --seeds 0:500
    """
    find_protocol(protocol)
    wanted = parse_seeds(seeds)
    failures: list[SwarmFailure] = []
    with progress_bar() as bar:
        task = bar.add_task(f"{protocol}", total=len(wanted))
        for found in _results(protocol, wanted, jobs or os.cpu_count() or 1):
            failures += found
            bar.advance(task)
    if json:
        print_json({"protocol": protocol, "runs": len(wanted), "failures": failures})
    else:
        _show(protocol, len(wanted), failures)
    return 1 if failures else 0


def _results(protocol: str, seeds: range, jobs: int) -> Iterator[list[SwarmFailure]]:
    if jobs == 1 or len(seeds) == 1:
        for seed in seeds:
            yield try_seed(protocol, seed)
        return
    # Spawned, not forked: a child must not inherit threads that Arrow may have started.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(seeds)), context, initializer=_be_a_child)
    chunk = max(1, min(10, len(seeds) // (4 * jobs)))
    try:
        # Children inherit the blocked signal: only the parent handles Ctrl-C, also while they start.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            results = pool.map(try_seed, [protocol] * len(seeds), seeds, chunksize=chunk)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        yield from results
    except (BrokenProcessPool, OSError) as error:
        raise LocalError(f"a process of the swarm failed: {error}; try --jobs 1") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _be_a_child() -> None:
    """Leave Ctrl-C to the parent, and exit when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def try_seed(protocol: str, seed: int) -> list[SwarmFailure]:
    """Run one seed. An exception in the protocol is a failure of this seed only."""
    try:
        run = simulate(swarm_scenario(protocol, seed))
    except Exception as error:
        return [SwarmFailure(seed, "exception", exception_text(error))]
    return [SwarmFailure(seed, violation.property, violation.detail) for violation in run.violations]


def _show(protocol: str, runs: int, failures: list[SwarmFailure]) -> None:
    bad = sorted({failure.seed for failure in failures})
    if not bad:
        console.print(f"[green]{protocol} kept every promise[/] on {runs} seeds")
        return
    console.print(f"[bold red]{protocol} failed on {len(bad)} of {runs} seeds[/]")
    for seed in bad[:10]:
        failure = next(failure for failure in failures if failure.seed == seed)
        console.print(f"  seed {seed}: {failure.property}: {failure.message}", markup=False)
    which = f"--protocol {protocol} --seed {bad[0]}"
    console.print(f"  to see one: ordercast replay {which}")
    console.print(f"  to make it smaller first: ordercast shrink {which}")
