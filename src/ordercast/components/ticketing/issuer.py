"""Issues tickets for messages that are assigned to this member, once for each message."""

from collections.abc import Iterable

from ordercast.components.ticketing.messages import Key, Sequencer
from ordercast.components.ticketing.modes import ISSUING, Mode
from ordercast.components.ticketing.ordering import Entry
from ordercast.components.ticketing.ticket_clock import TicketClock
from ordercast.core import Nanos, NodeId


class Issuer:
    """The tickets of one member: those that wait for an envelope, and what they are for."""

    __slots__ = ("_clock", "_issued", "_me", "_unsent")

    def __init__(self, me: NodeId, clock: TicketClock) -> None:
        self._me = me
        self._clock = clock
        self._issued: set[Key] = set()
        """Messages that have a ticket of this member in this view and are not ordered yet."""
        self._unsent: list[tuple[int, NodeId, int]] = []

    @property
    def has_unsent(self) -> bool:
        """Whether tickets wait for an envelope."""
        return bool(self._unsent)

    def consider(self, entries: Iterable[Entry], mode: Mode, mine: Sequencer, now: Nanos) -> None:
        """Issue tickets for those messages that are assigned to this member and have none.

        On its way to passive a member issues no ticket for others, and none after that of its switch.
        """
        if mode not in ISSUING:
            return
        for entry in entries:
            own = entry.key.sender == self._me
            if entry.sequencer == mine and (own or mode is Mode.ACTIVE) and entry.key not in self._issued:
                self.issue(entry.key, now)

    def issue_next(self, count: int, ordered: int, now: Nanos) -> None:
        """Issue the ticket of an own message that is about to be sent; those up to `ordered` are ordered.

        The message before it may have no ticket: a view came between, or another member was to issue it. It
        will get a higher number than this one would get now. So this one gets its ticket when it comes back.
        """
        if count - 1 <= ordered or Key(self._me, count - 1) in self._issued:
            self.issue(Key(self._me, count), now)

    def issue(self, key: Key, now: Nanos) -> None:
        """Issue the ticket of a message."""
        self._issued.add(key)
        self._unsent.append((self._clock.issue(now), key.sender, key.serial))

    def take(self, most: int) -> tuple[tuple[int, NodeId, int], ...]:
        """The oldest tickets that wait, for an envelope."""
        taken, self._unsent = tuple(self._unsent[:most]), self._unsent[most:]
        return taken

    def ordered(self, key: Key) -> None:
        """A message is in its place."""
        self._issued.discard(key)

    def forget(self) -> None:
        """The view is over: tickets that are not ordered are void."""
        self._issued.clear()
        self._unsent.clear()
