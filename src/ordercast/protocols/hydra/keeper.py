"""What a sender keeps of its messages until it need not send them again.

The paper's senders forget a message when it is sent (section 4.1). Here a sender keeps it until its sequencer
says that it is safe (`Acks`).

A message that is not known to be stamped is repeated to the *same* sequencer, which recognises the copy.
Another sequencer may not stamp it: if both did, two receivers could deliver it in two places. Only when the
first sequencer is removed, the receivers know what it had stamped. A receiver that settled all numbers of it
and missed none tells the sender whether the message was among them (`Outcome`). If it was not, and all
receivers had reported for the removal (`Step.complete`), nobody has delivered it nor ever will, and it is
sent to another sequencer as a new request. If this cannot be known, the application is told (`Unconfirmed`).
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

    __slots__ = ("doubted_by", "first_at", "groups", "payload", "sent_at")

    def __init__(self, groups: Groups, payload: bytes, now: Nanos) -> None:
        self.groups = groups
        self.payload = payload
        self.first_at = self.sent_at = now
        self.doubted_by: set[NodeId] = set()
        """The receivers that do not know what became of it."""

    @property
    def weight(self) -> int:
        """What it counts."""
        return len(self.payload) + HELD_BYTES


class Ledger:
    """What was sent to one sequencer."""

    __slots__ = ("complete", "kept", "next", "oldest", "removed_at", "sent")

    def __init__(self, first: int) -> None:
        self.next = self.oldest = first
        """The next number, and the lowest that is kept."""
        self.kept: dict[int, Held] = {}
        """All that is not safe, by number, the oldest first."""
        self.sent: dict[int, Held] = {}
        """Those of them that are not known to be stamped."""
        self.removed_at: Nanos | None = None
        """Since when the sequencer is known to be removed."""
        self.complete = False
        """Whether all receivers had reported for its removal."""

    def note(self, stamped: Iterable[int], safe: Iterable[int]) -> int:
        """These are acknowledged; returns what is kept no more."""
        freed = 0
        for number in stamped:
            self.sent.pop(number, None)
        for number in safe:
            self.sent.pop(number, None)
            held = self.kept.pop(number, None)
            freed += 0 if held is None else held.weight
        self.oldest = next(iter(self.kept), self.next)
        return freed

    def waiting_since(self) -> Nanos | None:
        """Since when the oldest message waits for its stamp."""
        return next((held.first_at for held in self.sent.values()), None)


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
        """How many messages are not known to be safe."""
        return len(self.again) + sum(len(ledger.kept) for ledger in self._ledgers.values())

    def begin(self, first: int) -> None:
        """Number requests from here on: above all that an earlier life can have used."""
        self._first = first

    def take(self, sequencer: int, groups: Groups, payload: bytes) -> int | None:
        """Keep a message for a sequencer; returns the number of its request, or None if there is no room."""
        ledger = self._ledgers.get(sequencer)
        if ledger is None:
            ledger = self._ledgers[sequencer] = Ledger(self._first)
        number = ledger.next
        if number - ledger.oldest >= self._options.window or self._bytes >= self._options.keep_bytes:
            return None
        held = Held(groups, payload, self._env.now)
        ledger.next = number + 1
        ledger.kept[number] = ledger.sent[number] = held
        self._bytes += held.weight
        if not self._ticking:
            self._tick_later()
        return number

    def on_stamped(self, message: Stamped) -> None:
        """A sequencer has stamped these, and some are safe."""
        ledger = self._ledgers.get(message.sequencer)
        if ledger is not None:
            self._bytes -= ledger.note(message.numbers, message.safe)
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
        if ledger.kept:
            ledger.removed_at, ledger.complete = self._env.now, complete
            self._inquire(sequencer, ledger)
        else:
            del self._ledgers[sequencer]

    def _inquire(self, sequencer: int, ledger: Ledger) -> None:
        """Ask the receivers of each group about the messages to it."""
        by_group: dict[GroupId, list[int]] = {}
        for number, held in ledger.kept.items():
            for group in held.groups:
                by_group.setdefault(group, []).append(number)
        for group, numbers in by_group.items():
            self._env.multicast(self._members[group], Inquiry(sequencer, tuple(numbers[:NUMBERS_MAX])))

    def on_outcome(self, source: NodeId, message: Outcome) -> None:
        """A receiver tells what became of messages."""
        ledger = self._ledgers.get(message.sequencer)
        if ledger is None or ledger.removed_at is None:
            return
        left = ledger.kept
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
        if not left:
            del self._ledgers[message.sequencer]

    def _settle(self, left: dict[int, Held], number: int) -> Held | None:
        held = left.pop(number, None)
        if held is not None:
            self._bytes -= held.weight
        return held

    def _tell(self, held: Held) -> None:
        self._env.deliver(Unconfirmed(held.groups[0], held.groups, held.payload))

    # From time to time

    def tick(self, active: Mapping[int, NodeId]) -> None:
        """Repeat, complain, ask and give up, as it is time."""
        env, options = self._env, self._options
        now = env.now
        deaf = []
        for sequencer, ledger in list(self._ledgers.items()):
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
        if self.in_doubt:
            self._tick_later()

    def _tick_later(self) -> None:
        self._ticking = True
        self._env.set_timer(KEEP, REPEAT * self._options.ack_ns)

    def _repeat(self, sequencer: int, node: NodeId, ledger: Ledger) -> None:
        now = self._env.now
        soon, late = now - REPEAT * self._options.ack_ns, now - self._options.suspect_ns
        # One that was stamped is repeated too, if rarely: that it is safe may have been told and lost.
        overdue = (
            (number, held)
            for number, held in ledger.kept.items()
            if held.sent_at <= (soon if number in ledger.sent else late)
        )
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

    def _give_up(self, sequencer: int, ledger: Ledger) -> None:
        for held in ledger.kept.values():
            self._bytes -= held.weight
            self._tell(held)
        del self._ledgers[sequencer]

    def waits(self) -> list[Wait]:
        """What is kept, and for what it waits."""
        waits = []
        for sequencer, ledger in self._ledgers.items():
            removed = ledger.removed_at is not None
            blocker = (
                f"a receiver that knows whether sequencer {sequencer} had stamped it before its removal"
                if removed
                else f"an acknowledgement of sequencer {sequencer} that a majority of the receivers has it"
            )
            for number, held in islice(ledger.kept.items(), WAITS_MAX):
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
