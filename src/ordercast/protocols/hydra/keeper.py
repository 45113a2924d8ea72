"""What a sender keeps of its messages until it need not send them again.

The paper's senders forget a message when it is sent (section 4.1). Here a sender keeps it until a sequencer
has acknowledged it, and `suspect_ns` longer: by then the receivers have the packet, or have asked for it.

A message that is not acknowledged is repeated to the *same* sequencer, which recognises the copy. Another
sequencer may not stamp it: if both did, two receivers could deliver it in two places. Only when the first
sequencer is removed, the receivers know what it had stamped. A receiver that settled all numbers of it and
missed none tells the sender whether the message was among them (`Outcome`). If it was not, and all receivers
had reported for the removal (`Step.complete`), nobody has delivered it nor ever will, and it is sent to
another sequencer as a new request. If this cannot be known, the application is told (`Unconfirmed`).
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import islice

from ordercast.core import Env, GroupId, Groups, Nanos, NodeId, Unconfirmed, Wait
from ordercast.protocols.hydra.messages import Inquiry, Outcome, Request, Stamped, Step, Suspect
from ordercast.protocols.hydra.options import HydraOptions

KEEP = "keep"
"""The timer of the sender to look after what it keeps."""
REPEAT = 4
"""A message is repeated when its acknowledgement is due for this many times `ack_ns`."""
SETTLE = 4
"""For this many times `suspect_ns` receivers are asked what a removed sequencer had stamped."""
WAITS_MAX = 100
"""An explanation names so many kept messages of a sequencer."""
REPEATS_MAX = 64
"""So many requests to a sequencer are repeated at once."""
NUMBERS_MAX = 512
"""A sender asks about so many requests at once."""
HELD_BYTES = 256
"""What a message counts beside its payload, so that there are never very many."""


class Held:
    """A message that is kept."""

    __slots__ = ("doubted_by", "first_at", "groups", "payload", "sent_at", "stamped_at")

    def __init__(self, groups: Groups, payload: bytes, now: Nanos) -> None:
        self.groups = groups
        self.payload = payload
        self.first_at = self.sent_at = self.stamped_at = now
        self.doubted_by: set[NodeId] = set()
        """The receivers that do not know what became of it."""

    @property
    def weight(self) -> int:
        """What it counts."""
        return len(self.payload) + HELD_BYTES


class Ledger:
    """What was sent to one sequencer."""

    __slots__ = ("complete", "next", "oldest", "removed_at", "sent", "stamped")

    def __init__(self, first: int) -> None:
        self.next = self.oldest = first
        """The next number, and the lowest that is not acknowledged."""
        self.sent: dict[int, Held] = {}
        """By number, the oldest first: what is not acknowledged."""
        self.stamped: deque[tuple[int, Held]] = deque()
        """What is acknowledged, the oldest first."""
        self.removed_at: Nanos | None = None
        """Since when the sequencer is known to be removed."""
        self.complete = False
        """Whether all receivers had reported for its removal."""

    def stamp(self, numbers: Iterable[int], now: Nanos) -> None:
        """These are acknowledged."""
        for number in numbers:
            held = self.sent.pop(number, None)
            if held is not None:
                held.stamped_at = now
                self.stamped.append((number, held))
        self.oldest = next(iter(self.sent), self.next)

    def waiting_since(self) -> Nanos | None:
        """Since when the oldest message waits for its acknowledgement."""
        return self.sent[self.oldest].first_at if self.sent else None

    def all(self) -> dict[int, Held]:
        """All that is kept, acknowledged or not."""
        return dict(self.stamped) | self.sent


class Keeper:
    """Keeps, repeats and inquires for one sender."""

    def __init__(
        self,
        env: Env,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        service: tuple[NodeId, ...],
        options: HydraOptions,
    ) -> None:
        self._env = env
        self._members = members
        self._service = service
        self._options = options
        self._ledgers: dict[int, Ledger] = {}
        self._bytes = 0
        self._first = 0
        self._ticking = False
        self.doubtful: frozenset[int] = frozenset()
        """Sequencers that have owed an acknowledgement for too long; others are better."""
        self.again: deque[tuple[Groups, bytes]] = deque()
        """Messages to be sent to another sequencer."""

    @property
    def in_doubt(self) -> int:
        """How many messages are not known to be stamped."""
        return len(self.again) + sum(
            len(ledger.sent if ledger.removed_at is None else ledger.all())
            for ledger in self._ledgers.values()
        )

    def begin(self, first: int) -> None:
        """Number requests from here on: above all that an earlier life can have used."""
        self._first = first

    def take(self, sequencer: int, groups: Groups, payload: bytes) -> int | None:
        """Keep a message for a sequencer; returns the number of its request, or None if there is no room."""
        ledger = self._ledgers.get(sequencer)
        if ledger is None:
            ledger = self._ledgers[sequencer] = Ledger(self._first)
        number = ledger.next
        if number - ledger.oldest >= self._options.window or not self._make_room(ledger):
            return None
        held = Held(groups, payload, self._env.now)
        ledger.next = number + 1
        ledger.sent[number] = held
        self._bytes += held.weight
        if not self._ticking:
            self._tick_later()
        return number

    def on_stamped(self, message: Stamped) -> None:
        """A sequencer has stamped these."""
        ledger = self._ledgers.get(message.sequencer)
        if ledger is not None:
            ledger.stamp(message.numbers, self._env.now)
            if message.sequencer in self.doubtful:
                self._doubt()

    # Removed sequencers

    def orphaned(self, active: Collection[int]) -> list[int]:
        """The sequencers with kept messages that are not active and whose removal is not known."""
        return [
            one for one, ledger in self._ledgers.items() if one not in active and ledger.removed_at is None
        ]

    def on_removed(self, step: Step) -> None:
        """A sequencer was removed: what was sent to it must be settled."""
        self._end(step.sequencer, complete=step.complete)

    def on_forgotten(self, sequencers: Iterable[int]) -> None:
        """The service does not know any more how these were removed."""
        for sequencer in sequencers:
            self._end(sequencer, complete=False)

    def _end(self, sequencer: int, *, complete: bool) -> None:
        ledger = self._ledgers.get(sequencer)
        if ledger is None or ledger.removed_at is not None:
            return
        if ledger.sent or ledger.stamped:
            ledger.removed_at, ledger.complete = self._env.now, complete
            self._inquire(sequencer, ledger)
        else:
            del self._ledgers[sequencer]

    def _inquire(self, sequencer: int, ledger: Ledger) -> None:
        """Ask the receivers of each group about the messages to it."""
        by_group: dict[GroupId, list[int]] = {}
        for number, held in ledger.all().items():
            for group in held.groups:
                by_group.setdefault(group, []).append(number)
        for group, numbers in by_group.items():
            self._env.multicast(self._members[group], Inquiry(sequencer, tuple(numbers[:NUMBERS_MAX])))

    def on_outcome(self, source: NodeId, message: Outcome) -> None:
        """A receiver tells what became of messages."""
        ledger = self._ledgers.get(message.sequencer)
        if ledger is None or ledger.removed_at is None:
            return
        left = ledger.all()
        for number in message.came:
            self._settle(left, number)
        for number in message.absent:
            held = self._settle(left, number)
            if held is not None and ledger.complete:
                self.again.append((held.groups, held.payload))
            elif held is not None:
                self._tell(held)
        for number in message.unknown:
            held = left.get(number)
            if held is not None:
                held.doubted_by.add(source)
                if all(node in held.doubted_by for group in held.groups for node in self._members[group]):
                    self._settle(left, number)
                    self._tell(held)
        self._put_back(message.sequencer, ledger, left)

    def _settle(self, left: dict[int, Held], number: int) -> Held | None:
        held = left.pop(number, None)
        if held is not None:
            self._bytes -= held.weight
        return held

    def _put_back(self, sequencer: int, ledger: Ledger, left: dict[int, Held]) -> None:
        """These are still unsettled; nothing is sent to the sequencer any more."""
        ledger.sent, ledger.stamped = left, deque()
        if not left:
            del self._ledgers[sequencer]

    def _tell(self, held: Held) -> None:
        self._env.deliver(Unconfirmed(held.groups[0], held.groups, held.payload))

    # From time to time

    def tick(self, active: Mapping[int, NodeId]) -> None:
        """Forget, repeat, complain and ask, as it is time."""
        env, options = self._env, self._options
        now = env.now
        deaf = []
        for sequencer, ledger in list(self._ledgers.items()):
            self._forget(ledger, now - options.suspect_ns)
            if ledger.removed_at is not None:
                if now - ledger.removed_at >= SETTLE * options.suspect_ns:
                    self._give_up(sequencer, ledger)
                else:
                    self._inquire(sequencer, ledger)
            elif sequencer in active:
                self._repeat(sequencer, active[sequencer], ledger)
                since = ledger.waiting_since()
                if since is not None and now - since >= options.suspect_ns:
                    deaf.append(sequencer)
        if deaf:
            env.multicast(self._service, Suspect(tuple(deaf)))
        self._doubt()
        self._ticking = False
        if any(ledger.sent or ledger.stamped for ledger in self._ledgers.values()) or self.again:
            self._tick_later()

    def _tick_later(self) -> None:
        self._ticking = True
        self._env.set_timer(KEEP, REPEAT * self._options.ack_ns)

    def _repeat(self, sequencer: int, node: NodeId, ledger: Ledger) -> None:
        now = self._env.now
        before = now - REPEAT * self._options.ack_ns
        overdue = ((number, held) for number, held in ledger.sent.items() if held.sent_at <= before)
        for number, held in islice(overdue, REPEATS_MAX):
            held.sent_at = now
            self._env.send(node, Request(sequencer, number, held.groups, held.payload))

    def _doubt(self) -> None:
        since = self._env.now - self._options.suspect_ns // 2
        self.doubtful = frozenset(
            sequencer
            for sequencer, ledger in self._ledgers.items()
            if ledger.removed_at is None and (first := ledger.waiting_since()) is not None and first <= since
        )

    def _forget(self, ledger: Ledger, before: Nanos) -> None:
        """Forget what was acknowledged long ago; the receivers have it, or ask its sequencer for it."""
        stamped = ledger.stamped
        if ledger.removed_at is None:
            while stamped and stamped[0][1].stamped_at <= before:
                self._bytes -= stamped.popleft()[1].weight

    def _make_room(self, ledger: Ledger) -> bool:
        """Whether there is room for one more; the oldest acknowledged ones make room if they must."""
        while self._bytes >= self._options.keep_bytes:
            rich = [one for one in self._ledgers.values() if one.stamped and one.removed_at is None]
            if not rich:
                return False
            richest = max(rich, key=lambda one: len(one.stamped))
            self._bytes -= richest.stamped.popleft()[1].weight
        # No copy is so old that a sequencer or a receiver could not tell whether it has seen it.
        while ledger.stamped and ledger.next - ledger.stamped[0][0] >= self._options.window:
            self._bytes -= ledger.stamped.popleft()[1].weight
        return True

    def _give_up(self, sequencer: int, ledger: Ledger) -> None:
        left = ledger.all()
        for number in list(left):
            held = self._settle(left, number)
            if held is not None:
                self._tell(held)
        self._put_back(sequencer, ledger, left)

    def waits(self) -> list[Wait]:
        """What is kept, and for what it waits."""
        waits = []
        for sequencer, ledger in self._ledgers.items():
            removed = ledger.removed_at is not None
            blocker = (
                f"a receiver that knows whether sequencer {sequencer} had stamped it before its removal"
                if removed
                else f"an acknowledgement of sequencer {sequencer}"
            )
            left = ledger.all() if removed else ledger.sent
            for number, held in islice(left.items(), WAITS_MAX):
                on = {node for group in held.groups for node in self._members[group]} if removed else ()
                waits.append(
                    Wait(
                        f"request {number}",
                        blocker,
                        held.first_at,
                        payload=held.payload,
                        groups=held.groups,
                        on=tuple(sorted(on)),
                    )
                )
        waits += [
            Wait("a message to be sent again", "a sequencer", self._env.now, payload=payload, groups=groups)
            for groups, payload in islice(self.again, WAITS_MAX)
        ]
        return waits
