"""What others may claim: rounds and views that a group can have reached, and views that can follow the known
one.

A claim beyond is refused before it changes anything: a number at the end of all numbers would leave none
for later views, and a view from nowhere would split the group.
"""

from itertools import pairwise

from ordercast.components.membership.ballot import NODE_BITS, ballot_owner
from ordercast.components.membership.messages import Cut
from ordercast.components.membership.record import ViewRecord
from ordercast.core import NodeId, RemoteError

ROUNDS_AHEAD_MAX = 1 << 32
VIEWS_AHEAD_MAX = 1 << 32
"""More than a node can have missed: at one each millisecond they take seven weeks."""


def check_ballot(source: NodeId, ballot: int, seen: int) -> None:
    """Raise `RemoteError` for a ballot that is too high, or that belongs to another node."""
    check_round(source, ballot, seen)
    if ballot_owner(ballot) != source:
        raise RemoteError(f"node {source} leads in a ballot of node {ballot_owner(ballot)}")


def check_round(source: NodeId, ballot: int, seen: int) -> None:
    """Raise `RemoteError` for a ballot that nobody can have reached."""
    if (ballot >> NODE_BITS) - (seen >> NODE_BITS) > ROUNDS_AHEAD_MAX:
        raise RemoteError(f"ballot {ballot} from node {source} is too high; the highest so far is {seen}")


def check_record(source: NodeId, record: ViewRecord, known: ViewRecord) -> None:
    """Raise `RemoteError` for a view that no group can have decided."""
    _check_form(source, record)
    if record.number - known.number > VIEWS_AHEAD_MAX:
        raise RemoteError(f"node {source} names view {record.number}; the newest so far is {known.number}")
    if source not in record.peers and source not in known.peers:
        raise RemoteError(f"node {source} names view {record.number}, but is a stranger to it")
    if record.number == known.number and record != known:
        raise RemoteError(f"node {source} names another view {record.number} than the one that was installed")
    if record.number == known.number + 1:
        _check_following(source, record, known)


def _check_form(source: NodeId, record: ViewRecord) -> None:
    ascending = all(a < b for nodes in (record.members, record.voters) for a, b in pairwise(nodes))
    if not ascending or not record.voters or any(seat.since > record.number for seat in record.seats):
        raise RemoteError(f"node {source} names view {record.number}, which is not well formed")


def _check_following(source: NodeId, record: ViewRecord, known: ViewRecord) -> None:
    staying = [seat for seat in record.seats if seat.since < record.number]
    if len(record.cut) != len(known.seats) or not set(staying) <= set(known.seats):
        raise RemoteError(
            f"node {source} names view {record.number}, which cannot follow view {known.number}"
        )


def check_cut(source: NodeId, message: Cut, record: ViewRecord) -> None:
    """Raise `RemoteError` for a cut that does not fit the view."""
    fits = len(message.cut) == len(message.holders) == len(record.seats)
    if not fits or not set(message.holders) <= set(record.members):
        raise RemoteError(f"node {source} sent a cut that does not fit view {record.number}")
