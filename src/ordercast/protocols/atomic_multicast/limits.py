"""What a peer may claim: messages, clocks and lives that correct peers can have.

A claim beyond is refused before it changes anything. Otherwise one message would move the clock of a group to
the end of all numbers, or make a receiver answer a node that does not exist.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import NoReturn

from ordercast.core import SECOND, GroupId, Groups, NodeId, RemoteError
from ordercast.protocols.atomic_multicast.messages import Command, Final, Mark, Request, Timestamp, key_name

CLOCKS_AHEAD_MAX = 1 << 44
"""Another group may have ordered far more messages than this one, but not so many: at 100,000 a second they
take five years."""
CLOCK_MAX = 1 << 62
"""No clock comes near the end of all numbers."""
NUMBERS_MAX = 1 << 48
"""More messages than a client sends in a life: at a million a second they take nine years."""
LIFE_AHEAD_MAX = 366 * 86_400 * SECOND
"""A life is named by the clock of its client at its start. Clocks are wrong, but not by more than a year."""

KNOWN_MAX = 1024
"""Sets of groups that are remembered as good."""


class Limits:
    """The bounds on what comes from others."""

    __slots__ = ("_backlog", "_clients", "_known", "_members")

    def __init__(
        self, members: Mapping[GroupId, tuple[NodeId, ...]], clients: tuple[NodeId, ...], backlog: int
    ) -> None:
        self._members = members
        self._clients = frozenset(clients)
        self._backlog = backlog
        self._known: set[Groups] = set()

    def check_request(self, request: Request, group: GroupId, now: int) -> None:
        """Refuse what no client of this protocol would send to a group."""
        if request.origin not in self._clients or request.epoch > now + LIFE_AHEAD_MAX:
            self._refuse(request)
        if group not in request.groups or not self._are_groups(request.groups):
            raise RemoteError(f"a request to groups {request.groups[:8]} came to group {group}")
        if request.number > NUMBERS_MAX or not 0 <= request.number - request.floor < self._backlog:
            raise RemoteError(
                f"request {request.number} is not one of {self._backlog} from its floor {request.floor} on"
            )

    def check_final(self, message: Final, clock: int, now: int) -> None:
        """Refuse the final number of nobody's message, or one far above the clock of the own group."""
        if message.origin not in self._clients or message.epoch > now + LIFE_AHEAD_MAX:
            self._refuse(message)
        self._check_clock((message.clock, message.group), clock)

    def check_timestamp(self, source: NodeId, message: Timestamp, clock: int) -> None:
        """Refuse a timestamp that is not from its group, or far above all clocks known here."""
        if source not in self._members.get(message.group, ()):
            raise RemoteError(f"node {source} gives a timestamp of group {message.group}, which it is not in")
        self._check_clock((message.clock, message.group), clock)

    def check_command(self, command: Command, group: GroupId, clock: int) -> None:
        """Refuse what no correct leader puts into the log; depends on the log alone."""
        self._check_clock((command.hint, group), clock)
        for _, final in command.settles:
            self._check_clock(final, clock)
        if command.request is not None:
            self.check_request(command.request, group, command.request.epoch)

    def _are_groups(self, groups: Groups) -> bool:
        """Whether these are known groups, each once and in ascending order; the answer is remembered."""
        if groups in self._known:
            return True
        ascending = all(one < two for one, two in pairwise(groups))
        if not ascending or any(group not in self._members for group in groups):
            return False
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known.add(groups)
        return True

    def _refuse(self, message: Request | Final) -> NoReturn:
        name = key_name((message.origin, message.epoch, message.number))
        raise RemoteError(f"{name} is of no client, or of a life that has not begun yet")

    def _check_clock(self, mark: Mark, clock: int) -> None:
        if mark[0] > min(clock + CLOCKS_AHEAD_MAX, CLOCK_MAX) or mark[1] not in self._members:
            raise RemoteError(f"timestamp {mark} is far above the highest so far, {clock}, or of no group")
