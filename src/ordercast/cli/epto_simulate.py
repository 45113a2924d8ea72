"""`ordercast epto simulate`: a run of very many processes on the array engine, and its holes."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import msgspec
import typer

from ordercast.cli.output import console, print_json, progress_bar
from ordercast.core import LocalError
from ordercast.protocols.epto.parameters import lemma_parameters
from ordercast.protocols.epto.views import Sampling

if TYPE_CHECKING:  # imported only when something runs: Numba is an optional extra and slow to import
    from rich.progress import Progress

    from ordercast.engines.epto.holes import Hole
    from ordercast.engines.epto.network import Latencies
    from ordercast.engines.epto.run import Outcome
    from ordercast.engines.epto.setup import Setup

_WHO = "The processes"
_WORLD = "The network and the rounds"
_RESULT = "The result"
SHOWN = 10
LISTED = 1_000
"""How many holes are printed for people (SHOWN) and listed with --json (LISTED)."""
BYTES_MAX = 6 << 30
FIRST_BYTES_MAX = 1 << 30
"""The times of first arrivals are recorded if they need no more memory than this."""
PERCENTILES = (1, 5, 25, 50, 75, 95, 99)


def simulate(
    processes: Annotated[int, typer.Option(help="Number of processes.", rich_help_panel=_WHO)],
    fanout: Annotated[
        int, typer.Option(help="Fanout K; 0 chooses it by the lemmas.", rich_help_panel=_WHO)
    ] = 0,
    ttl: Annotated[int, typer.Option(help="TTL; 0 chooses it by the lemmas.", rich_help_panel=_WHO)] = 0,
    c: Annotated[float, typer.Option(help="Constant c of the lemmas.", rich_help_panel=_WHO)] = 1.25,
    clock: Annotated[
        str, typer.Option(help="Clock that stamps events: global or logical.", rich_help_panel=_WHO)
    ] = "global",
    rate: Annotated[
        float,
        typer.Option(help="Probability that a process broadcasts in a round.", rich_help_panel=_WHO),
    ] = 0.05,
    rounds: Annotated[int, typer.Option(help="Number of rounds with broadcasts.", rich_help_panel=_WHO)] = 20,
    events: Annotated[
        int, typer.Option(help="Follow only this many first events; 0 follows all.", rich_help_panel=_WHO)
    ] = 0,
    sampling: Annotated[
        str,
        typer.Option(
            help="Peer sampling: uniform, cyclon, or cyclon-authors (as in the paper's simulator).",
            rich_help_panel=_WHO,
        ),
    ] = "uniform",
    seed: Annotated[int, typer.Option(help="Seed of all random choices.", rich_help_panel=_WHO)] = 0,
    latencies: Annotated[
        str,
        typer.Option(
            metavar="FILE.npz|LIST",
            help="Latencies in ticks: a matrix in a file, or percentiles such as 5:15,50:125,95:366. "
            "Default: the published distribution.",
            rich_help_panel=_WORLD,
        ),
    ] = "",
    nodes: Annotated[
        bool,
        typer.Option(
            "--nodes", help="Place the first processes at the nodes of the matrix.", rich_help_panel=_WORLD
        ),
    ] = False,
    round_ticks: Annotated[
        int, typer.Option(help="Length of a round in ticks.", rich_help_panel=_WORLD)
    ] = 125,
    drift: Annotated[
        float,
        typer.Option(
            help="Largest deviation of a round from its length, as a fraction.", rich_help_panel=_WORLD
        ),
    ] = 0.01,
    loss: Annotated[
        float, typer.Option(help="Fraction of messages that are lost.", rich_help_panel=_WORLD)
    ] = 0.0,
    churn: Annotated[
        float,
        typer.Option(
            help="Fraction of processes that leave per round; as many join.", rich_help_panel=_WORLD
        ),
    ] = 0.0,
    in_step: Annotated[
        bool,
        typer.Option(
            "--in-step",
            help="All processes begin their rounds together, and drift does not add up.",
            rich_help_panel=_WORLD,
        ),
    ] = False,
    cores: Annotated[
        int, typer.Option(help="Number of cores to use; 0 uses all.", rich_help_panel=_RESULT)
    ] = 0,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder to write a trace to.", rich_help_panel=_RESULT),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_RESULT)
    ] = False,
) -> int:
    """Run EpTO with up to millions of processes, and show the delivery delays and the holes.

    A tick is the unit of latency; think of a millisecond. [bold]--events[/] lets a run of very many processes
    fit into memory. Events do not slow each other down, and with a global clock the first events are
    delivered as if all were followed. There is one exception: an event that arrives after later events were
    delivered is a hole if all events are followed, and may not be one if only the first are.

    A hole is an event that a process should have delivered and did not, because the event never arrived or
    arrived too late. Events that were broadcast before a process joined, or that it had not delivered when it
    left, are no holes. EpTO allows holes with a small probability, so they are no error. Exit code 1 means
    that the order was broken, which never happens.

    [bold]Examples[/]

    ordercast epto simulate --processes 1000

    ordercast epto simulate --processes 500 --churn 0.05 --sampling cyclon --json

    ordercast epto simulate --processes 100 --ttl 5 --latencies 50:80,99:400 --trace traces
    """
    from ordercast.engines.epto.run import run

    network = _latencies(latencies, nodes)
    chosen = lemma_parameters(processes, c, loss=loss, churn=churn, clock=_clock(clock))
    if sampling not in get_args(Sampling):
        raise LocalError(f"--sampling must be uniform, cyclon or cyclon-authors, not '{sampling}'")
    setup = _setup(
        processes=processes,
        fanout=fanout or max(1, chosen.fanout),
        ttl=ttl or chosen.ttl,
        clock=clock,
        round_ticks=round_ticks,
        drift=drift,
        rate=rate,
        rounds=rounds,
        loss=loss,
        churn=churn,
        sampling=sampling,
        in_step=in_step,
        tracked=events,
        seed=seed,
    )
    expected = _check_size(setup)
    if trace is not None:
        _check_trace(setup, expected)
    # Newcomers also get old events, which would distort how fast events spread.
    first = not churn and 4 * processes * expected <= FIRST_BYTES_MAX
    with progress_bar() as bar:
        _compile(bar, setup, network, expected, arrivals=first, cores=cores)
        start = time.perf_counter()
        task = bar.add_task(f"{processes:,} processes, {expected:,.0f} events", total=None)
        outcome = run(
            setup,
            network,
            arrivals=first,
            keep=trace is not None,
            cores=cores,
            progress=lambda done, wanted: bar.update(task, completed=done, total=wanted),
        )
        seconds = time.perf_counter() - start
    folder = _write(outcome, trace) if trace else None
    found = _object(outcome, seconds, folder)
    if json:
        print_json(found)
    else:
        _show(outcome, found, by_lemmas=not (fanout or ttl))
    return 1 if outcome.violations else 0


def _clock(clock: str) -> Any:
    if clock not in ("global", "logical"):
        raise LocalError(f"--clock must be global or logical, not '{clock}'")
    return clock


def _latencies(text: str, nodes: bool) -> Latencies:
    from ordercast.engines.epto.latencies import of_matrix, of_percentiles, published, read_matrix

    if text.endswith(".npz"):
        return of_matrix(read_matrix(Path(text)), nodes=nodes)
    if nodes:
        raise LocalError("--nodes needs a matrix of latencies: --latencies FILE.npz")
    if not text:
        return published()
    try:
        pairs = [tuple(map(float, each.split(":"))) for each in text.split(",")]
        knots = [(percent / 100, ticks) for percent, ticks in pairs]
    except ValueError:
        raise LocalError(
            f"--latencies must be a .npz file or percentiles with ticks such as 50:125,95:366, not '{text}'"
        ) from None
    return of_percentiles(knots)


def _setup(**content: object) -> Setup:
    from ordercast.engines.epto.setup import Setup

    try:
        return msgspec.convert(content, Setup)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        name = where.rstrip("`")
        option = "events" if name == "tracked" else name.replace("_", "-")
        raise LocalError(f"--{option} {content.get(name)}: {what[0].lower()}{what[1:]}") from None


def _check_size(setup: Setup) -> float:
    """The expected number of events; an error if they do not fit into memory."""
    expected = setup.rate * setup.processes * setup.rounds
    if setup.tracked:
        expected = min(expected, setup.tracked)
    size = 2 * setup.processes * (1 + setup.churn * (setup.rounds + 3 * setup.ttl)) * expected
    if size > BYTES_MAX:
        most = int(expected * BYTES_MAX / size)
        raise LocalError(
            f"{expected:,.0f} events of {setup.processes:,} processes need {size / 2**30:.0f} GiB of memory; "
            f"follow only the first events (at most --events {most}), or run fewer rounds"
        )
    return expected


def _check_trace(setup: Setup, expected: float) -> None:
    """Raise an error before the run if a trace cannot hold all deliveries."""
    from ordercast.engines.epto.trace import ROWS_MAX

    deliveries = setup.processes * expected
    if deliveries > ROWS_MAX:
        most = ROWS_MAX // setup.processes
        how = f"follow only the first events (at most --events {most}), or " if most else ""
        raise LocalError(
            f"--trace can hold {ROWS_MAX:,} deliveries, but {expected:,.0f} events of "
            f"{setup.processes:,} processes make {deliveries:,.0f}; {how}run without --trace"
        )


def _compile(
    bar: Progress, setup: Setup, network: Latencies, expected: float, *, arrivals: bool, cores: int
) -> None:
    """Run a tiny setup first, so that Numba compiles, or loads its cache, before the clock starts."""
    from ordercast.engines.epto.run import BLOCK_LEAST, run

    task = bar.add_task("compiling (only once)", total=None)
    # Numba compiles separate code for one block of events and for several.
    several = expected > BLOCK_LEAST and (cores or os.cpu_count() or 1) > 1
    tiny = msgspec.structs.replace(
        setup,
        processes=min(2, setup.processes),
        fanout=1,
        ttl=1,
        rate=0.99,
        rounds=BLOCK_LEAST if several else 2,
        churn=0.0,
        tracked=0,
    )
    run(tiny, network, arrivals=arrivals, cores=2 if several else 1)
    bar.remove_task(task)


def _write(outcome: Outcome, folder: Path) -> str:
    from ordercast.engines.epto.trace import write_trace

    return str(write_trace(outcome, folder))


def _percentiles(histogram: Any) -> dict[str, int]:
    """Percentiles of delays in ticks; empty without deliveries."""
    total, found, seen = int(histogram.sum()), {}, 0
    if not total:
        return {}
    wanted = [(f"p{percent:02}", max(1, -(-percent * total // 100))) for percent in PERCENTILES]
    for ticks, count in enumerate(histogram.tolist()):
        seen += count
        while wanted and seen >= wanted[0][1]:
            found[wanted.pop(0)[0]] = ticks
    return found | {"longest": len(histogram) - 1}


def _object(outcome: Outcome, seconds: float, folder: str | None) -> dict[str, Any]:
    """The run for programs, as JSON."""
    missing = outcome.holes()
    owed = [hole for hole in missing if hole.owed]
    return {
        "setup": outcome.setup,
        "events": len(outcome.events),
        "deliveries": outcome.deliveries,
        "delay_ticks": _percentiles(outcome.delays),
        "first_ball_ticks": _percentiles(outcome.arrivals),
        "holes": {
            "count": len(owed),
            "processes": len({hole.process for hole in owed}),
            "causes": dict(Counter(hole.cause for hole in owed)),
            "first": [_hole(outcome, hole) for hole in owed[:LISTED]],
        },
        "not_owed": _not_owed(outcome, missing),
        "not_listed": outcome.missing.not_listed,
        "out_of_order": outcome.violations,
        "seconds": round(seconds, 3),
        "process_rounds": outcome.rounds_run,
        "process_rounds_per_s": round(outcome.rounds_run / seconds),
        "memory_bytes": outcome.memory_bytes,
        "trace": folder,
    }


def _hole(outcome: Outcome, hole: Hole) -> dict[str, Any]:
    line = outcome.line
    turn = int(outcome.events.turn[hole.event] - line.first_turn[hole.source]) + 1
    return {
        "process": hole.process,
        "joined": hole.joined,
        "left": None if hole.left < 0 else hole.left,
        "event": {"source": hole.source, "round": turn, "tick": hole.born},
        "cause": hole.cause,
    }


def _show(outcome: Outcome, found: dict[str, Any], *, by_lemmas: bool) -> None:
    setup = outcome.setup
    others = setup.processes - 1
    fanout = f"fanout {setup.fanout}" + (f" (only {others} other processes)" if setup.fanout > others else "")
    about = f"{setup.processes:,} processes, {fanout}, ttl {setup.ttl}"
    about += f"{' (by the lemmas)' if by_lemmas else ''}, {setup.clock} clock"
    followed = f"{found['events']:,} events" + (" followed" if setup.tracked else "")
    console.print(f"{about}: {followed}", soft_wrap=True)
    _show_delays("delivered", found["delay_ticks"])
    _show_delays("first ball", found["first_ball_ticks"])
    _show_holes(found)
    if found["out_of_order"]:
        console.print(f"[bold red]{found['out_of_order']:,} deliveries out of order[/]")
    else:
        console.print(f"order       kept in all {found['deliveries']:,} deliveries")
    speed = f"{found['process_rounds']:,} rounds of processes in {found['seconds']:.3g} s"
    per_s = f"{found['process_rounds_per_s']:,} per second"
    console.print(
        f"[dim]{speed}, {per_s}; {found['memory_bytes'] / 2**20:,.1f} MiB of arrays[/]", soft_wrap=True
    )
    if found["trace"]:
        console.print(f"trace: {found['trace']}", markup=False, soft_wrap=True)


def _show_delays(name: str, delays: dict[str, int]) -> None:
    if delays:
        said = ", ".join(f"{percentile} {ticks}" for percentile, ticks in delays.items())
        console.print(f"{name:<10}  {said} ticks", soft_wrap=True)


def _not_owed(outcome: Outcome, missing: list[Hole]) -> dict[str, int]:
    """The number of missing deliveries that were not owed, by cause."""
    causes = Counter({"left before": outcome.missing.left_before})
    causes.update(hole.cause for hole in missing if not hole.owed)
    return {cause: count for cause, count in causes.items() if count}


def _show_holes(found: dict[str, Any]) -> None:
    holes = found["holes"]
    if not holes["count"] and not found["not_listed"]:
        console.print("holes       [green]none[/]")
    else:
        causes = ", ".join(f"{count:,} {cause}" for cause, count in holes["causes"].items())
        where = f"{holes['count']:,} at {holes['processes']:,} processes"
        console.print(f"holes       [yellow]{where}[/]: {causes}", soft_wrap=True)
    for hole in holes["first"][:SHOWN]:
        event = hole["event"]
        joined = f", which joined at tick {hole['joined']}," if hole["joined"] else ""
        said = f"lacks the event that process {event['source']} broadcast at tick {event['tick']}"
        said += f": {hole['cause']}"
        console.print(f"  process {hole['process']}{joined} {said}", soft_wrap=True)
    if holes["count"] > SHOWN:
        console.print(f"  ... and {holes['count'] - SHOWN:,} more; --json lists up to {LISTED:,}")
    if found["not_owed"]:
        excused = ", ".join(f"{count:,} {cause}" for cause, count in found["not_owed"].items())
        console.print(f"not owed    {excused}", soft_wrap=True)
    if found["not_listed"]:
        console.print(f"[yellow]{found['not_listed']:,} more deliveries are missing, too many to list[/]")
