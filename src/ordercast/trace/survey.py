"""All runs of a folder: those that can be opened, and why the others cannot.

A run is named as in its description. If the description cannot be read, or if two runs have the same name
because one was copied, a run is named by its path below the folder.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ordercast.core import OrdercastError
from ordercast.trace.store import StoredRun, read_run, run_folders


class NamedRun(NamedTuple):
    """A run, and its name in the folder."""

    name: str
    run: StoredRun


class UnreadableRun(NamedTuple):
    """A run that cannot be read, and why."""

    name: str
    reason: str


class Folder(NamedTuple):
    """The content of a folder."""

    runs: list[NamedRun]
    unreadable: list[UnreadableRun]


def survey_folder(root: Path) -> Folder:
    """All runs at or below a folder, in order of path; an error if there is none."""
    runs: list[StoredRun] = []
    unreadable: list[UnreadableRun] = []
    for folder in run_folders(root):
        try:
            run = read_run(folder)
            run.open_segments()
            runs.append(run)
        except OrdercastError as error:
            unreadable.append(UnreadableRun(_place(folder, root), str(error)))
    counts = Counter(run.description.run for run in runs)
    named = [
        NamedRun(name if counts[name := run.description.run] == 1 else _place(run.folder, root), run)
        for run in runs
    ]
    return Folder(named, unreadable)


def _place(folder: Path, root: Path) -> str:
    return root.absolute().name if folder == root else str(folder.relative_to(root))
