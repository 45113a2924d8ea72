"""The member that gives a state: whom it has promised one, and which states it keeps for newcomers.

A newcomer asks in one view, and the donor takes the state at the beginning of the next one. There, all who
go on have delivered the same messages, so the state needs no other place than the number of the view.
"""

from dataclasses import dataclass

from ordercast.components.application_state.messages import (
    STATE_BYTES_MAX,
    PieceRequest,
    Possession,
    StateAnswer,
    StatePiece,
    StateQuestion,
    StateTaken,
)
from ordercast.core import SECOND, Env, GroupId, LocalError, Nanos, NodeId, StateWanted, View, Wait

KEEP_NS = 60 * SECOND
"""How long a state is kept for newcomers that do not ask for it."""
UNANSWERED_MAX = 64
"""How many questions an application may leave open; older ones are forgotten."""

Place = tuple[GroupId, int]
"""A group, and the view at whose beginning its state is taken."""


@dataclass(slots=True)
class Offer:
    """A state, and the newcomers that it is for."""

    newcomers: set[NodeId]
    used: Nanos
    """When it was last of use."""
    data: bytes | None = None
    """None until the application has given it."""


class Donor:
    """What one member has promised and keeps."""

    def __init__(self, env: Env, chunk_bytes: int) -> None:
        self._env = env
        self._chunk_bytes = chunk_bytes
        self._promised: dict[GroupId, set[NodeId]] = {}
        self._offers: dict[Place, Offer] = {}
        self._unanswered: dict[Place, Nanos] = {}
        """Where the application was asked and has not answered, and since when."""

    @property
    def busy(self) -> bool:
        """Whether something is kept here."""
        return bool(self._offers)

    def answer(self, source: NodeId, question: StateQuestion, possession: Possession) -> None:
        """Answer a newcomer; if this member has the state, promise it."""
        if possession is Possession.HAS:
            self._promised.setdefault(question.group, set()).add(source)
        self._env.send(source, StateAnswer(question.group, question.view, possession))

    def enter(self, view: View) -> StateWanted | None:
        """A view of a group begins: what to ask the application for, if a newcomer needs the state."""
        self._retain(view)
        wanting = self._promised.pop(view.group, set()).intersection(view.members)
        if not wanting:
            return None
        place = (view.group, view.config)
        self._offers[place] = Offer(wanting, self._env.now)
        self._unanswered[place] = self._env.now
        if len(self._unanswered) > UNANSWERED_MAX:
            del self._unanswered[next(iter(self._unanswered))]
        return StateWanted(view.group, view.config, tuple(sorted(wanting)))

    def _retain(self, view: View) -> None:
        """Forget newcomers that are not in the group any more."""
        for place, offer in list(self._offers.items()):
            if place[0] == view.group:
                offer.newcomers &= set(view.members)
                self._drop_if_done(place)

    def lose(self, group: GroupId) -> None:
        """This member has lost its place in a group, so it cannot keep what it promised from now on."""
        self._promised.pop(group, None)

    def unask(self, wanted: StateWanted) -> None:
        """The application will not be asked after all."""
        place = (wanted.group, wanted.config)
        self._offers.pop(place, None)
        self._unanswered.pop(place, None)

    def give(self, group: GroupId, config: int, data: bytes) -> None:
        """The application gives a state. If nobody needs it any more, it is not kept."""
        place = (group, config)
        if place not in self._unanswered:
            raise LocalError(
                f"node {self._env.me} is not asked for the state of group {group} at view {config}, or has"
                " given it already"
            )
        if len(data) > STATE_BYTES_MAX:
            raise LocalError(f"the state has {len(data)} bytes; the limit is {STATE_BYTES_MAX}")
        del self._unanswered[place]
        if place in self._offers:
            self._offers[place].data = bytes(data)
            self._offers[place].used = self._env.now

    def on_request(self, source: NodeId, request: PieceRequest) -> None:
        """A newcomer asks for a piece: send it, or say that it must wait, or that it waits in vain."""
        offer = self._offers.get((request.group, request.view))
        if offer is None or source not in offer.newcomers:
            self._env.send(source, StateAnswer(request.group, request.view, Possession.LACKS))
        elif offer.data is None:
            self._env.send(source, StateAnswer(request.group, request.view, Possession.WAITS))
        elif request.offset <= len(offer.data):
            offer.used = self._env.now
            piece = offer.data[request.offset : request.offset + self._chunk_bytes]
            place = (request.group, request.view, request.offset)
            self._env.send(source, StatePiece(*place, len(offer.data), piece))

    def on_taken(self, source: NodeId, message: StateTaken) -> None:
        """A newcomer has the whole state."""
        place = (message.group, message.view)
        if place in self._offers:
            self._offers[place].newcomers.discard(source)
            self._drop_if_done(place)

    def tick(self) -> None:
        """Forget what nobody has asked for in a long time."""
        for place, offer in list(self._offers.items()):
            if self._env.now - offer.used > KEEP_NS:
                del self._offers[place]

    def _drop_if_done(self, place: Place) -> None:
        if not self._offers[place].newcomers:
            del self._offers[place]

    def waits(self) -> list[Wait]:
        """What the application has not answered, although a newcomer needs it."""
        return [
            Wait(
                f"the state of group {place[0]} at view {place[1]}",
                f"the application of node {self._env.me} to give it to nodes"
                f" {', '.join(map(str, sorted(self._offers[place].newcomers)))}",
                since,
            )
            for place, since in self._unanswered.items()
            if place in self._offers
        ]
