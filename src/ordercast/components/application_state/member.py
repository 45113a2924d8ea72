"""A member whose application has a state, which newcomers get: a layer on any member of groups with views.

Theory of operation. At the beginning of a view, all members that go on have delivered the same messages. So
the number of a view is a place for a state. When the member below joins a group, this layer keeps that for
itself and looks for a donor (`newcomer.py`). The donor's application is asked for its state at the beginning
of the next view, among its deliveries (`donor.py`). The newcomer's application is told that it joined with
that view, then it gets the state, then the view and its messages. Everything that is promised to a member
holds for it from that view on.

Until then the application is not in the group: what is delivered only to it is left out. Other groups go on,
except that all deliveries wait behind a state that is on its way, so that their order remains.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from ordercast.components.application_state.donor import Donor
from ordercast.components.application_state.held import Held, keep_up
from ordercast.components.application_state.limits import StateMessage, check
from ordercast.components.application_state.messages import (
    PieceRequest,
    Possession,
    StateAnswer,
    StatePiece,
    StateQuestion,
    StateTaken,
)
from ordercast.components.application_state.newcomer import FETCHING, PROMISED, SEEKING, Newcomer
from ordercast.components.membership import ViewMember, ViewOptions
from ordercast.core import (
    ANEW,
    Carrier,
    Delivery,
    Env,
    Explanation,
    GroupId,
    Groups,
    Joined,
    Left,
    Member,
    Message,
    NodeId,
    Notice,
    Receiver,
    Stack,
    Stateful,
    StateWanted,
    Unconfirmed,
    View,
)


class StatefulMember(Stack, Member, Receiver, Stateful):
    """A member, and the state of its application."""

    def __init__(
        self,
        env: Env,
        make: Callable[[Env], ViewMember],
        messages: Iterable[type[Message]],
        groups: Collection[GroupId],
        options: ViewOptions,
    ) -> None:
        super().__init__(env)
        self.below = self.embed("member", make, messages)
        self._groups = groups
        self._retry_ns = options.retry_ns
        self._donor = Donor(env, options.chunk_bytes)
        self._newcomers: dict[GroupId, Newcomer] = {}
        """The groups that were joined below, and whose states are not here yet."""
        self._held = Held()
        self._inside: set[GroupId] = set()
        """The groups that the application was told it is in."""
        self._came_anew = False
        """The member below has lost its place in all groups, and the application was told no view since."""
        self._ticking = False

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin, or come back to the groups of an earlier life."""
        super().on_start(saved)
        self._inside |= {*self.joined}

    # For the application

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Hand it to the member below."""
        return self.below.submit(groups, payload)

    @property
    def in_doubt(self) -> int:
        """What the member below holds."""
        return self.below.in_doubt

    @property
    def joined(self) -> Collection[GroupId]:
        """The groups that the application is in."""
        return tuple(group for group in self.below.joined if group not in self._newcomers)

    def join(self, group: GroupId) -> None:
        """Hand it to the member below."""
        self.below.join(group)

    def leave(self, group: GroupId) -> None:
        """Hand it to the member below."""
        self.below.leave(group)

    def give_state(self, group: GroupId, config: int, data: bytes) -> None:
        """Keep it for the newcomers, which ask for it."""
        self._donor.give(group, config, data)

    # What the member below delivers

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """Pass it on, let it wait behind a state, or keep it from an application that is not in the group."""
        match delivery:
            case Carrier():
                if self._shows(delivery.groups):
                    self._pass(delivery)
            case Unconfirmed():
                self.env.deliver(delivery)
            case Joined():
                self._on_joined(delivery)
            case Left():
                self._on_left(delivery)
            case View():
                self._on_view(delivery)
            case Notice() if self._shows((delivery.group,)):
                self._pass(delivery)

    def _pass(self, delivery: Delivery) -> None:
        if self._held:
            self._held.add(delivery)
        else:
            self._tell(delivery)

    def _tell(self, delivery: Delivery) -> None:
        """Hand it to the application. The first view after the loss of all places begins anew."""
        if isinstance(delivery, Notice):
            keep_up(delivery, self._inside)
        if self._came_anew and isinstance(delivery, View):
            self._came_anew = False
            delivery = msgspec.structs.replace(delivery, note=ANEW)
        self.env.deliver(delivery)

    def _shows(self, groups: Groups) -> bool:
        """Whether the application is in one of these groups, or will be when a state has come."""
        hidden = [group for group, one in self._newcomers.items() if one.stage is not FETCHING]
        return not hidden or any(group in self.below.joined and group not in hidden for group in groups)

    def _on_joined(self, joined: Joined) -> None:
        """The member below is in a group: look for its state. If it has come anew, it has no other state."""
        if self.env.me in self.below.views.newest.newcomers:
            self._start_over()
        self._newcomers[joined.group] = Newcomer(self.env, joined.group)
        self._donor.lose(joined.group)

    def _start_over(self) -> None:
        """All places are lost: what was held behind a state is passed on without it."""
        for newcomer in self._newcomers.values():
            self._leave_out(newcomer)
        self._release()
        self._came_anew = True

    def _on_left(self, left: Left) -> None:
        """The member below has left. If it had no state yet, the application was in the group for no time."""
        group = left.group
        if group in self._newcomers:
            self._forget(group)
            self._pass(Joined(group, left.config))
        self._donor.lose(group)
        self._pass(left)

    def _on_view(self, view: View) -> None:
        newcomer = self._newcomers.get(view.group)
        if newcomer is None:
            self._pass(view)
            if self.env.me in view.members:
                self._ask_application(view)
        elif self.env.me in view.members:
            self._advance(newcomer, view)
        elif newcomer.stage is FETCHING:
            self._pass(view)

    def _ask_application(self, view: View) -> None:
        wanted = self._donor.enter(view)
        if wanted is not None:
            self._pass(wanted)

    def _advance(self, newcomer: Newcomer, view: View) -> None:
        """A view begins, and the application may be in the group from it on."""
        before = newcomer.stage
        newcomer.enter(view.config, view.members, self.below.views.newest.newcomers)
        if newcomer.stage is not FETCHING:
            return
        if before is FETCHING:
            self._pass(view)
            return
        self._held.add(Joined(view.group, view.config))
        self._held.add(view)

    # What follows from an event

    def conclude(self) -> None:
        """Seek other donors, ask for views, and pass on what has waited for a state."""
        if self._newcomers:
            for newcomer in list(self._newcomers.values()):
                self._follow(newcomer)
            self._release()
        self._arm()

    def _follow(self, newcomer: Newcomer) -> None:
        if newcomer.state is not None:
            self._held.insert(newcomer.state)
            del self._newcomers[newcomer.group]
        elif newcomer.lost or (newcomer.stage is FETCHING and self._held.overflows):
            self._seek_again(newcomer)
        if newcomer.stage is PROMISED:
            self.below.views.ask_for_view()

    def _seek_again(self, newcomer: Newcomer) -> None:
        """The donor is lost: count from a later view, and leave out what was held for this one."""
        self._leave_out(newcomer)
        view = self.below.views.view
        if view is not None:
            newcomer.seek(view.number, view.receivers(newcomer.group))

    def _forget(self, group: GroupId) -> None:
        """Look no longer for the state of a group."""
        newcomer = self._newcomers.get(group)
        if newcomer is not None:
            self._leave_out(newcomer)
            del self._newcomers[group]
            self._release()

    def _leave_out(self, newcomer: Newcomer) -> None:
        """Stop to wait for a state: the application is not in its group."""
        if newcomer.stage is FETCHING:
            joined = Joined(newcomer.group, newcomer.view)
            for removed in self._held.cut(joined, set(self._inside)):
                if isinstance(removed, StateWanted):
                    self._donor.unask(removed)
        newcomer.rest()

    def _release(self) -> None:
        for delivery in self._held.take(self._is_awaited):
            self._tell(delivery)

    def _is_awaited(self, notice: Notice) -> bool:
        """Whether a notice is that of a group whose state is on its way."""
        one = self._newcomers.get(notice.group)
        if one is None or one.stage is not FETCHING:
            return False
        return isinstance(notice, Joined) and notice.config == one.view

    # Messages and timers

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """A newcomer or a donor says something."""
        assert isinstance(message, StateMessage)
        views = self.below.views
        check(source, message, views.roster.knows((source,)), self._groups, views.newest.number)
        newcomer = self._newcomers.get(message.group)
        match message:
            case StateQuestion():
                self._on_question(source, message)
            case PieceRequest() if message.view <= views.newest.number:  # else this member is still behind
                self._donor.on_request(source, message)
            case StateTaken():
                self._donor.on_taken(source, message)
            case StateAnswer() if newcomer:
                newcomer.on_answer(source, message)
            case StatePiece() if newcomer:
                newcomer.on_piece(source, message)

    def _on_question(self, source: NodeId, question: StateQuestion) -> None:
        """Answer a newcomer that is in the same view; others will ask again."""
        view, group = self.below.views.view, question.group
        if view is None or view.number != question.view or source not in view.receivers(group):
            return
        newcomer = self._newcomers.get(group)
        has = newcomer is None and group in self.below.joined
        seeking = newcomer is None or newcomer.stage is SEEKING
        lacking = Possession.LACKS if seeking else Possession.WAITS
        self._donor.answer(source, question, Possession.HAS if has else lacking)

    def _arm(self) -> None:
        if not self._ticking and (self._newcomers or self._donor.busy):
            self._ticking = True
            self.env.set_timer("state", self._retry_ns)

    def on_own_timer(self, name: str) -> None:
        """Ask again, and forget what is old."""
        self._ticking = False
        self._donor.tick()
        for newcomer in self._newcomers.values():
            newcomer.tick()

    # Explanations

    def explain_own(self) -> Explanation:
        """Which states this node waits for, and which ones its application has not given."""
        waits = [newcomer.wait() for newcomer in self._newcomers.values()]
        behind = ", ".join(wait.subject for wait in waits)
        return Explanation({}, (*waits, *self._donor.waits()), behind)
