"""A node that has joined a group and does not have its state yet.

- *seeking*: it asks the other receivers of its view, one after the other, who has the state.
- *promised*: one has it, and takes a copy at the beginning of the next view, which the newcomer asks for. If
  all others lack it too, the lowest node promises itself to begin without one.
- *fetching*: that view has begun. For its application the newcomer is in the group from here on. It gets the
  state piece by piece, and holds what is delivered meanwhile.

If the donor is lost on the way, the newcomer seeks again, and counts from a later view.
"""

from enum import Enum

from ordercast.components.application_state.messages import (
    PieceRequest,
    Possession,
    StateAnswer,
    StatePiece,
    StateQuestion,
    StateTaken,
)
from ordercast.core import SECOND, Env, GroupId, LifeCycle, Nanos, NodeId, RemoteError, State, Wait

PATIENCE_NS = 10 * SECOND
"""How long a newcomer waits for the application of its donor, or for the next piece."""


class Search(Enum):
    """How far a newcomer is."""

    SEEKING = "seeking"
    PROMISED = "promised"
    FETCHING = "fetching"


class SearchEvent(Enum):
    """What happens to a newcomer."""

    PROMISE = "promise"
    BEGIN = "begin"
    LOSE = "lose"


SEEKING, PROMISED, FETCHING = Search

SEARCHES = LifeCycle(
    "newcomer that needs a state",
    (SEEKING,),
    {
        (SEEKING, SearchEvent.PROMISE): PROMISED,
        (PROMISED, SearchEvent.BEGIN): FETCHING,
        (PROMISED, SearchEvent.LOSE): SEEKING,
        (FETCHING, SearchEvent.LOSE): SEEKING,
    },
)


class Newcomer:
    """The search of one node for the state of one group."""

    def __init__(self, env: Env, group: GroupId) -> None:
        self._env = env
        self.group = group
        self.stage: Search = SEEKING
        self.view = 0
        """The view in which it seeks, or at whose beginning the state was taken."""
        self.donor: NodeId | None = None
        self.state: State | None = None
        """The state, when all of it is here."""
        self.lost = False
        """The donor is lost, or lets this node wait for too long: another must be sought."""
        self._others: tuple[NodeId, ...] = ()
        """The other receivers of the view, in the order in which they are asked."""
        self._answers: dict[NodeId, Possession] = {}
        self._data = bytearray()
        self._size: int | None = None
        self._since: Nanos = env.now
        self._heard: Nanos = env.now
        """When there was progress, while it fetches."""

    # Views

    def enter(self, view: int, members: tuple[NodeId, ...], newcomers: tuple[NodeId, ...]) -> None:
        """A view of the group begins; `newcomers` have lost their place."""
        there = self.donor in members and (self.donor not in newcomers or self.donor == self._env.me)
        if self.stage is FETCHING:
            self.lost = self.lost or not there
        elif self.stage is PROMISED and view == self.view + 1 and there:
            self._begin(view)
        else:
            self.seek(view, members)

    def seek(self, view: int, members: tuple[NodeId, ...]) -> None:
        """Forget the donor, and seek among the members of a view."""
        self.rest()
        self.view = view
        others = [node for node in members if node != self._env.me]
        first = view % len(others) if others else 0
        self._others = (*others[first:], *others[:first])
        self.ask()

    def rest(self) -> None:
        """Forget the donor, and do nothing until the next view."""
        if self.stage is not SEEKING:
            self.stage = SEARCHES.after(self.stage, SearchEvent.LOSE)
        self.donor = self.state = self._size = None
        self.view, self.lost, self._others = 0, False, ()
        self._data.clear()
        self._answers.clear()

    def _begin(self, view: int) -> None:
        self.stage = SEARCHES.after(self.stage, SearchEvent.BEGIN)
        self.view, self._heard = view, self._env.now
        if self.donor == self._env.me:
            self.state = State(self.group, view, b"")
        else:
            self._request()

    # Questions and answers

    def ask(self) -> None:
        """Ask the next receiver that has not answered; if all have, begin again with the first."""
        if len(self._answers) == len(self._others):
            self._answers.clear()
        node = next((node for node in self._others if node not in self._answers), None)
        if node is None:
            self._promise(self._env.me)  # there is nobody else
        else:
            self._env.send(node, StateQuestion(self.group, self.view))

    def on_answer(self, source: NodeId, answer: StateAnswer) -> None:
        """A receiver said what it has."""
        if answer.view != self.view:
            return
        if self.stage is FETCHING and source == self.donor:
            self.lost = self.lost or answer.possession is Possession.LACKS
        elif self.stage is SEEKING and source in self._others and source not in self._answers:
            self._answers[source] = answer.possession
            self._weigh(source, answer.possession)

    def _weigh(self, source: NodeId, possession: Possession) -> None:
        if possession is Possession.HAS:
            self._promise(source)
        elif len(self._answers) < len(self._others):
            self.ask()
        elif self._is_first and all(one is Possession.LACKS for one in self._answers.values()):
            self._promise(self._env.me)

    @property
    def _is_first(self) -> bool:
        return self._env.me < min(self._others)

    def _promise(self, donor: NodeId) -> None:
        self.stage = SEARCHES.after(self.stage, SearchEvent.PROMISE)
        self.donor = donor

    # Pieces

    def _request(self) -> None:
        assert self.donor is not None
        self._env.send(self.donor, PieceRequest(self.group, self.view, len(self._data)))

    def on_piece(self, source: NodeId, piece: StatePiece) -> None:
        """A piece came. One that was not asked for, or that comes twice, changes nothing."""
        wanted = self.stage is FETCHING and self.state is None
        place = (self.donor, self.view, len(self._data))
        if not wanted or (source, piece.view, piece.offset) != place:
            return
        if self._size not in (None, piece.size) or (not piece.data and len(self._data) < piece.size):
            raise RemoteError(f"node {source} sent bytes that are no part of the state of group {self.group}")
        self._size, self._heard = piece.size, self._env.now
        self._data += piece.data
        if len(self._data) < piece.size:
            self._request()
        else:
            self.state = State(self.group, self.view, bytes(self._data), source)
            self._env.send(source, StateTaken(self.group, self.view))

    def tick(self) -> None:
        """Ask again; another one, if the donor has let this node wait for too long."""
        if self.stage is FETCHING and self.state is None:
            self.lost = self.lost or self._env.now - self._heard > PATIENCE_NS
            self._request()
        elif self.stage is SEEKING and self.view:
            self._others = (*self._others[1:], *self._others[:1])  # the first one may be dead or busy
            self.ask()

    # Explanations

    def wait(self) -> Wait:
        """Whom this node waits for."""
        subject = f"the state of group {self.group}"
        if self.stage is FETCHING and self.donor is not None:
            blocker = f"node {self.donor}, which has it as view {self.view} began"
            return Wait(subject, blocker, self._since, on=(self.donor,))
        if self.stage is PROMISED:
            return Wait(subject, f"the view after {self.view}", self._since)
        nodes = ", ".join(map(str, self._others)) or "nobody"
        return Wait(subject, f"a receiver that has it, among nodes {nodes}", self._since, on=self._others)
