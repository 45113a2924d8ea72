"""A replica with a log: runs what the log decides, and says what it delivers, over restarts too.

What an entry of the log is, and who is answered, is the subclass's. A snapshot of the log is that of the
executor: with the client table. A replica that takes over the snapshot of another delivers nothing up to
there, and says so by a checkpoint.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from struct import Struct
from typing import NamedTuple, TypedDict

from ordercast.components.consensus import MESSAGES as CONSENSUS_MESSAGES
from ordercast.components.consensus import Replica
from ordercast.components.execution import Call, Executor
from ordercast.components.logged_service.messages import place_before, place_in, slot_after, unpack_batch
from ordercast.components.logged_service.options import LogOptions
from ordercast.core import (
    Checkpoint,
    Delivered,
    Delivery,
    Env,
    GroupId,
    Groups,
    Message,
    NodeId,
    RemoteError,
    ServiceSpec,
    Stack,
    Stamp,
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


class LoggedReplica(Stack):
    """One replica of one group. A subclass says how entries come into the log, and what they do."""

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
        """Slots and entries of the log that no correct leader proposes; no replica executes them."""
        self.log = self.embed("log", self.make_log, (*CONSENSUS_MESSAGES, *messages))

    # For subclasses

    def make_log(self, env: Env) -> Replica:
        """The replica of the log."""
        return Replica(env, self.members, self._options.consensus, **self.log_arguments())

    def log_arguments(self) -> OwnerArguments:
        """What a replica of the log needs to know of its owner."""
        return {
            "snapshot": self.snapshot,
            "restore": self._restore,
            "transfers": self._serves or not self._options.durable,
            "durable": self._options.durable,
        }

    @abstractmethod
    def run_entry(self, packed: bytes, place: Stamp) -> None:
        """Run an entry of the log; `RemoteError` if it is malformed, which all replicas find alike."""

    def snapshot(self) -> bytes:
        """The state after the last entry."""
        return self.executor.snapshot()

    def restore_state(self, state: bytes) -> None:
        """Take over such a state."""
        self.executor.restore(state)

    def place_reached(self, slot: int) -> Stamp:
        """A place behind all that the entries of the slots below this one have executed, and before all else.
        They have been executed when this is asked."""
        return place_before(slot, self._group)

    # The frame

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin, or go on from what an earlier life saved."""
        if "delivered" in saved:
            self._delivered, self._owes_checkpoint = _PLACE.unpack(saved["delivered"])
        if self._owes_checkpoint:
            self._returned_at = slot_after(self._delivered)
        super().on_start(saved)
        self._started = True

    # What the log decides

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """Run the entries of a slot."""
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
                self.run_entry(packed, place_in(slot, index, self._group))
            except RemoteError:
                self._refused += 1

    def is_certain(self, place: Stamp) -> bool:
        """Whether no earlier life can have delivered what is executed at a place."""
        return not self._owes_checkpoint and place.clock > self._delivered

    def deliver_call(self, call: Call, groups: Groups, place: Stamp) -> None:
        """A call was executed at a place for the first time: deliver it, unless an earlier life has."""
        if not self.is_certain(place):
            return
        self._note_delivered(place.clock)
        self.env.deliver(Delivered(call.bundle, groups, call.client, place))
        every = self._options.checkpoint_every
        if every and self.executor.is_checkpoint(every):
            self.env.deliver(Checkpoint(self._group, place, *self.executor.checkpoint()[1]))

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
        self.restore_state(state)
        place, committed = self.place_reached(self.log.committed), self.log.committed
        beyond = committed > self._returned_at if self._owes_checkpoint else place.clock > self._delivered
        if self._started and beyond:
            self._note_delivered(place.clock)
            self._deliver_checkpoint(place, restored=True)

    def _pay_checkpoint(self) -> None:
        """All that an earlier life may have delivered is executed: from here on this one delivers."""
        if self._owes_checkpoint:
            place = self.place_reached(self._returned_at)
            self._note_delivered(place.clock)
            self._deliver_checkpoint(place, restored=True)

    def _notice_return(self) -> None:
        """The memory was lost: deliver nothing that an earlier life may have delivered."""
        if self.log.returned_at > self._returned_at:
            self._returned_at = self.log.returned_at
            clock = place_before(self._returned_at, self._group).clock
            self._note_delivered(clock, owes_checkpoint=True)
        if self._owes_checkpoint and self.log.committed >= self._returned_at:
            self._pay_checkpoint()

    def conclude(self) -> None:
        """An event is over. Subclasses extend this."""
        self._notice_return()
