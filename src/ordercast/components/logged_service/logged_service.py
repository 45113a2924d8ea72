"""A replica of a service with a log: executes what the log decides, and answers clients.

How calls come into the log is the protocol's.

- The leader answers a call when it has executed it. A replica that forwarded a call to the leader answers it
  too when it has executed it: any replica may, for what the log has decided is final. All replicas keep the
  results.
- A call may be in the log more than once: its client repeats it, and a new leader does not know what an
  earlier one proposed. It is executed once, at its first place (see `Executor`).
- The leader answers reads from its state, without the log, when a majority has confirmed after the read came
  that it still leads (`Replica.barrier`). A read that is forwarded goes through the log.
- A snapshot of the log is that of the executor: with the client table. A replica that takes over the snapshot
  of another delivers nothing up to there, and says so by a checkpoint.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import NamedTuple, TypedDict

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.consensus import Barrier, Replica
from ordercast.components.execution import Call, Executor, unpack_call
from ordercast.components.execution.messages import Answer, CallMessage, place_of_stamp
from ordercast.components.logged_service.messages import (
    Forward,
    Redirect,
    place_before,
    place_in,
    slot_after,
    unpack_batch,
)
from ordercast.components.logged_service.options import LogOptions
from ordercast.core import (
    Checkpoint,
    Delivered,
    Delivery,
    Env,
    Explanation,
    GroupId,
    Message,
    MessageId,
    Nanos,
    NodeId,
    RemoteError,
    ServiceSpec,
    Stack,
    Stamp,
    Wait,
)

_PLACE = Struct("<q?")


class OwnerArguments(TypedDict):
    """The arguments of `Owner`."""

    snapshot: Callable[[], bytes]
    restore: Callable[[bytes], None]
    transfers: bool
    durable: bool


class Place(NamedTuple):
    """Where a replica belongs: its group, the replicas of the group, and their service."""

    group: GroupId
    members: tuple[NodeId, ...]
    service: ServiceSpec | None


class LoggedService(Stack):
    """One replica of one group's service. A subclass says how calls come into the log."""

    def __init__(
        self,
        env: Env,
        place: Place,
        options: LogOptions,
        messages: Iterable[type[Message]] = (),
    ) -> None:
        """`messages` are those that the log of the protocol adds to those of consensus."""
        super().__init__(env)
        self._group = place.group
        self.members = place.members
        self._options = options
        self._serves = place.service is not None
        self.executor = Executor(env, place.service)
        self._delivered = -1
        """Calls up to this clock are delivered, or are not to be."""
        self._owes_checkpoint = False
        """This replica has come back without its memory, and has not said yet from where on it delivers."""
        self._returned_at = 0
        """Slots below may have been delivered by a life whose memory is lost."""
        self._started = False
        self._refused = 0
        """Slots and calls in the log that no correct leader proposes; no replica executes them."""
        self.log = self.embed("log", self.make_log, (*CONSENSUS_MESSAGES, *messages))
        self._reads: list[tuple[Barrier, Call, Nanos]] = []
        """Reads that wait for their barriers, and when they came."""
        self._waiting: dict[MessageId, None] = {}
        """Calls that were forwarded, and are answered here, in the order in which they came."""

    # For subclasses

    def make_log(self, env: Env) -> Replica:
        """The replica of the log."""
        return Replica(env, self.members, self._options.consensus, **self.log_arguments())

    def log_arguments(self) -> OwnerArguments:
        """What a replica of the log needs to know of its owner."""
        return {
            "snapshot": self.executor.snapshot,
            "restore": self._restore,
            "transfers": self._serves or not self._options.durable,
            "durable": self._options.durable,
        }

    @abstractmethod
    def lead(self, call: Call, packed: bytes) -> None:
        """This replica leads: put an operation into the log, or reads that could not be answered past it."""

    @abstractmethod
    def assist(self, call: Call, packed: bytes) -> None:
        """Another replica leads: an operation came from its client."""

    def on_executed(self, call: Call) -> None:
        """A call has come out of the log."""

    # The frame

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin, or go on from what an earlier life saved."""
        if "delivered" in saved:
            self._delivered, self._owes_checkpoint = _PLACE.unpack(saved["delivered"])
        if self._owes_checkpoint:
            self._returned_at = slot_after(self._delivered)
        super().on_start(saved)
        self._started = True

    # Calls of clients

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """A call of a client, directly or forwarded."""
        if isinstance(message, CallMessage):
            self._on_call(unpack_call(message.call, source), message.call)
        elif isinstance(message, Forward) and source in self.members:
            call = unpack_call(message.call)
            if self.log.is_leader and self.executor.find(call.first, call.client) is None:
                self.lead(call, message.call)
        else:
            raise RemoteError(f"node {source} sent a {type(message).__name__} to a replica")

    def _on_call(self, call: Call, packed: bytes) -> None:
        known = None if call.read else self.executor.find(call.first, call.client)
        if known is not None:
            self._answer(call, known.results, known.stamp)
        elif call.read:
            self._on_read(call, packed)
        elif self.log.is_leader:
            self.lead(call, packed)
        else:
            self.assist(call, packed)

    def _on_read(self, call: Call, packed: bytes) -> None:
        barrier = self.log.barrier()
        if barrier is None:
            self.forward(call, packed)
        elif len(self._reads) < self._options.queue:
            self._reads.append((barrier, call, self.env.now))

    def forward(self, call: Call, packed: bytes) -> None:
        """Hand a call to the leader, and answer it when it is executed."""
        leader = self.log.leader
        if leader is None or leader == self.env.me:
            return
        self.env.send(leader, Forward(packed))
        self.env.send(call.client, Redirect(leader))
        self._waiting[call.first] = None
        if len(self._waiting) > self._options.queue:
            del self._waiting[next(iter(self._waiting))]

    def _answer(self, call: Call, results: bytes, stamp: Stamp | None) -> None:
        self.env.send(call.client, Answer(call.first, results, place_of_stamp(stamp)))

    # What the log decides

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """Execute the calls of a slot."""
        assert isinstance(delivery, Delivered) and delivery.stamp is not None
        slot = delivery.stamp.clock
        if slot >= self._returned_at:
            self._pay_checkpoint()
        try:
            batch = unpack_batch(delivery.payload)
        except RemoteError:  # the same at all replicas of the group
            self._refused += 1
            return
        for index, packed in enumerate(batch):
            try:
                call = unpack_call(packed)
            except RemoteError:
                self._refused += 1
                continue
            self._execute(call, place_in(slot, index, self._group))

    def _execute(self, call: Call, place: Stamp) -> None:
        done = self.executor.execute(call, place)
        self.on_executed(call)
        asked = call.first in self._waiting
        if asked:
            del self._waiting[call.first]
        if done is None:
            return
        if done.fresh and place.clock > self._delivered:
            self._note_delivered(place.clock)
            self.env.deliver(Delivered(call.bundle, (self._group,), call.client, place))
            every = self._options.checkpoint_every
            if every and self.executor.is_checkpoint(every):
                self.env.deliver(Checkpoint(self._group, place, *self.executor.checkpoint()[1]))
        if asked or self.log.is_leader:
            self._answer(call, done.results, self.executor.place if call.read else done.stamp)

    def _note_delivered(self, clock: int, *, owes_checkpoint: bool = False) -> None:
        """What is delivered once is not delivered again, over restarts too: the place is saved first."""
        self._delivered, self._owes_checkpoint = clock, owes_checkpoint
        if self._options.durable:
            self.env.save("delivered", _PLACE.pack(clock, owes_checkpoint))

    def _deliver_checkpoint(self, place: Stamp, *, restored: bool = False) -> None:
        self.env.deliver(Checkpoint(self._group, place, *self.executor.digest(), restored))

    # States of other replicas

    def _restore(self, state: bytes) -> None:
        """Take over a state: the own one at the start, or that of another replica."""
        self.executor.restore(state)
        place = place_before(self.log.committed, self._group)
        if self._started and place.clock > self._delivered:
            self._note_delivered(place.clock)
            self._deliver_checkpoint(place, restored=True)

    def _pay_checkpoint(self) -> None:
        """All that an earlier life may have delivered is executed: from here on this one delivers."""
        if self._owes_checkpoint:
            self._note_delivered(self._delivered)
            self._deliver_checkpoint(Stamp(self._delivered, self._group), restored=True)

    def _notice_return(self) -> None:
        """The memory was lost: deliver nothing that an earlier life may have delivered."""
        if self.log.returned_at > self._returned_at:
            self._returned_at = self.log.returned_at
            clock = place_before(self._returned_at, self._group).clock
            self._note_delivered(clock, owes_checkpoint=True)
        if self._owes_checkpoint and self.log.committed >= self._returned_at:
            self._pay_checkpoint()

    # The end of an event

    def conclude(self) -> None:
        """Answer the reads that may be answered. Subclasses extend this."""
        self._notice_return()
        if self._reads:
            self._answer_reads()

    def _answer_reads(self) -> None:
        reads, self._reads = self._reads, []
        for barrier, call, since in reads:
            passes = self.log.passes(barrier)
            if passes is False:
                self._reads.append((barrier, call, since))
            elif passes:
                try:
                    results = self.executor.read(call.bundle)
                except RemoteError:
                    self._refused += 1
                    continue
                self._answer(call, results, self.executor.place)

    def explain_own(self) -> Explanation:
        """How far this replica is, and what waits here."""
        state: dict[str, str | int] = {
            "role": "replica",
            "group": self._group,
            "calls executed": self.executor.executed,
            "reads waiting": len(self._reads),
        }
        if self._refused:
            state["calls refused"] = self._refused
        waits = [
            Wait(f"read of node {call.client}", "a majority to confirm that this replica leads", since)
            for _, call, since in self._reads
        ]
        return Explanation(state, tuple(waits))
