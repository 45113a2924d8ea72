"""A replica of a service with a log: executes what the log decides, and answers clients.

How calls come into the log is the protocol's.

- The leader answers a call when it has executed it. A replica that forwarded a call to the leader answers it
  too when it has executed it: any replica may, for what the log has decided is final. All replicas keep the
  results.
- A call may be in the log more than once: its client repeats it, and a new leader does not know what an
  earlier one proposed. It is executed once, at its first place (see `Executor`).
- The leader answers reads from its state, without the log, when a majority has confirmed after the read came
  that it still leads (`Replica.barrier`). A read that is forwarded goes through the log.
"""

from abc import abstractmethod
from collections.abc import Iterable

from ordercast.components.consensus import Barrier
from ordercast.components.execution import Call, unpack_call
from ordercast.components.execution.messages import Answer, CallMessage, place_of_stamp
from ordercast.components.logged_service.logged_replica import LoggedReplica, Place
from ordercast.components.logged_service.messages import Forward, Redirect
from ordercast.components.logged_service.options import LogOptions
from ordercast.core import (
    Env,
    Explanation,
    Message,
    MessageId,
    Nanos,
    NodeId,
    RemoteError,
    Stamp,
    Wait,
    named,
)


class LoggedService(LoggedReplica):
    """One replica of one group's service. A subclass says how calls come into the log."""

    def __init__(
        self,
        env: Env,
        place: Place,
        options: LogOptions,
        messages: Iterable[type[Message]] = (),
    ) -> None:
        """`messages` are those that the log of the protocol adds to those of consensus."""
        super().__init__(env, place, options, messages)
        self._reads: list[tuple[Barrier, Call, Nanos]] = []
        """Reads that wait for their barriers, and when they came."""
        self._waiting: dict[MessageId, None] = {}
        """Calls that were forwarded, and are answered here, in the order in which they came."""

    # For subclasses

    @abstractmethod
    def lead(self, call: Call, packed: bytes) -> None:
        """This replica leads: put an operation into the log, or reads that could not be answered past it."""

    @abstractmethod
    def assist(self, call: Call, packed: bytes) -> None:
        """Another replica leads: an operation came from its client."""

    def on_executed(self, call: Call) -> None:
        """A call has come out of the log."""

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
            raise RemoteError(f"node {source} sent {named(message)} to a replica")

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

    def run_entry(self, packed: bytes, place: Stamp) -> None:
        """Execute a call."""
        call = unpack_call(packed)
        done = self.executor.execute(call, place)
        self.on_executed(call)
        asked = call.first in self._waiting
        if asked:
            del self._waiting[call.first]
        if done is None:
            return
        if done.fresh:
            self.deliver_call(call, (self._group,), place)
        if asked or self.log.is_leader:
            self._answer(call, done.results, self.executor.place if call.read else done.stamp)

    # The end of an event

    def conclude(self) -> None:
        """Answer the reads that may be answered. Subclasses extend this."""
        super().conclude()
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
