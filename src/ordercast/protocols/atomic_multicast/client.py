"""The sender's part of atomic multicast (Hydra section 7.1).

A client sends a message to all receivers of each destination group, waits for the timestamp of each
group, picks the highest as the final number and forwards that to all involved receivers. What is
not answered is repeated. The Final is sent once; the client then waits for each destination group
to settle it in its log, which groups report on later Timestamps, and repeats the Final only if the
report stays out. Messages to one group need no settling: their timestamp is their final number.

Limits: `window` messages without a final number, and `backlog` numbers from the oldest that is not
settled everywhere to the next; beyond, `submit` returns False. A client that restarts begins a new
life (epoch) and does not go on with what it had not finished; receivers do, if one of them got it.
"""

from collections.abc import Mapping

from ordercast.core import (
    Env,
    Explanation,
    GroupId,
    Groups,
    LocalError,
    Member,
    Message,
    Nanos,
    NodeId,
    Wait,
)
from ordercast.core.message import PAYLOAD_BYTES_MAX
from ordercast.protocols.atomic_multicast.alarms import Alarms
from ordercast.protocols.atomic_multicast.limits import Limits
from ordercast.protocols.atomic_multicast.messages import (
    Final,
    Mark,
    Request,
    Settled,
    Timestamp,
    key_name,
)
from ordercast.protocols.atomic_multicast.options import AtomicMulticastOptions

BURST = 64
"""Repetitions at once."""
BACKOFF_MAX = 3
"""A repetition waits at most 2 to this power times as long as the first."""


class Flight:
    """A message on its way to its final number, and then to being settled."""

    __slots__ = ("attempts", "clocks", "final", "groups", "number", "payload", "sent", "since", "unsettled")

    def __init__(self, number: int, groups: Groups, payload: bytes, now: Nanos) -> None:
        self.number = number
        self.groups = groups
        self.payload = payload
        self.clocks: dict[GroupId, int] = {}
        self.final: Mark | None = None
        self.unsettled = list(groups) if len(groups) > 1 else []
        self.attempts = 0
        self.since = now
        self.sent = now


class Client(Member):
    """One sender."""

    def __init__(
        self,
        env: Env,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        options: AtomicMulticastOptions,
    ) -> None:
        super().__init__(env)
        self._members = members
        self._options = options
        self._targets: dict[Groups, tuple[NodeId, ...]] = {}
        self._epoch = 0
        self._number = 0
        self._floor = 0
        self._open = 0
        """Messages without a final number."""
        self._flights: dict[int, Flight] = {}
        self._limits = Limits(members, (env.me,), options.backlog)
        self._highest = 0
        """The highest clock that any group has told."""
        self._alarms: Alarms[int] = Alarms(env, "retry", options.retry_ns // 4)

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin a life of its own, above all earlier ones."""
        last = int.from_bytes(saved.get("epoch", b"\xff"), "little", signed=True)
        self._epoch = max(self.env.now, last + 1)
        self.env.save("epoch", self._epoch.to_bytes(10, "little", signed=True))

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Send a message to these groups; False while too many are on their way."""
        targets = self._targets.get(groups) or self._resolve(groups)
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise LocalError(f"the payload has {len(payload)} bytes; the limit is {PAYLOAD_BYTES_MAX} bytes")
        number, options = self._number, self._options
        if self._open >= options.window or number - self._floor >= options.backlog:
            return False
        self._number += 1
        self._open += 1
        self._flights[number] = Flight(number, groups, payload, self.env.now)
        request = Request(self.env.me, self._epoch, number, self._floor, groups, payload)
        self.env.multicast(targets, request)
        self._alarms.add(options.retry_ns, number)
        return True

    def on_message(self, source: NodeId, message: Message) -> None:
        """An answer of a group."""
        if not isinstance(message, Timestamp | Settled):
            return
        if message.origin != self.env.me or message.epoch != self._epoch:
            return
        if isinstance(message, Timestamp):
            self._limits.check_timestamp(source, message, self._highest)
        if isinstance(message, Settled):
            self._on_settled(message.number, message.group)
            return
        for number in message.settled:
            self._on_settled(number, message.group)
        self._highest = max(self._highest, message.clock)
        flight = self._flights.get(message.number)
        if flight is not None and flight.final is None and message.group in flight.groups:
            flight.clocks[message.group] = message.clock
            if len(flight.clocks) == len(flight.groups):
                self._finish(flight)

    def on_timer(self, name: str) -> None:
        """Repeat what has not been answered."""
        for number in self._alarms.due(BURST):
            flight = self._flights.get(number)
            if flight is not None:
                self._check(flight)

    def explain(self) -> Explanation:
        """Which groups each message waits for."""
        waits = []
        for flight in self._flights.values():
            payload: bytes | None = None
            if flight.final is None:
                missing = [group for group in flight.groups if group not in flight.clocks]
                blocker = f"a timestamp from {_names(missing)}"
                payload = flight.payload
            else:
                missing = list(flight.unsettled)
                blocker = f"{_names(missing)} to settle the final timestamp {flight.final}"
            key = (self.env.me, self._epoch, flight.number)
            asked = tuple(node for group in missing for node in self._members[group])
            waits.append(Wait(key_name(key), blocker, flight.since, payload, on=asked))
        state: dict[str, str | int] = {
            "role": "client",
            "life": self._epoch,
            "next number": self._number,
            "floor": self._floor,
            "window": f"{self._open} of {self._options.window}",
        }
        return Explanation(state, tuple(waits))

    def _resolve(self, groups: Groups) -> tuple[NodeId, ...]:
        if not groups or list(groups) != sorted(set(groups)):
            raise LocalError(
                f"a message must name at least one group, each once and in ascending order, not {groups}"
            )
        unknown = [group for group in groups if group not in self._members]
        if unknown:
            raise LocalError(f"there is no group {unknown[0]}")
        self._targets[groups] = self._receivers(groups)
        return self._targets[groups]

    def _receivers(self, groups: Groups | list[GroupId]) -> tuple[NodeId, ...]:
        return tuple(node for group in groups for node in self._members[group])

    def _finish(self, flight: Flight) -> None:
        """All timestamps are here: tell all receivers the highest."""
        flight.final = max((clock, group) for group, clock in flight.clocks.items())
        flight.payload = b""
        flight.attempts = 0
        flight.sent = self.env.now
        self._open -= 1
        final = Final(self.env.me, self._epoch, flight.number, *flight.final)
        self.env.multicast(self._targets[flight.groups], final)
        if not flight.unsettled:
            self._forget(flight)

    def _on_settled(self, number: int, group: GroupId) -> None:
        flight = self._flights.get(number)
        if flight is not None and flight.final is not None and group in flight.unsettled:
            flight.unsettled.remove(group)
            if not flight.unsettled:
                self._forget(flight)

    def _forget(self, flight: Flight) -> None:
        del self._flights[flight.number]
        while self._floor < self._number and self._floor not in self._flights:
            self._floor += 1

    def _check(self, flight: Flight) -> None:
        """Repeat if it is time, and look again later."""
        first = self._options.retry_ns if flight.final is None else self._options.confirm_ns
        wait = first << min(flight.attempts, BACKOFF_MAX)
        left = flight.sent + wait - self.env.now
        if left <= 0:
            self._repeat(flight)
            flight.attempts += 1
            flight.sent = self.env.now
            left = first << min(flight.attempts, BACKOFF_MAX)
        self._alarms.add(left, flight.number)

    def _repeat(self, flight: Flight) -> None:
        me, epoch, number = self.env.me, self._epoch, flight.number
        if flight.final is not None:
            final = Final(me, epoch, number, *flight.final, True)
            self.env.multicast(self._receivers(flight.unsettled), final)
            return
        missing = [group for group in flight.groups if group not in flight.clocks]
        request = Request(me, epoch, number, self._floor, flight.groups, flight.payload, True)
        self.env.multicast(self._receivers(missing), request)


def _names(groups: list[GroupId]) -> str:
    return ("group " if len(groups) == 1 else "groups ") + ", ".join(map(str, groups))
