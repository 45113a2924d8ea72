"""`ordercast model`: model-check a protocol's specification, and explore all small runs of its code."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ordercast.cli.output import console, errors, print_json
from ordercast.core import LocalError

if TYPE_CHECKING:
    # Imported only when a model is checked.
    from ordercast.lab.model.result import Result


def model(
    protocol: Annotated[
        str, typer.Argument(metavar="PROTOCOL", help="Protocol to check: hydra or hydra_paxos.")
    ],
    deep: Annotated[bool, typer.Option("--deep", help="Also run the checks that take minutes.")] = False,
    spec_only: Annotated[bool, typer.Option("--spec-only", help="Check only the specification.")] = False,
    code_only: Annotated[bool, typer.Option("--code-only", help="Explore only the code.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Check a protocol's TLA+ specification with TLC, and all interleavings of small runs of its code.

    Most checks must hold. Some checks of the specification must fail: [dim]reach-[/] checks prove that an
    event can happen, and [dim]broken-[/] checks prove that a property fails when a rule is removed.

    HydraPaxos has no specification: only its code is explored.

    The command needs the package extra [dim]model[/]. The exit code is 1 if a check has an unexpected result.

    [bold]Examples[/]

    ordercast model hydra --spec-only

    ordercast model hydra --deep --json

    ordercast model hydra_paxos
    """
    if spec_only and code_only:
        raise LocalError("--spec-only and --code-only leave nothing to check")
    from ordercast.lab.model.explorer import explore_all
    from ordercast.lab.model.tlc import has_specification, list_checks, run_check

    results: dict[str, list[Result]] = {}
    if not code_only and (spec_only or has_specification(protocol)):
        checks = [check for check in list_checks(protocol) if deep or not check.deep]
        results["specification"] = _all(run_check(check) for check in checks)
    if not spec_only:
        results["code"] = _all(explore_all(protocol, deep))
    if json:
        print_json({part: [_object(result) for result in found] for part, found in results.items()})
    else:
        for part, found in results.items():
            _show(part, found)
    return 0 if all(result.ok for found in results.values() for result in found) else 1


def _all(results: "Iterable[Result]") -> "list[Result]":
    """Collect the results one by one, and show the progress."""
    found: list[Result] = []
    with errors.status("checking") as status:
        for result in results:
            found.append(result)
            status.update(f"{len(found)} checked, last {escape(result.name)}")
    return found


def _show(part: str, results: "list[Result]") -> None:
    width = max(len(name) for name in (part, *(result.name for result in results)))
    console.print(f"[bold]{part:<{width}}  {'states':>9}  {'seconds':>7}[/]")
    for result in results:
        counts = f"{result.states:>9}  {result.seconds:>7.1f}"
        colour = "green" if result.ok else "bold red"
        instead = _beside(result)
        verdict = f"[{colour}]{escape(result.found)}[/]{escape(instead)}"
        console.print(f"{escape(result.name):<{width}}  {counts}  {verdict}", soft_wrap=True)
        console.print(f"  [dim]{escape(result.shows)}[/]", soft_wrap=True)
        if not result.ok and result.detail:
            console.print(result.detail, markup=False, soft_wrap=True)
    surprises = sum(not result.ok for result in results)
    told = f"[bold red]{surprises} not as expected[/]" if surprises else "[green]all as expected[/]"
    console.print(f"{len(results)} checks: {told}")


def _beside(result: "Result") -> str:
    """A note after the result, so that an expected violation is not taken for a defect."""
    if not result.ok:
        return f", expected: {result.expected}"
    return "" if result.expected == "holds" else ", as expected"


def _object(result: "Result") -> dict[str, object]:
    return {
        "name": result.name,
        "shows": result.shows,
        "states": result.states,
        "seconds": round(result.seconds, 3),
        "expected": result.expected,
        "found": result.found,
        "ok": result.ok,
        "detail": result.detail,
    }
