"""Events that were not delivered somewhere: where, which, and whether they were owed (section 5.4).

An event is owed by processes that were there when it was broadcast. Those that joined later owe nothing, and
do not count. Neither do those that left while it was still to come: a process that left owes it only if it
delivered a later one, or heard nothing of it until a round after the last of the others had delivered it.
Nobody owes an event that left with its source before it told anyone. Whatever else is missing is a *hole*.

The program of EpTO's authors counts in another way, which `count_as_authors` follows. At every process,
newcomers too, it compares what was delivered with what was expected: events that were broadcast after the
process joined, and TTL + 1 rounds or more before it left. It compares no further than the process delivered.
So a missing event counts only if the process delivered a later one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ordercast.engines.epto.events import Events
from ordercast.engines.epto.setup import Setup
from ordercast.engines.epto.timeline import Timeline
from ordercast.engines.epto.types import Numbers, Ticks

Cause = Literal["never heard of", "came too late", "gone with its source"]


@dataclass(frozen=True)
class Missing:
    """What was not delivered."""

    count: int
    left_before: int
    """Of them, those that a process lacks because it left before."""
    rows: Numbers
    """[(process, event, turn it was learnt of or -1, whether a later event was delivered)] The others, as
    many as are listed."""

    @property
    def not_listed(self) -> int:
        """How many are not listed, though nobody left before."""
        return self.count - self.left_before - len(self.rows)


@dataclass(frozen=True, slots=True)
class Hole:
    """An event that a process did not deliver, and why."""

    process: int
    event: int
    source: int
    born: int
    joined: int
    left: int
    """-1: it stayed."""
    cause: Cause
    owed: bool
    """Whether it should have been delivered: a hole in the sense of the paper."""
    passed: bool
    """Whether the process delivered a later event."""


def find_holes(line: Timeline, events: Events, missing: Missing, last_tick: Ticks) -> list[Hole]:
    """Say of each listed event why it is missing."""
    found = []
    for process, event, learnt, passed in missing.rows.tolist():
        cause: Cause = "never heard of" if learnt < 0 else "came too late"
        if last_tick[event] < 0:
            cause = "gone with its source"
        joined, left = int(line.joined[process]), int(line.left[process])
        gone = left if left < line.ticks else -1
        owed = cause != "gone with its source"
        source, born = int(events.source[event]), int(events.born[event])
        found.append(Hole(process, event, source, born, joined, gone, cause, owed, bool(passed)))
    return found


def count_as_authors(holes: list[Hole], setup: Setup) -> list[Hole]:
    """Those that count for the authors; the TTL of a setup is larger by one than theirs."""
    lifetime = setup.ttl * setup.round_ticks
    return [
        hole
        for hole in holes
        if hole.owed
        and hole.passed
        and hole.born > hole.joined
        and (hole.left < 0 or hole.born < hole.left - lifetime)
    ]
