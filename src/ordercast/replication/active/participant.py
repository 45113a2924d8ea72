"""A node of active replication: a replica of a service, a client, or both."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ordercast.components.execution import Call, Calls, Pending, unpack_call
from ordercast.components.execution.messages import Answer, CallMessage, place_of_stamp
from ordercast.core import (
    Caller,
    Carrier,
    Delivery,
    Env,
    Explanation,
    GroupId,
    Groups,
    Message,
    MessageId,
    NodeId,
    Process,
    RemoteError,
    ServiceSpec,
    Stamp,
    Unconfirmed,
    named,
)
from ordercast.protocols.layer import Layer
from ordercast.replication.active.options import ActiveOptions
from ordercast.replication.active.replica import Replica


@dataclass(frozen=True, slots=True)
class Setting:
    """What all nodes know."""

    service: ServiceSpec | None
    replicas: Mapping[GroupId, tuple[NodeId, ...]]
    options: ActiveOptions


class Participant(Layer, Caller):
    """Submits calls to the protocol below, executes what it delivers, and answers.

    The protocol below has total order and uniform agreement, so the answer of any replica is final. A client
    that has no answer asks the replicas again; they know what they have executed.
    """

    def __init__(
        self,
        env: Env,
        make: Callable[[Env], Process],
        messages: Iterable[type[Message]],
        setting: Setting,
    ) -> None:
        super().__init__(env, make, messages)
        self._setting = setting
        self._replicas: dict[GroupId, Replica] = {}
        self._refused: dict[MessageId, Pending] = {}
        """Calls that the protocol below has not taken yet."""
        self._calls = Calls(
            env, setting.replicas, setting.options.calls, self._send, answers=setting.service is not None
        )

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Bring the service to where it was, then start the protocol below."""
        for group in self._setting.replicas:
            if any(name.startswith(f"{group}.") for name in saved):
                self._replica(group).load(saved)
        super().on_start(saved)

    # Client

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Call with operations."""
        return not self._refused and self._calls.take(groups, payload)

    def read(self, groups: Groups, payload: bytes) -> bool:
        """Call with reads; they are ordered like operations."""
        return not self._refused and self._calls.take(groups, payload, read=True)

    @property
    def in_doubt(self) -> int:
        """The operations without an answer."""
        return self._calls.in_doubt

    def _send(self, call: Pending) -> None:
        """Submit a call, or ask for its answer. Results of reads are not kept, so reads are submitted
        again."""
        if call.attempts == 1 or call.read or call.first in self._refused:
            self._hand_down(call)
        else:
            asked = CallMessage(call.packed(self._calls.floor))
            self.env.multicast(self._setting.replicas[call.group], asked)

    def _hand_down(self, call: Pending) -> bool:
        """Submit a call to the protocol below, or keep it in mind if that takes no more now."""
        if super().submit(call.groups, call.packed(self._calls.floor)):
            self._refused.pop(call.first, None)
            return True
        self._refused[call.first] = call
        return False

    # Replica

    def on_deliver(self, inner: str, delivery: Delivery) -> None:
        """Execute calls. Configurations concern the protocol below alone."""
        if isinstance(delivery, Carrier):
            self._on_call(delivery)
        elif isinstance(delivery, Unconfirmed):
            self._on_unconfirmed(delivery)

    def _on_call(self, delivered: Carrier) -> None:
        try:
            call = unpack_call(delivered.payload, delivered.sender)
        except RemoteError:  # all replicas find it alike; no correct client waits for an answer
            return
        replica = self._replica(delivered.groups[0])
        done = replica.execute(delivered.payload, call, delivered.stamp)
        if done is not None:
            self._answer(call, done.results, replica.executor.place if call.read else done.stamp)
            replica.prune()

    def _replica(self, group: GroupId) -> Replica:
        if group not in self._replicas:
            self._replicas[group] = Replica(self.env, group, self._setting.service, self._setting.options)
        return self._replicas[group]

    def _answer(self, call: Call, results: bytes, stamp: Stamp | None) -> None:
        self.env.send(call.client, Answer(call.first, results, place_of_stamp(stamp)))

    def _on_unconfirmed(self, given_back: Unconfirmed) -> None:
        """The protocol below may have lost a call: call again. Replicas execute it once."""
        try:
            first = unpack_call(given_back.payload).first
        except RemoteError:
            return
        call = self._calls.pending.get(first)
        if call is not None:
            self._refused[first] = call

    def conclude(self) -> None:
        """Submit what the protocol below had refused."""
        for call in list(self._refused.values()):
            if call.first not in self._calls.pending:
                del self._refused[call.first]
            elif not self._hand_down(call):
                break

    # Between clients and replicas

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """A client asks again, or a replica answers."""
        match message:
            case CallMessage():
                call = unpack_call(message.call, source)
                for replica in self._replicas.values():
                    done = replica.executor.find(call.first, call.client)
                    if done is not None:
                        self._answer(call, done.results, done.stamp)
            case Answer():
                self._calls.settle(message.first, message.results, message.stamp, source)
            case _:
                raise RemoteError(f"node {source} sent {named(message)} to a replica or a client")

    def on_own_timer(self, name: str) -> None:
        """Ask again."""
        self._calls.on_timer()

    def explain(self) -> Explanation:
        """What waits below, and which calls have no answer."""
        told = super().explain()
        waits = self._calls.waits("the answer of a replica")
        executed = sum(replica.executor.executed for replica in self._replicas.values())
        state = {**told.state, "calls executed": executed, "calls under way": len(waits)}
        return Explanation(state, (*told.waits, *waits), told.behind)

    def unwrap(self, payload: bytes) -> bytes:
        """The bundle inside a call."""
        return unpack_call(payload).bundle
