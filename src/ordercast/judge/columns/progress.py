"""Progress: while enough of a cluster is up and connected, its receivers are not silent for too long.

For each stretch of the description, each of its receivers and each of the receiver's groups: the submissions
that count, and after each the first delivery or notification of the group.
"""

from typing import NamedTuple

import numpy as np

from ordercast.core import GroupId, Nanos, NodeId, format_ns
from ordercast.judge.columns.case import Case
from ordercast.judge.columns.columns import Ints, null_of
from ordercast.judge.columns.findings import Findings
from ordercast.judge.finding import message_at
from ordercast.trace import RESTORED, UNDOING, Stretch


class Silence(NamedTuple):
    """A silence that lasted too long."""

    place: int
    """The message with which it began."""
    turn: int
    """The place of the group among the groups of the message."""
    node: NodeId
    group: GroupId
    until: Nanos | None


def progress(case: Case, findings: Findings) -> None:
    """Find the first silence of each receiver in each stretch."""
    for stretch in case.description.stretches:
        found = [
            silence
            for group, members in case.trace.members.ever.items()
            for places in [_counted(case, stretch, group)]
            for node in members
            if node in stretch.receivers and len(places)
            for silence in _first_silence(case, stretch, places, node, group)
        ]
        for silence in sorted(found, key=lambda one: one[:3]):
            _tell(case, findings, stretch, silence)


def _counted(case: Case, stretch: Stretch, group: GroupId) -> Ints:
    """The messages to a group that count in a stretch."""
    account = case.everything
    rows = account.submit_row
    times = account.trace.time[rows]
    last = stretch.end_ns - stretch.silence_ns
    counts = account.going_to(group)[account.destination] & (times >= stretch.begin_ns) & (times <= last)
    return np.flatnonzero(counts & np.isin(account.trace.node[rows], stretch.senders))


def _first_silence(case: Case, stretch: Stretch, places: Ints, node: NodeId, group: GroupId) -> list[Silence]:
    account = case.everything
    heard = _heard(case, node, group)
    times = account.trace.time[account.submit_row[places]]
    following = np.searchsorted(heard, times)
    late = following == len(heard)
    late[~late] = heard[following[~late]] > times[~late] + stretch.silence_ns
    silence = stretch.silence_ns  # a receiver that joins later is judged when it has been there for a while
    late &= case.trace.members.was_in(node, group, times - silence, times + silence)
    if not late.any():
        return []
    first = int(np.argmax(late))
    place = int(places[first])
    until = int(heard[following[first]]) if following[first] < len(heard) else None
    turn = account.destinations[account.destination[place]].index(group)
    return [Silence(place, turn, node, group, until)]


def _heard(case: Case, node: NodeId, group: GroupId) -> Ints:
    """When a receiver heard something of a group: a delivery, the notification of a drop, or a state."""
    account = case.everything
    mine = (account.node == node) & account.going_to(group)[account.to]
    notices = [drop.time_ns for drop in case.admitted.drops if (drop.node, drop.group) == (node, group)]
    notices += [one.time_ns for one in case.restored if (one.node, one.group) == (node, group)]
    heard = np.concatenate([account.row[mine], _heard_in_vain(case, node, group)])
    return np.sort(np.concatenate([account.trace.time[heard], np.array(notices, np.int64)]))


def _heard_in_vain(case: Case, node: NodeId, group: GroupId) -> Ints:
    """The void deliveries of a receiver, and void states that it took over."""
    trace = case.trace
    rows = trace.rows(*UNDOING)
    rows = rows[trace.node[rows] == node]
    about = np.array([group in groups for groups in (*trace.groups.tuples, ())], bool)
    rows = rows[about[trace.groups.codes[rows]]]
    found: Ints = rows[(trace.message[rows] != null_of(trace.message)) | trace.labelled(rows, RESTORED)]
    return found


def _tell(case: Case, findings: Findings, stretch: Stretch, silence: Silence) -> None:
    account = case.everything
    message, row = account.message(silence.place), int(account.submit_row[silence.place])
    sender, time_ns = int(account.trace.node[row]), int(account.trace.time[row])
    until = "any more" if silence.until is None else f"until {format_ns(silence.until)}"
    findings.add(
        (sender, silence.node),
        (message,),
        (time_ns, time_ns + stretch.silence_ns),
        f"node {sender} submitted {message_at(message, time_ns)} to group {silence.group};"
        f" node {silence.node} was connected with it and with enough others, but heard nothing of the group"
        f" {until}; the longest silence promised is {format_ns(stretch.silence_ns)}",
    )
