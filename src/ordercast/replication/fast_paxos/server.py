"""A replica of Fast Paxos: all replicas vote for the calls that clients send them (Hydra section 7.2).

A call that lost its slot to another one (`displaced`) waits a moment, for the leader may have given it
another slot, and its proposal may be on the way. If it stays without a slot, this replica votes for it in its
next slot, and hands it to the leader, which may not have it.
"""

from collections import deque
from collections.abc import Iterator

from ordercast.components.execution import Call, unpack_call
from ordercast.components.logged_service import LoggedService
from ordercast.components.logged_service.logged_replica import Place
from ordercast.components.logged_service.messages import pack_batch, unpack_batch
from ordercast.core import Env, Explanation, MessageId, RemoteError
from ordercast.replication.fast_paxos.fast_replica import FastReplica
from ordercast.replication.fast_paxos.messages import MESSAGES
from ordercast.replication.fast_paxos.options import FastPaxosOptions

STRAYS = "strays"


class Server(LoggedService):
    """One replica of one group's service."""

    log: FastReplica

    def __init__(self, env: Env, place: Place, options: FastPaxosOptions) -> None:
        super().__init__(env, place, options, MESSAGES)
        self._queue_max = options.queue
        self._patience_ns = options.consensus.retry_ns
        self._ballot = 0
        self._known: dict[MessageId, None] = {}
        """Calls that have a slot in this ballot as far as this replica knows, or that wait for one."""
        self._done: dict[MessageId, None] = {}
        """The calls last executed: copies of them may still come."""
        self._queue: deque[tuple[Call, bytes]] = deque()
        """Calls that wait for a slot at the leader."""
        self._strays: dict[MessageId, bytes] = {}
        """Calls that lost their slots."""

    def make_log(self, env: Env) -> FastReplica:
        """The replica of the log."""
        told = (self._on_accepted, self._on_displaced)
        return FastReplica(env, self.members, self._options.consensus, *told, **self.log_arguments())

    def lead(self, call: Call, packed: bytes) -> None:
        """Give a call a slot, unless it has one."""
        self._begin_ballot()
        if call.first in self._known or call.first in self._done:
            return
        if len(self._queue) < self._queue_max:
            self._keep(self._known, call.first)
            self._queue.append((call, packed))

    def assist(self, call: Call, packed: bytes) -> None:
        """Vote for a call. If it comes again, its client may not reach the leader."""
        self._begin_ballot()
        if call.first in self._done:
            return
        if call.first not in self._known and self.log.vote(pack_batch([packed])):
            self._keep(self._known, call.first)
        else:
            self.forward(call, packed)

    def on_executed(self, call: Call) -> None:
        """Nothing more is to be done for a call."""
        self._known.pop(call.first, None)
        self._strays.pop(call.first, None)
        self._keep(self._done, call.first)

    def conclude(self) -> None:
        """Give slots to the calls that wait."""
        self._begin_ballot()
        while self._queue and self._give_slot(*self._queue[0]):
            self._queue.popleft()
        super().conclude()

    def _give_slot(self, call: Call, packed: bytes) -> bool:
        # Others have no vote for reads: they come here alone.
        value = pack_batch([packed])
        return self.log.propose(value) if call.read else self.log.place(value)

    def _keep(self, calls: dict[MessageId, None], first: MessageId) -> None:
        calls[first] = None
        if len(calls) > self._queue_max:
            del calls[next(iter(calls))]

    def _begin_ballot(self) -> None:
        """What was voted for in earlier ballots may be lost: it may be voted for again."""
        if self.log.ballot != self._ballot:
            self._ballot = self.log.ballot
            self._known.clear()
            self._queue.clear()

    def _on_accepted(self, value: bytes) -> None:
        """The leader has given calls a slot: there is no need to vote for them when they come."""
        self._begin_ballot()
        for call, _ in _calls_in(value):
            self._strays.pop(call.first, None)
            if call.first not in self._done:
                self._keep(self._known, call.first)

    def _on_displaced(self, value: bytes) -> None:
        for call, packed in _calls_in(value):
            if call.first not in self._done and not self.log.is_voted_for(value):
                if not self._strays:
                    self.env.set_timer(STRAYS, self._patience_ns)
                if len(self._strays) < self._queue_max:
                    self._strays[call.first] = packed

    def on_own_timer(self, name: str) -> None:
        """Vote again for the calls that are still without a slot."""
        strays, self._strays = self._strays, {}
        if not self.log.is_leader:
            for packed in strays.values():
                self.log.vote(pack_batch([packed]))
                self.forward(unpack_call(packed), packed)

    def explain_own(self) -> Explanation:
        """What waits here."""
        told = super().explain_own()
        state = {**told.state, "calls queued": len(self._queue), "calls without a slot": len(self._strays)}
        return Explanation(state, told.waits, told.behind)


def _calls_in(value: bytes) -> Iterator[tuple[Call, bytes]]:
    """The calls in the value of a slot; none if it is malformed, or nothing."""
    try:
        for packed in unpack_batch(value) if value else ():
            yield unpack_call(packed), packed
    except RemoteError:
        return
