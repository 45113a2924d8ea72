"""A member of a group that orders messages by tickets, as an application uses it.

Its part in the order is `Participant`. This adds what goes out: messages of the application, tickets and
clocks that found no message to ride on in time, and signals to single members.
"""

from collections.abc import Collection, Mapping, Sequence

from ordercast.components.membership import ViewMember
from ordercast.components.ticketing.explain import beliefs, explain_member, role_change
from ordercast.components.ticketing.messages import DataMessage, Echo, Probe, Progress, Sequencer, Tickets
from ordercast.components.ticketing.modes import ISSUING, SENDING, Mode
from ordercast.components.ticketing.outbound import Submitted
from ordercast.components.ticketing.participant import (
    TICKET_BYTES,
    TICKETS_SPARE,
    MakeViews,
    Participant,
    Setting,
)
from ordercast.core import (
    Env,
    Explanation,
    GroupId,
    Groups,
    LocalError,
    Message,
    Nanos,
    NodeId,
)
from ordercast.core.message import PAYLOAD_BYTES_MAX

SUBMITTED_BYTES_MAX = PAYLOAD_BYTES_MAX - 2 * TICKETS_SPARE * TICKET_BYTES
"""The size of the largest message that applications may submit."""


class TicketMember(Participant, ViewMember):
    """One member."""

    def __init__(self, env: Env, setting: Setting, make_views: MakeViews) -> None:
        super().__init__(env, setting, make_views)
        self._armed: set[str] = set()
        self._announced: Sequencer | None = None
        """The sequencer that the application knows of."""

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Send a message; False while too many are waiting."""
        if not groups or any(group not in self.setting.groups for group in groups):
            raise LocalError(f"groups {groups} are not all groups of this deployment")
        if len(payload) > SUBMITTED_BYTES_MAX:
            raise LocalError(
                f"the payload has {len(payload)} bytes; the limit is {SUBMITTED_BYTES_MAX} bytes"
            )
        if not self.outbound.offer(Submitted(groups, payload, self.env.now)):
            return False
        self.estimates.message_at(self.env.me, self.env.now)
        self.conclude()
        return True

    @property
    def joined(self) -> Collection[GroupId]:
        """The groups that this member receives."""
        return self.reception.groups

    def join(self, group: GroupId) -> None:
        """Ask to receive a group; the next view tells."""
        self.reception.join(group)

    def leave(self, group: GroupId) -> None:
        """Ask to receive a group no longer; the next view tells."""
        self.reception.leave(group)

    @property
    def in_doubt(self) -> int:
        """Messages that are not known to be delivered."""
        return len(self.outbound)

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin with the group, and begin to measure."""
        super().on_start(saved)
        if self.setting.probes:
            self.env.set_timer("probe", self.setting.options.probe_ns)

    # What goes out when an event is over

    def conclude(self) -> None:
        """Send what there is to send, and see to it that nothing waits for ever."""
        if self.mode is not Mode.OUTSIDE:
            if self.sequencer != self._announced:
                self._announce_role()
            while self.postbox.push() and self._make():
                pass
            self._arm()

    def _announce_role(self) -> None:
        self._announced = self.sequencer
        for group in self.reception.groups:
            self.env.deliver(role_change(self, group))

    def _make(self) -> bool:
        """Make the next envelope, if there is a reason for one."""
        alone = self.setting.options.ticket_wait_ns == 0 and self.issuer.has_unsent
        if self.mode in SENDING and self.outbound.queued:
            self.postbox.post(self._next_data())
        elif self.mode in ISSUING and (self._overdue or alone):
            self.postbox.post(Tickets(self._header()))
        else:
            return False
        return True

    def _next_data(self) -> DataMessage:
        count, submitted = self.outbound.take()
        assert self.sequencer is not None
        if self.mode is Mode.ACTIVE:
            self._issue_own(count)
        header = self._header(len(submitted.payload))._replace(since_ns=submitted.at_ns)
        return DataMessage(header, count, self.sequencer, submitted.groups, submitted.payload)

    # Timers and signals

    def _arm(self) -> None:
        """Set the timers of what waits for a message to ride on."""
        options = self.setting.options
        if self.mode in ISSUING and self.postbox.is_empty:  # else the next event tries again
            if self.issuer.has_unsent:
                self._set("tickets", options.ticket_wait_ns)
            if self._wanted > self._shown:
                self._set("silence", options.silence_ns)
        wait = options.confirm_ns if options.uniform else options.views.heartbeat_ns
        if self.ordering.place > self._told:
            self._set("confirm", wait)
        if len(self.majority):
            self._set("ask", 2 * (wait + options.views.heartbeat_ns))

    def _set(self, name: str, after: Nanos) -> None:
        if name not in self._armed:
            self._armed.add(name)
            self.env.set_timer(name, after)

    def on_own_timer(self, name: str) -> None:
        """Something has waited long enough, or it is time to measure."""
        self._armed.discard(name)
        match name:
            case "tickets":
                self._overdue = self.issuer.has_unsent
            case "silence":
                self._overdue = self._wanted > self._shown
            case "confirm":
                self._tell_progress(self._others(), ask=False)
            case "ask":
                self._tell_progress(self.majority.behind(), ask=True)
            case "probe":
                self.env.multicast(self._others(), Probe(self.env.now))
                self.env.set_timer("probe", self.setting.options.probe_ns)

    def _tell_progress(self, nodes: Sequence[NodeId], *, ask: bool) -> None:
        view, self._told = self.ordering.configuration.view, self.ordering.place
        self.env.multicast(nodes, Progress(view, self._told, ask))

    def _others(self) -> list[NodeId]:
        """The other members of the view."""
        if self.mode is Mode.OUTSIDE:
            return []
        return [node for node in self.ordering.configuration.members if node != self.env.me]

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """A signal of another member."""
        match message:
            case Probe():
                self.env.send(source, Echo(message.sent_ns))
            case Echo():
                self.estimates.round_trip(source, self.env.now - message.sent_ns)
            case Progress() if self.mode is not Mode.OUTSIDE:
                self._on_progress(source, message)

    def _on_progress(self, source: NodeId, message: Progress) -> None:
        if message.view != self.ordering.configuration.view:
            return
        self.majority.note(source, message.place)
        self._deliver_agreed()
        if message.ask:
            self._tell_progress([source], ask=False)

    def own_rate(self) -> str:
        """What this member believes about its own rate, for a person to read."""
        return beliefs(self, self.env.me)

    def explain_own(self) -> Explanation:
        """The roles, rates and delays that this member believes in, and what each message waits for."""
        return explain_member(self)
