"""A client of a service with a log: calls the leader, and finds it again when it changes.

The first attempt goes to the replica that is believed to lead, or to all if the protocol wants that. Later
ones go to all replicas: the leader takes the call, and any other forwards it, says who leads, and answers as
soon as it has executed the call. So a client needs to reach only one replica of the majority.
"""

from collections.abc import Mapping

from ordercast.components.execution import CallOptions, Calls, Pending
from ordercast.components.execution.messages import Answer, CallMessage
from ordercast.components.logged_service.messages import Redirect
from ordercast.core import Caller, Env, Explanation, GroupId, Groups, Message, NodeId, RemoteError, named


class LogClient(Caller):
    """One client of all services."""

    def __init__(
        self,
        env: Env,
        members: Mapping[GroupId, tuple[NodeId, ...]],
        options: CallOptions,
        *,
        answers: bool,
        broadcasts: bool = False,
    ) -> None:
        """`broadcasts`: the first attempt of an operation goes to all replicas as well."""
        super().__init__(env)
        self._members = members
        self._broadcasts = broadcasts
        self._groups = {node: group for group, nodes in members.items() for node in nodes}
        self._leaders = {group: nodes[0] for group, nodes in members.items()}
        """Who leads each group, as far as this client knows. The first replica does at first."""
        self._calls = Calls(env, members, options, self._send, answers=answers)

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Call with operations."""
        return self._calls.take(groups, payload)

    def read(self, groups: Groups, payload: bytes) -> bool:
        """Call with reads."""
        return self._calls.take(groups, payload, read=True)

    @property
    def in_doubt(self) -> int:
        """The operations without an answer."""
        return self._calls.in_doubt

    def on_message(self, source: NodeId, message: Message) -> None:
        """An answer, or news of the leader."""
        group = self._groups.get(source)
        if group is None:
            raise RemoteError(f"node {source} is no replica, and sent {named(message)} to a client")
        match message:
            case Answer():
                self._calls.settle(message.first, message.results, message.stamp, source)
            case Redirect() if message.leader in self._members[group]:
                self._leaders[group] = message.leader
            case _:
                raise RemoteError(f"node {source} sent {message} to a client")

    def on_timer(self, name: str) -> None:
        """Repeat calls."""
        self._calls.on_timer()

    def explain(self) -> Explanation:
        """The calls without an answer."""
        waits = self._calls.waits("an answer of a replica")
        leaders = ", ".join(f"node {node} leads group {group}" for group, node in self._leaders.items())
        state: dict[str, str | int] = {
            "role": "client",
            "believes": leaders,
            "calls under way": len(self._calls.pending),
        }
        return Explanation(state, tuple(waits))

    def _send(self, call: Pending) -> None:
        message = CallMessage(call.packed(self._calls.floor))
        if call.attempts == 1 and (call.read or not self._broadcasts):
            self.env.send(self._leaders[call.group], message)
        else:
            self.env.multicast(self._members[call.group], message)
