"""What others may claim: numbers that a group can have reached, and views that can follow the known one.

A claim beyond is refused before it changes anything. A number at the end of all numbers would leave none for
later views, and a view from nowhere would split the group.
"""

from itertools import pairwise

from ordercast.components.membership.ballot import NODE_BITS, ballot_owner
from ordercast.components.membership.messages import Beat, Cut, Join, Stopped
from ordercast.components.membership.record import ViewRecord
from ordercast.components.membership.roster import Roster
from ordercast.components.membership.traffic import Traffic
from ordercast.core import SECOND, Nanos, NodeId, RemoteError

ROUNDS_AHEAD_MAX = 1 << 32
VIEWS_AHEAD_MAX = 1 << 32
"""More than a node can have missed: at one each millisecond they take seven weeks."""
INCARNATIONS_AHEAD_MAX = 366 * 86_400 * SECOND
"""Incarnations are readings of clocks. Clocks are wrong, but not by a year."""


def check_ballot(source: NodeId, ballot: int, seen: int) -> None:
    """Raise `RemoteError` for a ballot that is too high, or that belongs to another node."""
    check_round(source, ballot, seen)
    if ballot_owner(ballot) != source:
        raise RemoteError(f"node {source} leads in a ballot of node {ballot_owner(ballot)}")


def check_round(source: NodeId, ballot: int, seen: int) -> None:
    """Raise `RemoteError` for a ballot that nobody can have reached."""
    if (ballot >> NODE_BITS) - (seen >> NODE_BITS) > ROUNDS_AHEAD_MAX:
        raise RemoteError(f"ballot {ballot} from node {source} is too high; the highest so far is {seen}")


def check_claim(source: NodeId, message: Beat | Join | Stopped, known: ViewRecord, now: Nanos) -> None:
    """Raise `RemoteError` for a view or an incarnation that nobody can have reached."""
    if message.view - known.number > VIEWS_AHEAD_MAX:
        raise RemoteError(f"node {source} knows view {message.view}; the newest here is {known.number}")
    _check_incarnation(source, message.incarnation, now)


def check_stopped(source: NodeId, message: Stopped, known: ViewRecord, traffic: Traffic | None) -> None:
    """Raise `RemoteError` for a report that does not fit the view that changes."""
    if message.received is not None and len(message.received) != len(known.seats):
        raise RemoteError(f"node {source} counts {len(message.received)} members of {len(known.seats)}")
    if message.received is not None and traffic is not None:
        traffic.check_counts(source, message.received)
    if message.accepted is not None and message.accepted.number != known.number + 1:
        raise RemoteError(f"node {source} accepted view {message.accepted.number} after {known.number}")
    if (message.accepted is None) != (message.accepted_ballot == 0):
        raise RemoteError(f"node {source} accepted {message.accepted} in ballot {message.accepted_ballot}")


def check_cut(source: NodeId, message: Cut, traffic: Traffic) -> None:
    """Raise `RemoteError` for a cut that does not fit the view."""
    traffic.check_counts(source, message.cut)
    holders = set(message.holders)
    if len(message.holders) != len(message.cut) or not holders <= set(traffic.record.members):
        raise RemoteError(f"node {source} sent a cut that does not fit view {traffic.record.number}")


def check_known(source: NodeId, roster: Roster) -> None:
    """Raise `RemoteError` for a node that asks for a seat and is not known to this one; it will ask again."""
    if not roster.knows((source,)):
        raise RemoteError(f"node {source} asks for a seat, but is not known to be in the cluster")


def check_record(source: NodeId, record: ViewRecord, known: ViewRecord, roster: Roster, now: Nanos) -> None:
    """Raise `RemoteError` for a view that no group can have decided.

    A node that this one does not know may have come to the cluster. Then this one will hear of it, and of the
    view again.
    """
    _check_form(source, record)
    if not roster.knows(record.peers):
        raise RemoteError(f"node {source} names view {record.number}, which has unknown nodes")
    for seat in record.seats:
        _check_incarnation(source, seat.incarnation, now)
    if record.number - known.number > VIEWS_AHEAD_MAX:
        raise RemoteError(f"node {source} names view {record.number}; the newest so far is {known.number}")
    if source not in record.peers and source not in known.peers:
        raise RemoteError(f"node {source} names view {record.number}, but is a stranger to it")
    if record.number == known.number and record != known:
        raise RemoteError(f"node {source} names another view {record.number} than the one that was installed")
    if record.number == known.number + 1:
        _check_following(source, record, known)


def check_skipping(source: NodeId, record: ViewRecord, known: ViewRecord) -> None:
    """Raise `RemoteError` for a view that cannot come some views after the one in which a member sits: its
    seats are new or known."""
    old = {seat for seat in record.seats if seat.since <= known.number}
    if record.number > known.number + 1 and not old <= set(known.seats):
        raise RemoteError(f"node {source} names view {record.number}, which has nothing of {known.number}")


def _check_incarnation(source: NodeId, incarnation: int, now: Nanos) -> None:
    if incarnation > now + INCARNATIONS_AHEAD_MAX:
        raise RemoteError(f"node {source} names incarnation {incarnation}, which is in the far future")


def _check_form(source: NodeId, record: ViewRecord) -> None:
    lists = (record.members, record.voters, *record.groups)
    ascending = all(a < b for numbers in lists for a, b in pairwise(numbers))
    fitting = record.voters and len(record.groups) == len(record.seats)
    if not ascending or not fitting or any(seat.since > record.number for seat in record.seats):
        raise RemoteError(f"node {source} names view {record.number}, which is not well formed")


def _check_following(source: NodeId, record: ViewRecord, known: ViewRecord) -> None:
    staying = {seat for seat in record.seats if seat.since < record.number}
    if len(record.cut) != len(known.seats) or not staying <= set(known.seats):
        raise RemoteError(f"node {source} names view {record.number}, which cannot come after {known.number}")
