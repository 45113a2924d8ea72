"""`ordercast epto`: what to choose for EpTO, and why; and runs with very many processes."""

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
    help="Epidemic total order: choose its parameters, and try them with very many processes.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(simulate)


@app.command()
def parameters(
    processes: Annotated[int, typer.Option(help="How many there are, or will be at most.")],
    loss: Annotated[float, typer.Option(help="The share of messages that are lost: 0.05 is 5 %.")] = 0.0,
    churn: Annotated[float, typer.Option(help="The share that leaves in a round, as many joining.")] = 0.0,
    drift: Annotated[float, typer.Option(help="By which share rounds are longer or shorter.")] = 0.0,
    latency_ms: Annotated[
        float, typer.Option(help="The largest that counts, in milliseconds; 0: not known.")
    ] = 0.0,
    clock: Annotated[Clock, typer.Option(help="How events are stamped.")] = "logical",
    target: Annotated[float, typer.Option(help="The accepted probability of a hole anywhere.")] = 1e-9,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Say which fanout, TTL and round keep holes as rare as you accept, and what they achieve.

    A hole is an event that some process never delivers. With few processes that lose messages no choice may
    be good enough; then the exit code is 2, and the message says what can be had.

    Without options it assumes no loss, churn or drift. A peer whose `fanout` and `ttl` are not given chooses
    by the same lemmas, but for `loss` 0.01, `drift` 0.01, a latency that counts and `target` 1e-6, unless its
    options say otherwise; `simulate` chooses as the paper's simulations do (c = 1.25, a global clock).

    [bold]Examples[/]

    ordercast epto parameters --processes 100

    ordercast epto parameters --processes 10000 --loss 0.05 --churn 0.01 --drift 0.01 --latency-ms 120
    """
    if not 0 <= latency_ms <= 3_600_000:
        raise LocalError(f"--latency-ms is 0 to an hour, not {latency_ms}")
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
        why = "at least, above the latency even when drift cuts it short (Lemma 6)"
        why += "; plus the longest pause that you want to bear"
        choices.append(("round", format_ns(_rounded_up(chosen.round_ns), 3), why))
    width = max(len(value) for _, value, _ in choices)
    for name, value, why in choices:
        console.print(f"[bold]{name:<6}  {value:<{width}}[/]  {why}", soft_wrap=True)
    console.print("an event is missing, with a probability of at most")
    _show_bound(
        "at a process", chosen.hole_at_process, f"if it arrives {chosen.c:.2f} n log2(n) times (Figure 3)"
    )
    _show_bound("anywhere", chosen.hole_anywhere, f"the same; {chosen.target:g} is accepted")
    _show_bound("anywhere", chosen.proved_anywhere, "for rounds in step, however often it arrives")
    if chosen.round_ns is None:
        console.print("[dim]--latency-ms says how long a round must last[/]")
    if chosen.ttl_proved is not None and chosen.ttl_proved < chosen.ttl:
        enough = f"for rounds in step a ttl of {chosen.ttl_proved} is proved to be enough"
        console.print(f"[dim]the lemmas are generous: {enough}[/]", soft_wrap=True)


def _rounded_up(duration: Nanos) -> Nanos:
    """To three figures: nobody writes more into a file."""
    unit: int = 10 ** max(0, len(str(duration)) - 3)
    return -(-duration // unit) * unit


def _show_bound(where: str, probability: float, when: str) -> None:
    console.print(f"  {where:<12}  {probability:>7.1e}  {when}", soft_wrap=True)


def _why_fanout(chosen: Parameters) -> str:
    conditions = chosen.conditions
    if chosen.fanout == conditions.n - 1:
        return "everybody throws at all others"
    if chosen.fanout > conditions.lemma_fanout():
        lemma = conditions.lemma_fanout()
        return f"more than the {lemma} of Lemma 7, for a whole throw may be lost"
    against = _against(conditions)
    return f"2e ln n / ln ln n{against} ({'Lemma 7' if against else 'Lemma 3'})"


def _against(conditions: Conditions) -> str:
    causes = [name for name in ("loss", "churn") if getattr(conditions, name)]
    return f", and more against {' and '.join(causes)}" if causes else ""


def _why_ttl(chosen: Parameters) -> str:
    conditions = chosen.conditions
    parts = [f"{chosen.rounds} rounds to spread (Lemma 3)"]
    if conditions.clock == "logical":
        parts.append("twice for logical clocks (Lemma 4)")
    if conditions.drift:
        parts.append("longer for drift (Lemma 5)")
    if conditions.latency_ns:
        parts.append("and one for the latency (Lemma 6)")
    return ", ".join(parts)
