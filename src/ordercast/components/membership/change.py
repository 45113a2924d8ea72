"""A change of the view, as its coordinator leads it: one ballot of Paxos on the view after the base.

1. *preparing*: all members and voters stop and promise; a majority of voters is needed, and every member that
   is connected is waited for. If one of them had accepted a value, that value must be proposed again.
2. *flushing*: the cut is the most that any member has of each sender. Members get what they lack up to it.
3. *proposing*: everybody who stays has everything up to the cut, so nothing depends on a member that dies
   later. A majority of voters accepts, and the view is decided.

A member that fails before the proposal, or a higher ballot, ends this one; the next begins at 1.
"""

from collections.abc import Callable
from enum import Enum

from ordercast.components.membership.candidates import Newcomers
from ordercast.components.membership.messages import BeginChange, Cut, Install, Proposal, Stopped
from ordercast.components.membership.record import Seat, ViewRecord
from ordercast.components.membership.roster import Roster
from ordercast.core import Env, Groups, LifeCycle, Nanos, NodeId, Wait


class ChangePhase(Enum):
    """What the coordinator of a change waits for."""

    PREPARING = "preparing"
    FLUSHING = "flushing"
    PROPOSING = "proposing"
    DECIDED = "decided"


class ChangeEvent(Enum):
    """What happens to a change."""

    CUT = "cut"
    PROPOSE = "propose"
    DECIDE = "decide"


PREPARING, FLUSHING, PROPOSING, DECIDED = ChangePhase

CHANGES = LifeCycle(
    "change of the view",
    (PREPARING,),
    {
        (PREPARING, ChangeEvent.CUT): FLUSHING,
        (PREPARING, ChangeEvent.PROPOSE): PROPOSING,  # an earlier value, or nobody lacks anything
        (FLUSHING, ChangeEvent.PROPOSE): PROPOSING,
        (PROPOSING, ChangeEvent.DECIDE): DECIDED,
    },
)


class Change:
    """One ballot on the view after the base."""

    def __init__(
        self,
        env: Env,
        base: ViewRecord,
        ballot: int,
        connected: Callable[[NodeId], bool],
        present: Callable[[Seat], bool],
        newcomers: Callable[[], Newcomers],
        roster: Roster,
    ) -> None:
        self._env = env
        self._base = base
        self._connected = connected
        self._present = present
        self._newcomers = newcomers
        self._roster = roster
        self._promises: dict[NodeId, Stopped] = {}
        self._survivors: tuple[Seat, ...] = ()
        self._flushed: set[NodeId] = set()
        self._accepted: set[NodeId] = set()
        self._cut: tuple[int, ...] = ()
        self._holders: tuple[NodeId, ...] = ()
        self._value: ViewRecord | None = None
        self.ballot = ballot
        self.phase = PREPARING
        self.since: Nanos = env.now

    def solicit(self) -> None:
        """Ask those who have not answered yet."""
        waiting = self.waiting()
        if self.phase is PREPARING:
            self._env.multicast(waiting, BeginChange(self.ballot, self._base))
        elif self.phase is FLUSHING:
            self._env.multicast(waiting, Cut(self._base.number, self.ballot, self._cut, self._holders))
        elif self.phase is PROPOSING and self._value is not None:
            self._env.multicast(waiting, Proposal(self.ballot, self._value))

    def waiting(self) -> tuple[NodeId, ...]:
        """Those who have not answered in this phase."""
        if self.phase is PREPARING:
            return tuple(node for node in self._base.peers if node not in self._promises)
        if self.phase is FLUSHING:
            return tuple(seat.node for seat in self._survivors if seat.node not in self._flushed)
        return tuple(node for node in self._base.voters if node not in self._accepted)

    def on_promise(self, source: NodeId, message: Stopped) -> None:
        """A member or voter promised."""
        if self.phase is PREPARING:
            self._promises[source] = message
            self.advance()

    def on_flushed(self, source: NodeId) -> None:
        """A member has everything up to the cut."""
        if self.phase is FLUSHING:
            self._flushed.add(source)
            self.advance()

    def on_accepted(self, source: NodeId) -> None:
        """A voter accepted the value."""
        if self.phase is PROPOSING and source in self._base.voters:
            self._accepted.add(source)
            if len(self._accepted) >= self._base.majority:
                self._decide()

    def advance(self) -> None:
        """Go on to the next phase if nobody is waited for."""
        if self.phase is PREPARING and self._prepared():
            self._end_preparing()
        if self.phase is FLUSHING and not self.waiting():
            self._propose(self._next_view())

    @property
    def broken(self) -> bool:
        """Whether a member whose messages or whose word is needed has failed: a new ballot must begin."""
        return self.phase is FLUSHING and not all(map(self._present, self._survivors))

    def waits(self) -> list[Wait]:
        """Who is waited for."""
        waiting = tuple(self.waiting())
        nodes = ", ".join(map(str, waiting))
        what = {
            PREPARING: "to stop sending and to say what they have",
            FLUSHING: "to get the messages that they lack",
        }.get(self.phase, "to accept it")
        subject = f"view {self._base.number + 1}"
        return [Wait(subject, f"nodes {nodes} {what}", self.since, on=waiting)] if waiting else []

    def _prepared(self) -> bool:
        """Whether a majority promised, and everybody that is connected answered."""
        votes = sum(n in self._promises and self._promises[n].votes for n in self._base.voters)
        lacking = (node for node in self._base.peers if node not in self._promises)
        return votes >= self._base.majority and not any(map(self._connected, lacking))

    def _end_preparing(self) -> None:
        best = max(self._promises.values(), key=lambda promise: promise.accepted_ballot)
        if best.accepted is not None:
            self._propose(best.accepted)
            return
        self._survivors = tuple(filter(self._survives, self._base.seats))
        self._set_cut()
        if self._flushed.issuperset(seat.node for seat in self._survivors):
            self._propose(self._next_view())
            return
        self.phase = CHANGES.after(self.phase, ChangeEvent.CUT)
        self.solicit()

    def _survives(self, seat: Seat) -> bool:
        """Whether a member goes on in its seat: it has what it delivered in the base."""
        promise = self._promises.get(seat.node)
        return (
            promise is not None and promise.received is not None and promise.incarnation == seat.incarnation
        )

    def _set_cut(self) -> None:
        """The most that any survivor has of each seat, and who has it."""
        reports = {seat.node: self._promises[seat.node].received or () for seat in self._survivors}
        cut: list[int] = []
        holders: list[NodeId] = []
        for index, seat in enumerate(self._base.seats):
            best = max(reports, key=lambda node: (reports[node][index], node == seat.node), default=seat.node)
            cut.append(reports[best][index] if reports else 0)
            holders.append(best)
        self._cut, self._holders = tuple(cut), tuple(holders)
        self._flushed = {node for node, received in reports.items() if received == self._cut}

    def _next_view(self) -> ViewRecord:
        """Those who survive and want to stay, and those who come in."""
        number, removed = self._base.number + 1, self._roster.removed
        seats = {seat.node: seat for seat in self._survivors}
        wishes = {node: self._promises[node].wishes for node in seats}
        for node, (incarnation, groups) in self._joining().items():
            if node not in seats:
                seats[node], wishes[node] = Seat(node, incarnation, number), groups
        sitting = {
            node: groups for node, groups in wishes.items() if groups is not None and node not in removed
        }
        order = sorted(sitting)
        members, received = tuple(seats[node] for node in order), tuple(sitting[node] for node in order)
        return ViewRecord(number, members, self._voters(sitting), self._cut, received)

    def _voters(self, sitting: dict[NodeId, Groups]) -> tuple[NodeId, ...]:
        """Who receives something or was excluded votes; who leaves does not, unless nobody else does."""
        voters = {*self._base.voters, *(node for node, groups in sitting.items() if groups)}
        leaving = {node for node, promise in self._promises.items() if not promise.wishes}
        return tuple(sorted(voters - leaving - self._roster.removed or voters))

    def _joining(self) -> Newcomers:
        """Who asked to come in, or said with its promise that it wants to; a promise is newer."""
        joining = dict(self._newcomers())
        for node, promise in self._promises.items():
            if promise.received is None:
                joining.pop(node, None)
                if promise.wishes is not None:
                    joining[node] = (promise.incarnation, promise.wishes)
        return joining

    def _propose(self, value: ViewRecord) -> None:
        self.phase = CHANGES.after(self.phase, ChangeEvent.PROPOSE)
        self._value = value
        self.solicit()

    def _decide(self) -> None:
        self.phase = CHANGES.after(self.phase, ChangeEvent.DECIDE)
        if self._value is not None:
            concerned = {*self._base.peers, *self._value.peers}
            self._env.multicast(tuple(sorted(concerned)), Install(self._value))
