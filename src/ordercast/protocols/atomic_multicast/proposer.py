"""What the leader of a group puts into the log, and when.

Each Request takes a slot. Everything else rides along: the highest final clock heard of (so that
the group's clock passes it) and the final numbers to settle. A command of its own is made only when
the clock must move and nothing is in flight whose successor could carry that, or when settling is
overdue.

All of this belongs to one leadership: proposals may be lost with it, so a new leadership starts
from what is known to be unsettled, and clients ask again for the rest.
"""

from collections import deque
from itertools import islice

from ordercast.components.consensus import Replica
from ordercast.core import NodeId
from ordercast.protocols.atomic_multicast.messages import (
    Command,
    Key,
    Mark,
    Request,
    encode_command,
)

SETTLES_MAX = 256
"""Final numbers in one command."""
NO_BALLOT = -1
REPORTS_MAX = 256
"""Settled messages that wait to be reported to one life of a client; a client asks for the others."""


class Proposer:
    """The queue in front of a group's log."""

    __slots__ = (
        "_asked",
        "_ballot",
        "_hinted",
        "_overdue",
        "_queue",
        "_queue_max",
        "_replica",
        "_reports",
        "_settles",
        "_unsettled",
        "high",
    )

    def __init__(self, replica: Replica, queue_max: int) -> None:
        self._replica = replica
        self._queue_max = queue_max
        self._ballot = NO_BALLOT
        self._unsettled: dict[Key, Mark] = {}
        """Final numbers known here that the log has not recorded."""
        self.high = 0
        """The highest final clock heard of."""
        self._begin()

    def _begin(self) -> None:
        """A leadership begins or ends."""
        self._queue: deque[Request] = deque()
        self._asked: dict[Key, list[NodeId]] = {}
        """Requests in the queue or in flight, and who but their clients wants the answer."""
        self._settles = dict.fromkeys(self._unsettled)
        """Final numbers that the next command carries, in order."""
        self._reports: dict[tuple[NodeId, int], list[int]] = {}
        self._hinted = 0
        self._overdue = False

    def leads(self) -> bool:
        """Whether this replica leads its group."""
        ballot = self._replica.ballot if self._replica.is_leader else NO_BALLOT
        if ballot != self._ballot:
            self._ballot = ballot
            self._begin()
        return ballot != NO_BALLOT

    def enqueue(self, key: Key, request: Request, asker: NodeId | None) -> None:
        """Put a request into the log, unless it is on its way already."""
        askers = self._asked.get(key)
        if askers is None:
            if len(self._queue) >= self._queue_max:
                return
            askers = self._asked[key] = []
            self._queue.append(request)
        if asker is not None and asker not in askers:
            askers.append(asker)

    def done(self, key: Key) -> list[NodeId]:
        """A request has its timestamp: who but the client asked for it."""
        return self._asked.pop(key, [])

    def note_final(self, key: Key, final: Mark) -> None:
        """A final number, to be settled on occasion."""
        self.high = max(self.high, final[0])
        self._unsettled[key] = final
        if self.leads():
            self._settles[key] = None

    def settle_now(self, key: Key) -> None:
        """A final number that should have been settled; unless its command is under way already.

        A leadership loses none of its own proposals, so one is enough.
        """
        if self.leads() and key in self._settles:
            self._overdue = True

    def settled(self, key: Key) -> bool:
        """The log has recorded a final number; whether this replica leads."""
        self._unsettled.pop(key, None)
        self._settles.pop(key, None)
        if not self.leads():
            return False
        numbers = self._reports.setdefault(key[:2], [])
        if len(numbers) < REPORTS_MAX:
            numbers.append(key[2])
        return True

    def reports(self, key: Key) -> tuple[int, ...]:
        """What to report to the client of a message, once."""
        return tuple(self._reports.pop(key[:2], ()))

    def push(self, clock: int) -> None:
        """Propose what waits, as far as the log takes it; `clock` is the group's."""
        if not self.leads():
            return
        queue = self._queue
        while queue and self._propose(queue[0]):
            queue.popleft()
        behind = self.high > max(clock, self._hinted) and not self._replica.in_flight
        if behind or self._overdue:
            self._propose(None)

    def _propose(self, request: Request | None) -> bool:
        keys = tuple(islice(self._settles, SETTLES_MAX))
        settles = tuple((key, self._unsettled[key]) for key in keys)
        hinted, self._hinted = self._hinted, self.high
        if self._replica.propose(encode_command(Command(self.high, settles, request))):
            self._overdue = False
            for key in keys:
                self._settles.pop(key, None)
            return True
        self._hinted = hinted
        return False
