"""`ordercast epto`: choose parameters for EpTO, and simulate very many processes."""

from typing import Annotated

import typer

from ordercast.cli.epto_simulate import simulate
from ordercast.cli.output import console, print_json
from ordercast.core import LocalError, Nanos, format_ns
from ordercast.protocols.epto.clocks import Clock
from ordercast.protocols.epto.parameters import Conditions, Parameters
from ordercast.protocols.epto.parameters import parameters as choose

app = typer.Typer(
    no_args_is_help=True,
    help="EpTO (epidemic total order): choose parameters, and simulate very many processes.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(simulate)


@app.command()
def parameters(
    processes: Annotated[int, typer.Option(help="Largest number of processes.")],
    loss: Annotated[float, typer.Option(help="Fraction of messages that are lost: 0.05 is 5 %.")] = 0.0,
    churn: Annotated[
        float, typer.Option(help="Fraction of processes that leave per round; as many join.")
    ] = 0.0,
    drift: Annotated[
        float, typer.Option(help="Largest deviation of a round from its length, as a fraction.")
    ] = 0.0,
    latency_ms: Annotated[
        float, typer.Option(help="Largest latency to allow for, in milliseconds; 0 means unknown.")
    ] = 0.0,
    clock: Annotated[Clock, typer.Option(help="Clock that stamps events.")] = "logical",
    target: Annotated[
        float, typer.Option(help="Accepted probability that an event has a hole at any process.")
    ] = 1e-9,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Choose the fanout, TTL and round that make holes as rare as you accept, and show the probabilities.

    A hole is an event that some process never delivers. With few processes and message loss, no choice may be
    good enough; then the exit code is 2, and the error says which probability can be reached.

    By default the command assumes no loss, no churn and no drift. A peer without the options `fanout` and
    `ttl` chooses by the same lemmas, but assumes `loss` 0.01, `drift` 0.01, a known latency and `target` 1e-6
    unless its options say otherwise. `simulate` chooses as the paper's simulations do (c = 1.25, a global
    clock).

    [bold]Examples[/]

    ordercast epto parameters --processes 100

    ordercast epto parameters --processes 10000 --loss 0.05 --churn 0.01 --drift 0.01 --latency-ms 120
    """
    if not 0 <= latency_ms <= 3_600_000:
        raise LocalError(f"--latency-ms must be 0 to 3600000 (one hour), not {latency_ms}")
    chosen = choose(
        processes,
        loss=loss,
        churn=churn,
        drift=drift,
        latency=round(latency_ms * 1_000_000),
        clock=clock,
        target=target,
        strict=True,
    )
    if json:
        print_json(chosen)
    else:
        _show(chosen)
    return 0


def _show(chosen: Parameters) -> None:
    choices = [
        ("fanout", str(chosen.fanout), _why_fanout(chosen)),
        ("ttl", str(chosen.ttl), _why_ttl(chosen)),
    ]
    if chosen.round_ns is not None:
        why = "at least; longer than the latency even if drift shortens the round (Lemma 6)"
        why += "; add the longest pause of a process that you want to tolerate"
        choices.append(("round", format_ns(_rounded_up(chosen.round_ns), 3), why))
    width = max(len(value) for _, value, _ in choices)
    for name, value, why in choices:
        console.print(f"[bold]{name:<6}  {value:<{width}}[/]  {why}", soft_wrap=True)
    console.print("upper bounds of the probability that an event is missing")
    _show_bound(
        "at a process", chosen.hole_at_process, f"if it arrives {chosen.c:.2f} n log2(n) times (Figure 3)"
    )
    _show_bound("anywhere", chosen.hole_anywhere, f"under the same condition; target {chosen.target:g}")
    _show_bound("anywhere", chosen.proved_anywhere, "proved for rounds in step, without that condition")
    if chosen.round_ns is None:
        console.print("[dim]give --latency-ms to learn how long a round must last[/]")
    if chosen.ttl_proved is not None and chosen.ttl_proved < chosen.ttl:
        enough = f"for rounds in step, a proof shows that a ttl of {chosen.ttl_proved} is enough"
        console.print(f"[dim]the lemmas choose a large ttl: {enough}[/]", soft_wrap=True)


def _rounded_up(duration: Nanos) -> Nanos:
    """Round up to three significant digits, as people write durations into files."""
    unit: int = 10 ** max(0, len(str(duration)) - 3)
    return -(-duration // unit) * unit


def _show_bound(where: str, probability: float, when: str) -> None:
    console.print(f"  {where:<12}  {probability:>7.1e}  {when}", soft_wrap=True)


def _why_fanout(chosen: Parameters) -> str:
    conditions = chosen.conditions
    if chosen.fanout == conditions.n - 1:
        return "every process throws each ball to all others"
    if chosen.fanout > conditions.lemma_fanout():
        lemma = conditions.lemma_fanout()
        return f"more than the {lemma} of Lemma 7, because all balls of one throw may be lost"
    against = _against(conditions)
    return f"2e ln n / ln ln n{against} ({'Lemma 7' if against else 'Lemma 3'})"


def _against(conditions: Conditions) -> str:
    causes = [name for name in ("loss", "churn") if getattr(conditions, name)]
    return f", increased for {' and '.join(causes)}" if causes else ""


def _why_ttl(chosen: Parameters) -> str:
    conditions = chosen.conditions
    parts = [f"{chosen.rounds} rounds to spread (Lemma 3)"]
    if conditions.clock == "logical":
        parts.append("doubled for logical clocks (Lemma 4)")
    if conditions.drift:
        parts.append("increased for drift (Lemma 5)")
    if conditions.latency_ns:
        parts.append("plus one for the latency (Lemma 6)")
    return ", ".join(parts)
