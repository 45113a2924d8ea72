"""A picture of a sequencing graph: groups as coloured lines through atoms, atoms on their nodes; as SVG.

Every group has a row, and every atom a column, the atoms above to the left of those below. A group's line
goes from its first atom to its last: it has a dot at each atom that numbers it, is thin where it is only
passed on, and is broken where a column is in another branch. A bar joins the groups that an atom orders.
Frames are sequencing nodes. An arc above leads to an atom from the one before it, where that is not its
neighbour.

So the picture grows with groups times atoms, and a path can be followed with a finger, whatever the graph
looks like.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

ROW, COLUMN = 22, 20
LEFT, TOP, BOTTOM = 150, 120, 46
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444", "#7f3c8d", "#a5aa99")
STYLE = (
    "text{font:12px sans-serif;fill:#222}.small{font-size:10px}.title{font-size:15px;font-weight:bold}"
    ".node{fill:#f1f1f1;stroke:#999}.bar{stroke:#222;stroke-width:2}.arc{fill:none;stroke:#888}"
    ".own{stroke-width:4}.passed{stroke-width:1.6}.beside{stroke-width:1;stroke-dasharray:1 4}"
)


@dataclass(frozen=True, slots=True)
class DrawnAtom:
    """One column."""

    name: int
    groups: tuple[int, ...]
    node: int
    before: tuple[int, ...]
    """The atoms that send to it."""


def draw_atoms(
    members: Mapping[int, int], atoms: Sequence[DrawnAtom], paths: Mapping[int, Sequence[int]]
) -> str:
    """The picture. `atoms` come in the order of their columns, `members` are numbers of members by group."""
    columns = {atom.name: place for place, atom in enumerate(atoms)}
    groups = sorted(members, key=lambda group: (columns[paths[group][0]], -members[group], group))
    rows = {group: row for row, group in enumerate(groups)}
    width, height = max(620, LEFT + COLUMN * len(atoms) + 30), TOP + ROW * len(rows) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(_title(members, atoms))}</title><style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text class="title" x="12" y="22">{escape(_title(members, atoms))}</text>',
        '<text class="small" x="12" y="40">dot: the atom numbers the group; thin: it passes the group on;'
        " dotted: another branch; frame: a node</text>",
        *_frames(atoms, len(rows)),
        *_arcs(atoms, columns),
        *_lines(rows, members, columns, atoms, paths),
        *_bars(atoms, rows),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _title(members: Mapping[int, int], atoms: Sequence[DrawnAtom]) -> str:
    nodes = len(frozenset(atom.node for atom in atoms))
    return f"{len(members)} groups, {len(atoms)} atoms, {nodes} sequencing nodes"


def _x(column: int) -> int:
    return LEFT + COLUMN * column + COLUMN // 2


def _y(row: int) -> int:
    return TOP + ROW * row + ROW // 2


def _frames(atoms: Sequence[DrawnAtom], rows: int) -> Iterator[str]:
    first = 0
    for place in range(1, len(atoms) + 1):
        if place < len(atoms) and atoms[place].node == atoms[first].node:
            continue
        x, width = LEFT + COLUMN * first + 1, COLUMN * (place - first) - 2
        yield f'<rect class="node" x="{x}" y="{TOP}" width="{width}" height="{ROW * rows}" rx="5"/>'
        label = f"node {atoms[first].node}" if place - first > 2 else f"{atoms[first].node}"
        yield f'<text class="small" x="{x + 2}" y="{TOP + ROW * rows + 14}">{label}</text>'
        first = place


def _arcs(atoms: Sequence[DrawnAtom], columns: Mapping[int, int]) -> Iterator[str]:
    for place, atom in enumerate(atoms):
        yield f'<text class="small" x="{_x(place)}" y="{TOP - 6}" text-anchor="middle">{atom.name}</text>'
        for source in atom.before:
            start, end = _x(columns[source]), _x(place)
            if columns[source] == place - 1:
                continue
            peak = TOP - 20 - min(44, abs(end - start) // 8)
            yield f'<path class="arc" d="M{start} {TOP - 18}Q{(start + end) // 2} {peak} {end} {TOP - 18}"/>'


def _lines(
    rows: Mapping[int, int],
    members: Mapping[int, int],
    columns: Mapping[int, int],
    atoms: Sequence[DrawnAtom],
    paths: Mapping[int, Sequence[int]],
) -> Iterator[str]:
    for group, row in rows.items():
        colour, y = COLOURS[row % len(COLOURS)], _y(row)
        label = f"group {group}, {members[group]} member{'' if members[group] == 1 else 's'}"
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end" style="fill:{colour}">{label}</text>'
        on_path = sorted(columns[atom] for atom in paths[group])
        for one, other in pairwise(on_path):
            kind = "passed" if other == one + 1 else "beside"
            yield (
                f'<line class="{kind}" stroke="{colour}" x1="{_x(one)}" y1="{y}" x2="{_x(other)}" y2="{y}"/>'
            )
        for column in on_path:
            if group in atoms[column].groups:
                yield f'<circle cx="{_x(column)}" cy="{y}" r="6" fill="{colour}"/>'


def _bars(atoms: Sequence[DrawnAtom], rows: Mapping[int, int]) -> Iterator[str]:
    for place, atom in enumerate(atoms):
        own = sorted(rows[group] for group in atom.groups)
        if len(own) > 1:
            ends = f'y1="{_y(own[0])}" y2="{_y(own[-1])}"'
            yield f'<line class="bar" x1="{_x(place)}" x2="{_x(place)}" {ends}/>'
        for row in own:
            yield f'<circle cx="{_x(place)}" cy="{_y(row)}" r="2.5" fill="#fff"/>'
