"""`ordercast atoms`: look at sequencing graphs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ordercast.cli.output import console, print_json
from ordercast.components.sequencing_graph import GROUPINGS, Network, build
from ordercast.components.sequencing_graph.text import read_network, write_network
from ordercast.core import LocalError
from ordercast.report.atom_picture import DrawnAtom, draw_atoms

app = typer.Typer(
    no_args_is_help=True,
    help="Sequencing atoms: consistent order for many overlapping groups.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def atoms() -> None:
    """Sequencing atoms: consistent order for many overlapping groups."""


@app.command()
def draw(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the picture goes (SVG).")] = Path(
        "atoms.svg"
    ),
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Groups, or a whole graph, as JSON. Default: random groups."),
    ] = None,
    groups: Annotated[int, typer.Option(min=1, max=1_000, help="Number of random groups.")] = 12,
    hosts: Annotated[int, typer.Option(min=2, max=100_000, help="Number of hosts that may be members.")] = 32,
    seed: Annotated[int, typer.Option(help="Seed of the random groups.")] = 0,
    nodes: Annotated[
        Literal["apart", "nested", "shared_member"], typer.Option(help="Which atoms share a sequencing node.")
    ] = "shared_member",
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the graph as JSON, too; --file reads it.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Draw a sequencing graph: groups as coloured lines through atoms, atoms on their nodes.

    A file has the members of each group. With `atoms` and `paths`, it has a whole graph, which must meet the
    conditions (one path for each group, no loop, no channel in both directions, an atom for every double
    overlap). Without, a graph is built. Random groups have sizes that follow Zipf's law.

    [bold]Examples[/]

    ordercast atoms draw --groups 30 --hosts 64 --out graph.svg

    echo '{"groups": {"0": [1, 2, 3], "1": [2, 3], "2": [1, 2, 4]}}' > groups.json

    ordercast atoms draw --file groups.json
    """
    network = _random(groups, hosts, seed) if file is None else _read(file)
    drawn = _drawn(network, nodes)
    members = {group: len(those) for group, those in network.members.items()}
    _write(out, draw_atoms(members, drawn, network.paths))
    if write is not None:
        _write(write, write_network(network))
    count = len(frozenset(atom.node for atom in drawn))
    if json:
        print_json({"groups": len(members), "atoms": len(drawn), "nodes": count, "picture": str(out)})
    else:
        console.print(f"{len(members)} groups, {len(drawn)} atoms on {count} nodes: {out}", soft_wrap=True)
    return 0


def _random(groups: int, hosts: int, seed: int) -> Network:
    from ordercast.experiments.atoms.worlds import zipf_groups

    if seed < 0:
        raise LocalError(f"--seed must be 0 or more, not {seed}")
    return build(zipf_groups(hosts, groups, seed)).network()


def _read(file: Path) -> Network:
    try:
        return read_network(file.read_bytes())
    except OSError as error:
        raise LocalError(f"{file}: {error.strerror}") from error
    except LocalError as error:
        raise LocalError(f"{file}: {error}") from error


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LocalError(f"{file}: {error.strerror}") from error


def _drawn(network: Network, nodes: str) -> list[DrawnAtom]:
    """The atoms in the order of their columns: each after those that send to it, and near them."""
    before: dict[int, list[int]] = {atom: [] for atom in network.atoms}
    after: dict[int, list[int]] = {atom: [] for atom in network.atoms}
    for source, target in network.channels():
        before[target].append(source)
        after[source].append(target)
    node_of = {atom: node for node, those in enumerate(GROUPINGS[nodes](network)) for atom in those}
    found: list[DrawnAtom] = []
    missing = {atom: len(sources) for atom, sources in before.items()}
    waiting = sorted((atom for atom in before if not before[atom]), reverse=True)
    while waiting:
        atom = waiting.pop()
        found.append(DrawnAtom(atom, network.atoms[atom], node_of[atom], tuple(before[atom])))
        for target in sorted(after[atom], reverse=True):
            missing[target] -= 1
            if not missing[target]:
                waiting.append(target)
    return found
