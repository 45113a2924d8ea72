"""`ordercast model`: check a protocol's specification, and explore its code, in all small runs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ordercast.cli.output import console, errors, print_json
from ordercast.core import LocalError

if TYPE_CHECKING:
    # At run time only when a model is checked.
    from ordercast.lab.model.result import Result


def model(
    protocol: Annotated[str, typer.Argument(metavar="PROTOCOL", help="Which protocol: hydra.")],
    deep: Annotated[bool, typer.Option("--deep", help="Also what takes minutes.")] = False,
    spec_only: Annotated[bool, typer.Option("--spec-only", help="Only the specification.")] = False,
    code_only: Annotated[bool, typer.Option("--code-only", help="Only the code.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Check a protocol's TLA+ specification with TLC, and all interleavings of small runs of its code.

    Some checks must hold. Others, of the specification, must fail: those named [dim]reach-[/] prove that an
    event can happen at all, those named [dim]broken-[/] that a property notices when a rule is left out.

    Needs the extra [dim]model[/] of the package. Exit code 1 if a check went other than expected.

    [bold]Examples[/]

    ordercast model hydra --spec-only

    ordercast model hydra --deep --json
    """
    if spec_only and code_only:
        raise LocalError("--spec-only and --code-only leave nothing to check")
    from ordercast.lab.model.explorer import explore_all
    from ordercast.lab.model.tlc import list_checks, run_check

    checks = [check for check in list_checks(protocol) if deep or not check.deep]
    results: dict[str, list[Result]] = {}
    if not code_only:
        results["specification"] = _all(run_check(check) for check in checks)
    if not spec_only:
        results["code"] = _all(explore_all(deep))
    if json:
        print_json({part: [_object(result) for result in found] for part, found in results.items()})
    else:
        for part, found in results.items():
            _show(part, found)
    return 0 if all(result.ok for found in results.values() for result in found) else 1


def _all(results: "Iterable[Result]") -> "list[Result]":
    """Take them one after the other, and tell a person who watches how far it is."""
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
    told = f"[bold red]{surprises} other than expected[/]" if surprises else "[green]all as expected[/]"
    console.print(f"{len(results)} checks: {told}")


def _beside(result: "Result") -> str:
    """What to say after an outcome, so that a violation that must be is not taken for a defect."""
    if not result.ok:
        return f", expected: {result.expected}"
    return "" if result.expected == "holds" else ", as it must be"


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
