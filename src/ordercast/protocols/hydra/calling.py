"""A client of replicas behind sequencers: it sends each call to one sequencer, and takes the replies of all
replicas.

A call without an answer is sent again as a new message, through another sequencer if there is one. The
sequencer would take a copy of the old message for a copy, and the old message may have been given up.
"""

from collections.abc import Mapping

from ordercast.components.execution import CallOptions, Calls, Pending
from ordercast.components.network_ordered import Replies
from ordercast.components.network_ordered.messages import ReadReply, ReadRequest, Reply
from ordercast.core import (
    Caller,
    Env,
    Explanation,
    GroupId,
    Groups,
    Message,
    MessageId,
    NodeId,
    RemoteError,
    Stack,
    Stamp,
    Wait,
    named,
)
from ordercast.protocols.hydra.messages import Announce, Echo, Outcome, Stamped, Steps
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.sender import Sender


class Client(Stack, Caller):
    """Calls the replicas of groups."""

    def __init__(
        self,
        env: Env,
        groups: Mapping[GroupId, tuple[NodeId, ...]],
        service: tuple[NodeId, ...],
        options: HydraOptions,
        near: NodeId | None,
        calls: CallOptions,
        *,
        answers: bool,
    ) -> None:
        super().__init__(env)
        self._groups = groups
        self._sender = self.embed(
            "sender",
            lambda inner: Sender(inner, groups, service, options, near),
            (Announce, Steps, Echo, Stamped, Outcome),
        )
        self._replies = {
            group: Replies(group, replicas, self._settle) for group, replicas in groups.items() if replicas
        }
        self._calls = Calls(env, self._replies, calls, self._send, answers=answers)
        self._homes = {node: group for group, replicas in groups.items() for node in replicas}
        self._last: dict[MessageId, int] = {}
        """By call: the sequencer that it was sent to last."""

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Call with operations; False while no sequencer is known."""
        self._calls.check(groups)
        return self._sender.is_ready and self._calls.take(groups, payload)

    def read(self, groups: Groups, payload: bytes) -> bool:
        """Call with reads."""
        return self._calls.take(groups, payload, read=True)

    @property
    def in_doubt(self) -> int:
        """The operations without an answer."""
        return self._calls.in_doubt

    def _send(self, call: Pending) -> None:
        packed = call.packed(self._calls.floor)
        if call.read and call.attempts == 1:
            self.env.multicast(self._groups[call.group], ReadRequest(packed))
        else:
            last = self._last.get(call.first, 0)
            self._last[call.first] = self._sender.submit_elsewhere(call.groups, packed, last)

    def _settle(self, first: MessageId, results: bytes, stamp: Stamp | None, replica: NodeId) -> bool:
        self._last.pop(first, None)
        return self._calls.settle(first, results, stamp, replica)

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """Take a reply."""
        if not isinstance(message, Reply | ReadReply) or source not in self._homes:
            raise RemoteError(f"node {source} sent {named(message)} to a client")
        if message.first in self._calls.pending:
            self._replies[self._homes[source]].take(source, message)

    def on_own_timer(self, name: str) -> None:
        """Repeat calls, and forget those that were given up."""
        before = list(self._calls.pending)
        self._calls.on_timer()
        for first in before:
            if first not in self._calls.pending:
                self._last.pop(first, None)
                for replies in self._replies.values():
                    replies.forget(first)

    def explain_own(self) -> Explanation:
        """The calls without an answer."""
        waits = self._waits()
        return Explanation({"role": "client", "calls under way": len(waits)}, tuple(waits))

    def _waits(self) -> list[Wait]:
        return self._calls.waits("equal replies of a majority, with the leader's", tuple(self._homes))
