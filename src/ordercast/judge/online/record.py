"""The record: whether the rows of a run are those that its driver wrote, as far as they show it themselves.

Drivers number the rows of each node (`step`) and its deliveries (`position`) without gaps. So a row that is
missing, doubled or elsewhere shows, whatever the protocol did. This is no promise of the protocol: the judge
reports it as damage, and reads row by row, file by file.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ordercast.core import NodeId, RemoteError
from ordercast.judge.finding import DAMAGES_MAX, Damage
from ordercast.trace import ORDERED, PROBE, FileRows, Kind, RunDescription
from ordercast.trace.record import (
    expected_submissions,
    list_length_max,
    missing_between,
    missing_files,
    wrong_count,
)

NOTHING = -1
"""Stands for no position."""


class NodeRecord:
    """What a file has of a node: its steps and positions."""

    __slots__ = ("file", "first", "highest", "last", "lowest", "next_position", "position", "row")

    def __init__(self, file: str, row: int, step: int) -> None:
        self.file = file
        self.row = row
        """The node's first row in the file."""
        self.first = self.last = self.lowest = self.highest = step
        self.position: int | None = None
        """The position of its first delivery."""
        self.next_position = NOTHING
        """The position of its next delivery; not known before the first."""


class Record:
    """The record of one run, read row by row."""

    def __init__(self, description: RunDescription) -> None:
        self._description = description
        self._nodes: dict[NodeId, list[NodeRecord]] = {}
        self._rows: dict[str, int] = {}
        self._submissions = 0
        self._crashes = 0
        self._damages: list[Damage] = []
        self._told: Counter[str] = Counter()

    def read(self, rows: FileRows) -> None:
        """Take the rows of the next file."""
        self._rows[rows.name] = len(rows.table)
        self._read_lists(rows)
        self._read_names(rows)
        here: dict[NodeId, NodeRecord] = {}
        table = rows.table
        numbers = (table[name].to_numpy().tolist() for name in ("node", "step"))
        kinds, labels = _words(table["kind"]), _words(table["label"])
        positions = table["position"].fill_null(NOTHING).to_numpy().tolist()
        unknown = set(kinds).difference(Kind)
        if unknown:
            raise RemoteError(f"the trace has an unknown kind of event: '{min(map(str, unknown))}'")
        columns = zip(*numbers, positions, kinds, labels, strict=True)
        for row, (node, step, position, kind, label) in enumerate(columns):
            found = here.get(node)
            if found is None:
                here[node] = found = NodeRecord(rows.name, row, step)
            elif step != found.last + 1:
                self._read_jump(found, row, node, step)
            found.last = step
            if kind in ORDERED:
                if position != found.next_position or position == NOTHING:
                    self._read_position(found, row, node, position)
                found.next_position = position + 1
            elif position != NOTHING:
                detail = f"the row {kind} of node {node} has the position {position}, but is no delivery"
                self._tell(Damage("positions", detail, rows.name, row, node))
            if kind == Kind.SUBMIT and label != PROBE:
                self._submissions += 1
            elif kind == Kind.CRASH:
                self._crashes += 1
        for node, found in here.items():
            found.highest = max(found.highest, found.last)
            self._nodes.setdefault(node, []).append(found)

    def finish(self) -> list[Damage]:
        """Compare the files with each other and with the description; return all damage."""
        described = self._description
        for name, detail in missing_files(described, self._rows):
            self._tell(Damage("files", detail, name))
        for node, files in sorted(self._nodes.items()):
            self._join(node, sorted(files, key=lambda found: found.first))
        if described.complete and not sum(self._rows.values()) and described.messages_wanted != 0:
            self._tell(Damage("empty", "the run has no events, but run.json says that it is complete"))
            return self._damages
        sure = not self._crashes and not self._damages
        detail = wrong_count(self._submissions, expected_submissions(described, sure=sure))
        if detail:
            self._tell(Damage("submissions", detail))
        unstepped = {damage.node for damage in self._damages if damage.what in ("steps", "order")}
        found = [one for one in self._damages if one.what != "positions" or one.node not in unstepped]
        return found[:DAMAGES_MAX]

    def _tell(self, damage: Damage) -> None:
        """Keep the first damages of each rule."""
        self._told[damage.what] += 1
        if self._told[damage.what] <= DAMAGES_MAX:
            self._damages.append(damage)

    def _read_names(self, rows: FileRows) -> None:
        for row, run in enumerate(_words(rows.table["run"])):
            if run != self._description.run:
                detail = (
                    f"the row is of the run {run}, but run.json describes the run {self._description.run}"
                )
                self._tell(Damage("run", detail, rows.name, row))
                return

    def _read_jump(self, found: NodeRecord, row: int, node: NodeId, step: int) -> None:
        """Take a step that is not the next one."""
        before = found.last
        found.lowest, found.highest = min(found.lowest, step), max(found.highest, before)
        if step > before:
            detail = f"node {node} lacks {_steps(before + 1, step - 1)}"
        elif step == before:
            detail = f"node {node} has step {step} twice"
        else:
            detail = f"step {step} of node {node} comes after its step {before}"
        self._tell(Damage("order" if step < before else "steps", detail, found.file, row, node))

    def _read_position(self, found: NodeRecord, row: int, node: NodeId, position: int) -> None:
        """Take the position of a delivery that is the first of its node here, or has not the next one."""
        if found.position is None:
            found.position = position
        wanted = found.next_position
        if position == NOTHING or wanted > 0:
            has = "no position" if position == NOTHING else f"position {position} instead of {wanted}"
            self._tell(Damage("positions", f"a delivery of node {node} has {has}", found.file, row, node))

    def _read_lists(self, rows: FileRows) -> None:
        limit = list_length_max(self._description)
        for name in ("groups", "numbers"):
            chunks = rows.table[name].chunks
            lengths = [
                length
                for chunk in chunks
                for length in chunk.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).tolist()
            ]
            long = next((row for row, length in enumerate(lengths) if length > limit), None)
            if long is not None:
                groups = len(self._description.groups)
                detail = f"the row has {lengths[long]} {name}, but the run has {groups} groups"
                self._tell(Damage("lists", detail, rows.name, long))

    def _join(self, node: NodeId, files: Sequence[NodeRecord]) -> None:
        """Follow the steps and positions of a node from file to file."""
        step, position, before = 0, 0, ""
        broken = any(damage.node == node for damage in self._damages)
        for found in files:
            if found.lowest > step:
                lost = missing_between(before, found.file, self._rows)
                detail = f"node {node} lacks {_steps(step, found.lowest - 1)}{lost}"
            elif found.lowest < step:
                detail = f"node {node} has step {found.lowest} twice, also in {before}"
            else:
                detail = ""
            if detail:
                broken = True
                self._tell(Damage("steps", detail, found.file, found.row, node))
            if not broken and found.position is not None:
                if found.position != position:
                    detail = f"node {node} has position {found.position} instead of {position}"
                    self._tell(Damage("positions", detail, found.file, found.row, node))
                position = found.next_position
            step, before = max(step, found.highest + 1), found.file


def examine(description: RunDescription, files: Iterable[FileRows]) -> list[Damage]:
    """What is wrong with the record of a run, read row by row."""
    record = Record(description)
    for rows in files:
        record.read(rows)
    return record.finish()


def _words(column: Any) -> list[str | None]:
    """The words of a dictionary column, each looked up once in its dictionary."""
    found: list[str | None] = []
    for chunk in column.chunks:
        words = [*chunk.dictionary.to_pylist(), None]  # the last one is at place -1
        found += map(words.__getitem__, chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False).tolist())
    return found


def _steps(first: int, last: int) -> str:
    return f"step {first}" if first == last else f"steps {first} to {last}"
