"""The receiver's part of atomic multicast (Hydra section 7.1), made fault tolerant.

Without failures: the leader of a group puts each Request into the group's log; where the log gives
it its timestamp, the leader sends that to the client; the client's Final names the highest
timestamp of all groups, and receivers deliver in the order of final numbers (see `queue`).

The log carries more than messages. Where another group's timestamp was higher, the group's clock
must pass the final number before anything is delivered there: commands carry the highest final
clock as a hint, and when nothing is in flight that could carry it, the leader puts a command of its
own into the log. And the final numbers of messages to several groups are recorded (settled) in the
log, riding on the commands of later messages, so that each receiver finds them there if the Final
was lost, and so that the timestamps may be forgotten (see `ledger`).

What is lost or left undone is found by one timer:

- no Final for a message to the own group alone: its timestamp is its final number; go on with it.
- no Final for a message to several groups: find it out in the client's place (see `recovery`).
- a Final but no record of it: the leader puts it into the log.

Restart. The log and its snapshots rebuild everything but the place of the last delivery, which is
saved before each delivery. Amnesia is not tolerated.

Limits: a leader holds `queue` Requests beyond what the log takes and drops others, as clients
repeat them; `early` Finals are kept for messages that the log has not brought yet, and recovery
finds out what was dropped. Messages that wait are bounded by the windows of the clients.
"""

from collections.abc import Mapping
from struct import Struct

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.consensus import Replica
from ordercast.core import (
    Delivered,
    Delivery,
    Env,
    Explanation,
    GroupId,
    Message,
    NodeId,
    RemoteError,
    Stack,
    Stamp,
)
from ordercast.protocols.atomic_multicast.alarms import Alarms
from ordercast.protocols.atomic_multicast.explain import explain_waits
from ordercast.protocols.atomic_multicast.ledger import Ledger
from ordercast.protocols.atomic_multicast.limits import Limits
from ordercast.protocols.atomic_multicast.messages import (
    Final,
    Key,
    Mark,
    Request,
    Settled,
    Timestamp,
    decode_command,
    key_of,
)
from ordercast.protocols.atomic_multicast.options import AtomicMulticastOptions
from ordercast.protocols.atomic_multicast.proposer import Proposer
from ordercast.protocols.atomic_multicast.queue import Entry, Queue
from ordercast.protocols.atomic_multicast.recovery import Recovery
from ordercast.protocols.atomic_multicast.snapshot import Snapshot, decode_snapshot, encode_snapshot

BURST = 64
"""Overdue messages looked at when the timer goes off."""
BACKOFF_MAX = 2
"""A message that stays overdue is looked at again after at most 2 to this power times as long."""

_PLACE = Struct("<QQ")


class Receiver(Stack):
    """One receiver of one group."""

    def __init__(
        self,
        env: Env,
        group: GroupId,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        clients: tuple[NodeId, ...],
        options: AtomicMulticastOptions,
    ) -> None:
        super().__init__(env)
        self._group = group
        self._members = members
        self._limits = Limits(members, clients, options.backlog)
        self._refused = 0
        """Commands in the log that no correct leader proposes; no replica of the group obeys them."""
        self._options = options
        self._ledger = Ledger()
        self._queue = Queue()
        self._early: dict[Key, Mark] = {}
        """Finals of messages that the log has not brought yet."""
        self._recovery = Recovery(env, group, members)
        self._alarms: Alarms[Key] = Alarms(env, "overdue", options.patience_ns // 4)
        self._replica = self.embed("consensus", self._make_replica, CONSENSUS_MESSAGES)
        self._proposer = Proposer(self._replica, options.queue)

    def _make_replica(self, env: Env) -> Replica:
        members, options = self._members[self._group], self._options.consensus
        return Replica(env, members, options, snapshot=self._snapshot, restore=self._restore)

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin, or go on from what an earlier life saved."""
        if "delivered" in saved:
            self._queue.delivered = _PLACE.unpack(saved["delivered"])
        super().on_start(saved)

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """A message of a client, or of somebody in its place."""
        match message:
            case Request():
                self._on_request(source, message)
            case Final():
                self._on_final(source, message)
            case Timestamp():
                self._on_timestamp(source, message)

    def on_own_timer(self, name: str) -> None:
        """Something is overdue."""
        for key in self._alarms.due(BURST):
            entry = self._queue.entries.get(key)
            if entry is not None:
                self._on_overdue(entry)

    def explain_own(self) -> Explanation:
        """What each message waits for."""
        state: dict[str, str | int] = {
            "role": "receiver",
            "group": self._group,
            "clock": self._ledger.clock,
            "last delivered": "{}.{}".format(*self._queue.delivered),
            "waiting": self._queue.waiting(),
        }
        if self._refused:
            state["commands refused"] = self._refused
        return Explanation(state, tuple(explain_waits(self._queue, self._ledger.clock, self._recovery)))

    # What comes from clients.

    def _on_request(self, source: NodeId, request: Request) -> None:
        self._limits.check_request(request, self._group, self.env.now)
        key = key_of(request)
        clock = self._ledger.find(key)
        if clock is not None:
            if request.again or self._replica.is_leader:
                self.env.send(source, Timestamp(*key, self._group, clock))
        elif self._ledger.knows(key):
            return
        elif self._proposer.leads():
            self._proposer.enqueue(key, request, None if source == request.origin else source)
        elif request.again and source not in self._members[self._group]:
            # Whoever asks again may not reach the leader; a forwarded request is not forwarded on.
            leader = self._replica.leader
            if leader is not None and leader != self.env.me:
                self.env.send(leader, request)

    def _on_final(self, source: NodeId, message: Final) -> None:
        self._limits.check_final(message, self._ledger.clock, self.env.now)
        key, final = key_of(message), (message.clock, message.group)
        entry = self._queue.entries.get(key)
        if entry is None:
            if self._ledger.knows(key):
                self._confirm(source, message)
            else:
                self._keep_early(key, final)
            return
        if not entry.allows(final):
            raise RemoteError(
                f"final timestamp {final} is impossible for groups {entry.groups}, proposal {entry.proposal}"
            )
        self._finalise(entry, final)
        if entry.settled:
            self._confirm(source, message)
        elif message.again:
            entry.asked = True
            self._proposer.settle_now(key)

    def _confirm(self, source: NodeId, message: Final) -> None:
        if message.again:
            self.env.send(source, Settled(*key_of(message), self._group))

    def _keep_early(self, key: Key, final: Mark) -> None:
        self._early[key] = final
        if len(self._early) > self._options.early:
            del self._early[next(iter(self._early))]

    def _finalise(self, entry: Entry, final: Mark) -> None:
        """The final number of a message is known."""
        if entry.final is None:
            entry.final = final
            self._recovery.stop(entry.key)
            if not entry.settled:
                self._proposer.note_final(entry.key, final)

    # What the log says.

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """The log has decided on a command."""
        assert isinstance(delivery, Delivered)
        try:
            command = decode_command(delivery.payload)
            self._limits.check_command(command, self._group, self._ledger.clock)
        except RemoteError:  # the same at all replicas of the group
            self._refused += 1
            return
        self._ledger.pass_clock(command.hint)
        for key, final in command.settles:
            self._settle(key, final)
        if command.request is not None:
            self._order(command.request)

    def _settle(self, key: Key, final: Mark) -> None:
        entry = self._queue.entries.get(key)
        if entry is None or entry.settled or not entry.allows(final):
            return
        entry.settled = True
        self._finalise(entry, final)
        self._queue.discard(entry)
        if self._proposer.settled(key) and entry.asked:
            self.env.send(key[0], Settled(*key, self._group))

    def _order(self, request: Request) -> None:
        key = key_of(request)
        if self._ledger.knows(key):
            clock = self._ledger.find(key)
            if clock is not None:
                self._answer(key, clock)
            return
        clock = self._ledger.order(request)
        self._answer(key, clock)
        place = (clock, self._group)
        single = len(request.groups) == 1
        entry = Entry(key, request.groups, request.payload, place, single, since=self.env.now)
        self._queue.add(entry)
        self._watch(entry)
        final = self._early.pop(key, None)
        if single and place <= self._queue.delivered:
            final = place  # delivered in an earlier life, and the log comes again
        if final is not None and entry.allows(final):
            self._finalise(entry, final)

    def _answer(self, key: Key, clock: int) -> None:
        """A leader tells the client, and who else asked."""
        if self._proposer.leads():
            reports = self._proposer.reports(key)
            self.env.send(key[0], Timestamp(*key, self._group, clock, reports))
            for node in self._proposer.done(key):
                self.env.send(node, Timestamp(*key, self._group, clock))

    def _snapshot(self) -> bytes:
        return encode_snapshot(Snapshot(self._ledger, list(self._queue.entries.values())))

    def _restore(self, state: bytes) -> None:
        snapshot = decode_snapshot(state)
        self._ledger = snapshot.ledger
        for entry in snapshot.entries:
            entry.since = self.env.now
            entry.attempts = 0
            self._queue.add(entry)
            self._watch(entry)
            if entry.final is not None and not entry.settled:
                self._proposer.note_final(entry.key, entry.final)

    # What happens at the end of each event, and when something is overdue.

    def conclude(self) -> None:
        """Put what waits into the log, and deliver what is ready."""
        self._proposer.push(self._ledger.clock)
        ready = self._queue.take(self._ledger.clock)
        if not ready:
            return
        self.env.save("delivered", _PLACE.pack(*self._queue.delivered))
        for entry in ready:
            if entry.final is not None:
                stamp = Stamp(*entry.final)
                self.env.deliver(Delivered(entry.payload, entry.groups, entry.key[0], stamp))
            entry.payload = b""

    def _watch(self, entry: Entry) -> None:
        options = self._options
        first = options.patience_ns if len(entry.groups) == 1 else options.recovery_ns
        wait = first << min(entry.attempts, BACKOFF_MAX)
        if entry.attempts:
            wait += self.env.rng.randrange(1 + first // 2)
        self._alarms.add(wait, entry.key)

    def _on_overdue(self, entry: Entry) -> None:
        if len(entry.groups) == 1:
            self._finalise(entry, entry.proposal)
            return
        leads = self._proposer.leads()
        if entry.final is None:
            # A follower leaves the first attempt to the leader.
            if leads or entry.attempts:
                self._recovery.ask(entry, self._ledger.floor(entry.key))
        elif entry.settled:
            return
        elif leads:
            self._proposer.settle_now(entry.key)
        entry.attempts += 1
        self._watch(entry)

    def _on_timestamp(self, source: NodeId, message: Timestamp) -> None:
        self._limits.check_timestamp(source, message, self._ledger.clock)
        entry = self._queue.entries.get(key_of(message))
        if entry is not None:
            final = self._recovery.answer(entry, message)
            if final is not None:
                self._finalise(entry, final)
