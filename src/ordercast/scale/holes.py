"""Events that were not delivered somewhere: where, which, and whether they were owed (section 5.4).

An event is owed by processes that were there when it was broadcast. Those that joined later owe nothing, and
do not count. Neither do those that left while it was still to come: a process that left owes it only if it
delivered a later one, or heard nothing of it until a round after the last of the others had delivered it.
Nobody owes an event that left with its source before it told anyone. Whatever else is missing is a *hole*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ordercast.scale.events import Events
from ordercast.scale.timeline import Timeline
from ordercast.scale.types import Numbers, Ticks

Cause = Literal["never heard of", "came too late", "left before", "gone with its source"]


@dataclass(frozen=True)
class Missing:
    """What was not delivered."""

    count: int
    rows: Numbers
    """[(process, event, turn it was learnt of or -1, 1 if a later one was delivered)], as many as listed."""


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


def find_holes(
    line: Timeline, events: Events, missing: Missing, last_tick: Ticks, round_ticks: int
) -> list[Hole]:
    """Say of each missing event why it is missing."""
    found = []
    for process, event, learnt, passed in missing.rows.tolist():
        born = int(events.born[event])
        joined, left = int(line.joined[process]), int(line.left[process])
        cause: Cause = "never heard of" if learnt < 0 else "came too late"
        in_time = learnt >= 0 or left <= last_tick[event] + round_ticks
        if last_tick[event] < 0:
            cause = "gone with its source"
        elif left < line.ticks and not passed and in_time:
            cause = "left before"
        owed = cause in ("never heard of", "came too late")
        gone = left if left < line.ticks else -1
        found.append(Hole(process, event, int(events.source[event]), born, joined, gone, cause, owed))
    return found


def at_stayers(line: Timeline, missing: Missing) -> int:
    """How many of the listed are missing at processes that were there from the beginning to the end."""
    process = missing.rows[:, 0]
    stayed = (line.joined[process] == 0) & (line.left[process] == line.ticks)
    return int(np.count_nonzero(stayed))
