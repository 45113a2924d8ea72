"""Marks: what a message to several groups is known by.

A group names a message by its sequencer and its number in that group. Other groups number it otherwise, so
outside the group a number is named with its group. A message has a mark for each of its groups.
"""

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from ordercast.components.network_ordered import LogEntry
from ordercast.components.network_ordered.place import Natural
from ordercast.core import GroupId, RemoteError

Mark: TypeAlias = tuple[Natural, Natural, Natural]
"""A sequencer, a group, and a number of this sequencer in this group."""


class Lost(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message that is missing in a group, as far as the group knows it."""

    mark: Mark
    bound: Natural
    """Its clock is not above this."""


def marks_of(entry: LogEntry, group: GroupId) -> tuple[Mark, ...]:
    """All marks of an entry in the log of a group."""
    if not entry.groups:
        return ((entry.sequencer, group, entry.number),)
    if len(entry.groups) != len(entry.numbers):
        raise RemoteError(f"an entry in slot {entry.slot} has numbers {entry.numbers} in {entry.groups}")
    return tuple(
        (entry.sequencer, one, number) for one, number in zip(entry.groups, entry.numbers, strict=True)
    )


def told(entry: LogEntry, group: GroupId) -> LogEntry:
    """An entry as other groups are told of it: with all of its groups, also if that is only one."""
    if entry.groups:
        return entry
    return msgspec.structs.replace(entry, groups=(group,), numbers=(entry.number,))


def taken(entry: LogEntry, group: GroupId) -> LogEntry | None:
    """An entry of which others tell, as the log of this group has it; None if it is not for this group."""
    if group not in entry.groups:
        return None
    number = entry.numbers[entry.groups.index(group)]
    if len(entry.groups) == 1:
        return msgspec.structs.replace(entry, number=number, groups=(), numbers=())
    return msgspec.structs.replace(entry, number=number)


def find(entries: Iterable[LogEntry], mark: Mark, group: GroupId) -> LogEntry | None:
    """The entry with this mark."""
    sequencer = mark[0]
    return next((one for one in entries if one.sequencer == sequencer and mark in marks_of(one, group)), None)
