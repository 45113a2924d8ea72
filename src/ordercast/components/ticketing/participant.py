"""A member of a group that orders messages by tickets (hybrid paper, sections 4 and 5).

The member stands on view synchrony. What it hears there changes the common state (`ordering.py`) and its own:
its mode, its sequencer, the tickets that it issues. What it says goes out when an event is over (`conclude`).

Deviations from Figure 4 of the paper:

- In the branch for goingToPassive the figure sets the last delivered number to another process's counter
  (``l_i := c_j``). The member keeps its own.
- A ticket counts only in the view in which it was issued. A view may change between issuing and sending; then
  the ticket would come in a view whose members have not all got its message.
- When a view ends, all survivors have the same tickets and order all of them. They need not wait for the
  clocks of members that are gone.
- On its way to passive a member still issues tickets for its own messages that lost theirs with a view.
- A message gets no ticket before the one that its sender sent before it, which may have lost its own.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from ordercast.components.membership import MESSAGES as VIEW_MESSAGES
from ordercast.components.membership import Reception, ViewSynchrony
from ordercast.components.ticketing.estimates import Estimates
from ordercast.components.ticketing.issuer import Issuer
from ordercast.components.ticketing.majority import Majority
from ordercast.components.ticketing.messages import (
    ENVELOPES,
    DataMessage,
    Envelope,
    Header,
    Reassign,
    Sequencer,
    Switch,
    Tickets,
)
from ordercast.components.ticketing.modes import ISSUING, MODES, SERVED, Mode, ModeEvent
from ordercast.components.ticketing.options import TicketOptions
from ordercast.components.ticketing.ordering import Effect, Entry, Ordered, Ordering
from ordercast.components.ticketing.outbound import Outbound, Submitted
from ordercast.components.ticketing.postbox import Postbox
from ordercast.components.ticketing.ticket_clock import TicketClock
from ordercast.core import (
    Carrier,
    Delivered,
    Delivery,
    Env,
    GroupId,
    NodeId,
    RemoteError,
    Stack,
    Stamp,
    Unconfirmed,
    View,
)
from ordercast.core.message import PAYLOAD_BYTES_MAX

TICKETS_MAX = 4096
"""How many tickets an envelope carries at most."""
TICKET_BYTES = 32
"""A ticket in an envelope has at most this many bytes."""
TICKETS_SPARE = 16
"""An envelope without tickets has at most as many bytes as this many tickets, beside its payload."""
RESERVE_TICKS = 10_000_000
"""How far ahead ticket numbers are saved, so that it happens rarely."""

MakeViews: TypeAlias = Callable[[Env, Callable[[], bytes], Callable[[bytes], None]], ViewSynchrony]
"""Makes the view-synchronous layer, from functions that take and restore the state of this one."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all members of a deployment know."""

    groups: Collection[GroupId]
    options: TicketOptions
    begin_active: frozenset[NodeId] | None
    """The nodes that are active when they come in; None if all are."""
    preferred: Mapping[NodeId, NodeId]
    """The sequencer of a passive node, while that one is active; others take the closest."""
    probes: bool = True
    """Whether members measure the delays between them."""
    senders: Collection[NodeId] = ()
    """The nodes that send; they sit in views also if they receive nothing."""


class Participant(Stack):
    """A member's part in the order: its mode, its sequencer, its tickets, its views."""

    def __init__(self, env: Env, setting: Setting, make_views: MakeViews) -> None:
        super().__init__(env)
        self.setting = setting
        self.mode = Mode.OUTSIDE
        self.sequencer: Sequencer | None = None
        """Who issues tickets for this member; itself while it is active."""
        self.ordering = Ordering()
        self.outbound = Outbound(setting.options.window)
        self.majority = Majority(env.me)
        self.estimates = Estimates(setting.options.detector, setting.options.samples)
        self.clock = TicketClock()
        self.issuer = Issuer(env.me, self.clock)
        self.refused = 0
        """Envelopes that no correct member sends."""
        self._began = 0
        """The view with which this member came in."""
        self._reserved = 0
        """A saved number that no delivery of this life is above."""
        self._shown = 0
        """What the others have seen of this ticket clock."""
        self._wanted = 0
        """The highest ticket of others: they wait until this ticket clock is known to be past it."""
        self._told = 0
        """The place that the others were told last."""
        self._overdue = False
        """Tickets, or the clock, have waited long enough for a message to ride on."""
        self.views = self.embed(
            "views", lambda inner: make_views(inner, self._snapshot, self._restore), VIEW_MESSAGES
        )
        self.reception = Reception(env, self.views, env.me in setting.senders)
        self.postbox = Postbox(self.views.multicast)

    # Changes of mode

    def go_active(self) -> None:
        """Become active, once the wish is ordered."""
        self._switch(ModeEvent.WANT_ACTIVE)

    def go_passive(self, instead: Collection[NodeId] | None = None) -> None:
        """Become passive, once that is ordered, unless none of these is active then (default: any other)."""
        relied = set(self.ordering.configuration.actives if instead is None else instead)
        self._switch(ModeEvent.WANT_PASSIVE, tuple(sorted(relied - {self.env.me})))

    def change_sequencer(self) -> None:
        """Take the closest active member as sequencer, once all own messages are ordered."""
        self._become(ModeEvent.WANT_SEQUENCER)
        self._settle()

    def _switch(self, event: ModeEvent, instead: tuple[NodeId, ...] = ()) -> None:
        self._become(event)
        assert self.sequencer is not None
        count, active = self.outbound.next_count(), event is ModeEvent.WANT_ACTIVE
        if not active:
            self._issue_own(count)
        self.postbox.post(Switch(self._header(), count, self.sequencer, active, instead))

    def _become(self, event: ModeEvent) -> None:
        self.mode = MODES.after(self.mode, event)

    # What the view-synchronous layer delivers

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin above all numbers that an earlier life may have delivered."""
        if "clock" in saved:
            self._reserved = int.from_bytes(saved["clock"], "little")
            self.clock.follow(self._reserved, 0, self.env.now)
        super().on_start(saved)
        self.reception.resume()

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """A view, or an envelope. This member keeps its own messages, so it needs no other notice."""
        if isinstance(delivery, View):
            self._on_view(delivery)
        elif isinstance(delivery, Carrier):
            self._on_envelope(delivery.sender, delivery.payload)

    def _on_envelope(self, source: NodeId, payload: bytes) -> None:
        try:
            envelope = ENVELOPES.decode(payload)
        except RemoteError:  # the same at all members
            self.refused += 1
            return
        assert isinstance(envelope, Envelope)
        self._note(source, envelope)
        strange = self.ordering.strangers
        fresh = self.ordering.receive(source, envelope, self.env.now)
        if strange:
            self._issue_all()
        else:
            self._issue(fresh)
        self._order()

    def _note(self, source: NodeId, envelope: Envelope) -> None:
        """What a header says about its sender."""
        header = envelope.header
        if source == self.env.me and header.view >= self._began:
            self.postbox.heard()
        self.clock.follow(header.clock, self.estimates.shortest(source), self.env.now)
        if isinstance(envelope, DataMessage) and source != self.env.me:
            self.estimates.message_at(source, header.since_ns)
        if header.view == self.ordering.configuration.view:
            self.majority.note(source, header.place)
            if source != self.env.me and header.tickets:
                self._wanted = max(self._wanted, header.tickets[-1][0])

    def _order(self) -> None:
        """Order what can be ordered."""
        me, known = self.env.me, self.ordering.clocks.get(self.env.me, 0)
        while True:
            # Own tickets that wait or are under way may have lower numbers than the clock shows.
            hidden = self.issuer.has_unsent or not self.postbox.is_clear
            ordered = self.ordering.following(me, known if hidden else self.clock.read(self.env.now))
            if ordered is None:
                break
            self._on_ordered(ordered)
            if isinstance(ordered.message, Switch):
                self._check_sequencer()
        self._deliver_agreed()

    def _on_ordered(self, ordered: Ordered) -> None:
        """A message has its place."""
        key = ordered.ticket.key
        self.issuer.ordered(key)
        self.majority.add(ordered)
        if not self.setting.options.uniform:
            self._deliver(ordered)
        if key.sender == self.env.me and isinstance(ordered.message, Switch):
            self._on_own_switch(ordered.message, ordered.effect)
        self._settle()

    def _on_own_switch(self, message: Switch, effect: Effect) -> None:
        if self.mode is not (Mode.TO_ACTIVE if message.active else Mode.TO_PASSIVE):
            return  # it took over before its wish was ordered
        self._become(ModeEvent.SWITCHED if effect is Effect.SWITCHED else ModeEvent.ABORTED)
        self.sequencer = self._descriptor() if self.mode in ISSUING else None
        self._issue_all()

    # Sequencers

    def _settle(self) -> None:
        """Change the sequencer if nothing is under way with the old one."""
        if self.mode is Mode.CHANGING and self._ordered_count() == self.outbound.count:
            self._become(ModeEvent.SETTLED)
            self.sequencer = self._choose()

    def _check_sequencer(self) -> None:
        """Find another sequencer, for messages under way too, if this one is not active any more."""
        if self.mode in SERVED and not self.ordering.configuration.offers(self.sequencer):
            self._become(ModeEvent.SEQUENCER_GONE)
            self.sequencer = self._choose()
            self._reassign()

    def _reassign(self) -> None:
        assert self.sequencer is not None
        after, upto = self._ordered_count(), self.outbound.count
        if after < upto:
            self.postbox.post(Reassign(self._header(), after, upto, self.sequencer))

    def _choose(self) -> Sequencer:
        """The preferred sequencer if it is active, else the closest active member."""
        configuration = self.ordering.configuration
        preferred = self.setting.preferred.get(self.env.me)
        if preferred is not None and preferred in configuration.actives:
            return configuration.sequencer(preferred)
        return configuration.sequencer(self.closest(configuration.actives))

    def closest(self, nodes: Sequence[NodeId]) -> NodeId:
        """The closest of some nodes; those whose delay is not known come last."""
        delays = {node: self.estimates.delay(node) for node in nodes}
        return min(nodes, key=lambda node: (delays[node] is None, delays[node] or 0, node))

    def _ordered_count(self) -> int:
        return self.ordering.counts.get(self.env.me, 0)

    def _descriptor(self) -> Sequencer:
        """The descriptor of this member."""
        return self.ordering.configuration.sequencer(self.env.me)

    def _issue_all(self) -> None:
        self._issue(self.ordering.waiting.values())

    def _issue(self, entries: Iterable[Entry]) -> None:
        if not self.ordering.strangers:
            self.issuer.consider(entries, self.mode, self._descriptor(), self.env.now)

    def _issue_own(self, count: int) -> None:
        """Issue the ticket of a message that this member is about to send."""
        if not self.ordering.strangers:
            self.issuer.issue_next(count, self._ordered_count(), self.env.now)

    # Deliveries

    def _deliver_agreed(self) -> None:
        for ordered in self.majority.take():
            self._on_agreed(ordered)

    def _on_agreed(self, ordered: Ordered) -> None:
        """No failure can undo the delivery of a message any more."""
        if self.setting.options.uniform:
            self._deliver(ordered)
        if ordered.ticket.key.sender == self.env.me:
            self.outbound.confirm(ordered.ticket.key.serial)

    def _deliver(self, ordered: Ordered) -> None:
        ticket, message = ordered.ticket, ordered.message
        if ticket.key.sender == self.env.me:
            self.outbound.delivered(ticket.key.serial)
        if isinstance(message, DataMessage) and self.reception.receives(message.groups):
            self._reserve(ticket.number)
            stamp = Stamp(ticket.number, ticket.issuer)
            view = self.ordering.configuration.view
            self.env.deliver(Delivered(message.payload, message.groups, ticket.key.sender, stamp, view))

    def _reserve(self, number: int) -> None:
        """Save that numbers up to one well above this may be delivered, so that a later life begins above."""
        if number > self._reserved:
            self._reserved = number + RESERVE_TICKS
            self.env.save("clock", self._reserved.to_bytes(8, "little"))

    # Views

    def _on_view(self, view: View) -> None:
        inside = self.views.view is not None
        if inside or self.views.saw_all:
            self._close_view()
        if not inside:
            self._leave_view()
        self.reception.install(view)
        if inside:
            self._enter_view(view)

    def _close_view(self) -> None:
        """All members that go on have the same messages: order and deliver them."""
        for ordered in self.ordering.close():
            self._on_ordered(ordered)
        for ordered in self.majority.take_all():
            self._on_agreed(ordered)
        self.issuer.forget()

    def _enter_view(self, view: View) -> None:
        ordering, members = self.ordering, view.members
        installed = self.views.view
        assert installed is not None
        ordering.enter(view.config, members, installed.newcomers, self.setting.begin_active)
        self.clock.follow(ordering.top, 0, self.env.now)
        self.majority.enter(members, installed.voters)
        self.estimates.forget(members)
        self._shown, self._wanted, self._told = ordering.top, 0, 0
        self._find_role(view.config)
        if ordering.strangers:
            self.postbox.post(Tickets(self._header()))
        self._issue_all()
        self._order()

    def _find_role(self, view: int) -> None:
        """What a new view makes of this member."""
        active = self.env.me in self.ordering.configuration.actives
        if self.mode is Mode.OUTSIDE:
            self._give_back(self.outbound.restart(self._began, self.ordering.last.get(self.env.me)))
            self._began = view
            self._become(ModeEvent.ENTER_ACTIVE if active else ModeEvent.ENTER_PASSIVE)
            self.sequencer = self._descriptor() if active else self._choose()
        elif active and self.mode in SERVED:
            self._become(ModeEvent.TAKE_OVER)
            self.sequencer = self._descriptor()
            self._reassign()
        else:
            if not active and self.mode in ISSUING:
                self._become(ModeEvent.RELIEVED)
            self._check_sequencer()

    def _leave_view(self) -> None:
        """This member is out; what the others have not ordered is sent again when it is back."""
        if self.mode is not Mode.OUTSIDE:
            self._become(ModeEvent.EXCLUDED)
            self.sequencer = None
            self.postbox.clear()
            self.issuer.forget()
            self.majority.enter((), ())

    def _snapshot(self) -> bytes:
        return msgspec.msgpack.encode(self.ordering.closed())

    def _restore(self, state: bytes) -> None:
        """Go on from the state of the others; if nobody has it, it is not known what became of own
        messages."""
        if state:
            self.ordering = msgspec.msgpack.decode(state, type=Ordering)
            return
        self.ordering = Ordering(anew=True)
        self._give_back(self.outbound.give_up())

    def _give_back(self, lost: list[Submitted]) -> None:
        """Tell the application of messages that perhaps only some receivers deliver."""
        for groups, payload, _ in lost:
            self.env.deliver(Unconfirmed(groups[0], groups, payload))

    # Envelopes

    def _header(self, payload_bytes: int = 0) -> Header:
        """The header of an envelope that is made now."""
        room = (PAYLOAD_BYTES_MAX - payload_bytes) // TICKET_BYTES - TICKETS_SPARE
        tickets = self.issuer.take(min(room, TICKETS_MAX)) if self.mode in ISSUING else ()
        self._shown = tickets[-1][0] if self.issuer.has_unsent else self.clock.read(self.env.now)
        self._told = self.ordering.place
        self._overdue = False
        view = self.ordering.configuration.view
        return Header(view, self._shown, self.env.now, self._told, tickets)
