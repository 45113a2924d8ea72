"""`ordercast swarm`: simulate many seeds, each with its own scenario and faults of all kinds."""

import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Annotated

import msgspec
import typer

from ordercast.catalogue import find_protocol
from ordercast.cli.output import console, print_json, progress_bar
from ordercast.core import Fault, LocalError, Nanos, exception_text, format_ns
from ordercast.judge import Violation
from ordercast.scenario.seeds import parse_seeds
from ordercast.scenario.swarm import swarm_scenario
from ordercast.sim.run import Run, simulate
from ordercast.trace import CARRYING

SEEDS_ASKED = 100
"""Seeds of which one must have the kind of fault that is asked for."""


class SwarmFailure(msgspec.Struct, frozen=True):
    """A violation or exception that a seed found."""

    seed: int
    property: str
    message: str


class SeedResult(msgspec.Struct, frozen=True):
    """What one seed did, and what it found."""

    failures: list[SwarmFailure]
    submitted: int = 0
    delivered: int = 0
    """Different messages that some receiver delivered."""
    drops: int = 0
    holes: int = 0
    complete: bool = False
    ending: str = ""
    recovery_ns: Nanos = 0
    """How long after the last fault the last message was delivered that had been submitted before."""


class SwarmNumbers(msgspec.Struct, frozen=True):
    """What all seeds together did."""

    submitted: int
    delivered: int
    drops: int
    holes: int
    incomplete: int
    """Runs in which promises about the end could not be judged."""
    endings: dict[str, int]
    slowest_recovery_ns: Nanos


def swarm(
    protocol: Annotated[str, typer.Option(help="Protocol name; `ordercast protocols` lists them.")],
    seeds: Annotated[str, typer.Option(help="Seeds A:B, from A to B-1; or one seed.")] = "0:100",
    fault: Annotated[
        Fault | None,
        typer.Option(help="The only kind of fault. Default: each seed chooses among those tolerated."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Number of processes; 0 means one per core.", min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Test a protocol on many seeds, with all faults that it claims to tolerate.

    Each seed draws a deployment, a network, a load, options and a schedule of faults. While faults last,
    enough nodes that are up and connected must go on. In most seeds all faults heal at the end; then every
    message that the protocol owes must be delivered, and so must new ones. `ordercast replay` shows what a
    seed did.

    [bold]Examples[/]

    ordercast swarm --protocol atomic_multicast --seeds 0:500

    ordercast swarm --protocol atomic_multicast --seeds 0:500 --fault disk
    """
    find_protocol(protocol)
    wanted = parse_seeds(seeds)
    _refuse_what_cannot_happen(protocol, wanted, fault)
    results: list[SeedResult] = []
    with progress_bar() as bar:
        task = bar.add_task(f"{protocol}", total=len(wanted))
        for result in _results(protocol, wanted, fault, jobs or os.cpu_count() or 1):
            results.append(result)
            bar.advance(task)
    failures = [failure for result in results for failure in result.failures]
    if json:
        told = {"protocol": protocol, "fault": fault, "runs": len(wanted), "failures": failures}
        print_json(told | msgspec.structs.asdict(_numbers(results)))
    else:
        _show(protocol, len(wanted), fault, failures)
        _show_numbers(_numbers(results))
    return 1 if failures else 0


def _refuse_what_cannot_happen(protocol: str, seeds: range, fault: Fault | None) -> None:
    """Refuse a kind of fault that no seed has: a swarm without faults would say nothing about it."""
    drawn = (swarm_scenario(protocol, seed) for seed in seeds[:SEEDS_ASKED])
    if fault and not any(fault in scenario.plan().guarantees.tolerates for scenario in drawn):
        raise LocalError(f"{protocol} does not claim to tolerate {fault}, so no seed has it")


def _results(protocol: str, seeds: range, fault: Fault | None, jobs: int) -> Iterator[SeedResult]:
    if jobs == 1 or len(seeds) == 1:
        for seed in seeds:
            yield try_seed(protocol, seed, fault)
        return
    # Spawned, not forked: a child must not inherit threads that Arrow may have started.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(seeds)), context, initializer=_be_a_child)
    chunk = max(1, min(10, len(seeds) // (4 * jobs)))
    try:
        # Children inherit the blocked signal: only the parent handles Ctrl-C, also while they start.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            results = pool.map(partial(try_seed, protocol, fault=fault), seeds, chunksize=chunk)
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


def try_seed(protocol: str, seed: int, fault: Fault | None = None) -> SeedResult:
    """Run one seed. An exception in the protocol is a failure of this seed only."""
    try:
        run = simulate(swarm_scenario(protocol, seed, only=fault))
    except Exception as error:
        return SeedResult([SwarmFailure(seed, "exception", exception_text(error))])
    summary = run.summary()
    return SeedResult(
        [SwarmFailure(seed, found.property, _message(run, found)) for found in run.violations],
        submitted=summary.submitted,
        delivered=len({event.message for event in run.events() if event.kind in CARRYING}),
        drops=summary.dropped,
        holes=run.holes.count if run.holes else 0,
        complete=run.description.complete,
        ending=run.ending,
        recovery_ns=_recovery(run),
    )


def _message(run: Run, found: Violation) -> str:
    """What was found, and who waits for whom if something is missing at the end."""
    reason = run.reason(found)
    return f"{found.detail}; {reason}" if reason else found.detail


def _recovery(run: Run) -> Nanos:
    healed = max((fault.ends_ns for fault in run.scenario.fault), default=0)
    late = [
        event.time_ns - healed
        for event in run.events()
        if event.kind in CARRYING and event.submitted_ns is not None and event.submitted_ns <= healed
    ]
    return max(0, *late) if healed and late else 0


def _numbers(results: list[SeedResult]) -> SwarmNumbers:
    return SwarmNumbers(
        submitted=sum(result.submitted for result in results),
        delivered=sum(result.delivered for result in results),
        drops=sum(result.drops for result in results),
        holes=sum(result.holes for result in results),
        incomplete=sum(not result.complete for result in results),
        endings=dict(sorted(Counter(result.ending for result in results if result.ending).items())),
        slowest_recovery_ns=max((result.recovery_ns for result in results), default=0),
    )


def _show_numbers(numbers: SwarmNumbers) -> None:
    console.print(
        f"  {numbers.delivered} of {numbers.submitted} messages delivered,"
        f" {numbers.drops} drop notifications, {numbers.holes} holes",
        soft_wrap=True,
    )
    told = ", ".join(f"{count} {ending}" for ending, count in numbers.endings.items())
    console.print(f"  endings: {told or 'none'}; {numbers.incomplete} runs not complete", soft_wrap=True)
    console.print(f"  slowest recovery after the last fault: {format_ns(numbers.slowest_recovery_ns, 3)}")


def _show(protocol: str, runs: int, fault: Fault | None, failures: list[SwarmFailure]) -> None:
    bad = sorted({failure.seed for failure in failures})
    if not bad:
        console.print(f"[green]{protocol} kept every promise[/] on {runs} seeds")
        return
    console.print(f"[bold red]{protocol} failed on {len(bad)} of {runs} seeds[/]")
    for seed in bad[:10]:
        failure = next(failure for failure in failures if failure.seed == seed)
        console.print(f"  seed {seed}: {failure.property}: {failure.message}", markup=False)
    which = f"--protocol {protocol} --seed {bad[0]}" + (f" --fault {fault}" if fault else "")
    console.print(f"  to see one: ordercast replay {which}")
    console.print(f"  to make it smaller first: ordercast shrink {which}")
