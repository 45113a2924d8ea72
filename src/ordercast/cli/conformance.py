"""`ordercast conformance`: test whether a protocol keeps its contract."""

from collections.abc import Callable
from typing import Annotated

import typer

from ordercast.catalogue import find_protocol
from ordercast.cli.output import console, print_json, progress_bar
from ordercast.core import Deployment, Plan
from ordercast.scenario.seeds import parse_seeds
from ordercast.sim.conformance import Failure, clauses
from ordercast.sim.conformance import conformance as run_suite

SHOWN_MAX = 20


def conformance(
    protocol: Annotated[str, typer.Option(help="Protocol name; `ordercast protocols` lists them.")],
    seeds: Annotated[str, typer.Option(help="Seeds A:B, from A to B-1; or one seed.")] = "0:20",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Test whether a protocol keeps its contract, with its default options.

    With each seed, the suite goes through these clauses:

    [dim]calm[/]: on a good network without faults, every message reaches all of its receivers.

    [dim]each fault[/]: one kind of fault that the protocol tolerates, alone; the seeds take them in turn.

    [dim]everything[/]: faults of all kinds that it tolerates, together, as in a swarm.

    [dim]determinism[/]: the same seed gives the same run: no wall clock, no order of a set, no own dice.

    [dim]codec[/]: the run is the same if packets pass through the codec: messages are immutable and complete.

    [dim]explanations[/]: asking a process to explain itself changes nothing.

    [dim]bad input[/]: a message to an unknown group is refused with `LocalError`.

    A failure names the clause, the seed and what was found. The exit code is 1 if there is one.

    [bold]Example[/]

    ordercast conformance --protocol atomic_multicast --seeds 0:5
    """
    wanted = parse_seeds(seeds)
    make_plan = _plans(protocol)
    with progress_bar() as bar:
        task = bar.add_task(protocol, total=len(wanted) * len(clauses()))
        failures = run_suite(make_plan, wanted, lambda: bar.advance(task))
    if json:
        print_json({"protocol": protocol, "seeds": len(wanted), "clauses": clauses(), "failures": failures})
    else:
        _show(protocol, len(wanted), failures)
    return 1 if failures else 0


def _plans(protocol: str) -> Callable[[Deployment], Plan]:
    found = find_protocol(protocol)
    return lambda deployment: found.deploy(deployment, found.options())


def _show(protocol: str, seeds: int, failures: list[Failure]) -> None:
    if not failures:
        console.print(f"[green]{protocol} keeps its contract[/]: {len(clauses())} clauses, {seeds} seeds")
        return
    console.print(f"[bold red]{protocol} breaks its contract[/]: {len(failures)} failures")
    for failure in failures[:SHOWN_MAX]:
        text = f"  {failure.clause}, seed {failure.seed}: {failure.property}: {failure.message}"
        console.print(text, markup=False, soft_wrap=True)
    if len(failures) > SHOWN_MAX:
        console.print(f"  ... and {len(failures) - SHOWN_MAX} more")
