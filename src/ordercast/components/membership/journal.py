"""What a node remembers over a restart: the newest view, its promise and its vote on the next one.

The acceptor of Paxos, for one decision after the other. A node that lost its state does not know what it
had promised. It *abstains* until it sits in a view under its new incarnation: votes on the view after that
one began after it had lost its state.
"""

from collections.abc import Mapping

import msgspec

from ordercast.components.membership.record import ViewRecord
from ordercast.core import Env, Groups, NodeId

KEY = "views"


class _Saved(msgspec.Struct, frozen=True, array_like=True):
    record: ViewRecord
    promised: int
    accepted_ballot: int
    accepted: ViewRecord | None
    abstains: bool
    incarnation: int
    groups: Groups | None


class VoteJournal:
    """The newest view that a node knows, its vote on the next one, and its incarnation."""

    __slots__ = (
        "_env",
        "abstains",
        "accepted",
        "accepted_ballot",
        "groups",
        "incarnation",
        "peers",
        "promised",
        "record",
    )

    def __init__(self, env: Env, record: ViewRecord, groups: Groups | None) -> None:
        self._env = env
        self.record: ViewRecord
        """The newest view that is known; before the first one, that with which the group began."""
        self.peers: dict[NodeId, int] = {}
        """Its members and voters, ascending, each with its place."""
        self._set_record(record)
        self.promised = 0
        self.accepted_ballot = 0
        self.accepted: ViewRecord | None = None
        self.abstains = False
        self.incarnation = 0
        self.groups = groups
        """The groups that this node is in; None if it does not sit. Requests that have not taken effect are
        not among them: a restart forgets them."""

    def restore(self, saved: Mapping[str, bytes]) -> bool:
        """Read what an earlier life saved; return whether there was one."""
        state = saved.get(KEY)
        if state is None:
            return False
        old = msgspec.msgpack.decode(state, type=_Saved)
        self._set_record(old.record)
        self.promised = old.promised
        self.accepted_ballot, self.accepted = old.accepted_ballot, old.accepted
        self.abstains, self.incarnation, self.groups = old.abstains, old.incarnation, old.groups
        return True

    def begin_incarnation(self) -> None:
        """Take an incarnation above all earlier ones: the clock never runs back, not over restarts either."""
        self.incarnation = max(self.incarnation + 1, self._env.now)
        self.save()

    def promise(self, ballot: int) -> None:
        """Remember not to accept in ballots below this one."""
        if ballot > self.promised:
            self.promised = ballot
            self.save()

    def accept(self, ballot: int, value: ViewRecord) -> None:
        """Remember a vote; the caller has checked the promise."""
        if ballot != self.accepted_ballot:
            self.promised = self.accepted_ballot = ballot
            self.accepted = value
            self.save()

    def learn(self, record: ViewRecord) -> None:
        """A view was decided: from now on the votes are about the next one."""
        self._set_record(record)
        self.promised = self.accepted_ballot = 0
        self.accepted = None
        seat = record.seat_of(self._env.me)
        if seat is not None and seat.incarnation == self.incarnation:
            self.abstains = False
        self.save()

    def _set_record(self, record: ViewRecord) -> None:
        self.record = record
        self.peers = {node: place for place, node in enumerate(record.peers)}

    def save(self) -> None:
        """Save everything."""
        state = _Saved(
            self.record,
            self.promised,
            self.accepted_ballot,
            self.accepted,
            self.abstains,
            self.incarnation,
            self.groups,
        )
        self._env.save(KEY, msgspec.msgpack.encode(state))
