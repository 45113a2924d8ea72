"""The replies that a client has got: f+1 equal ones, that of the leader among them, are an answer.

Equal means the same view, tag and slot: then the logs of these replicas are the same up to that slot. A read
past the log is answered by the leader, at a place of its log, and by f others in the same view and with the
same tag whose logs reach that place. Without the others' places, it could show what a view change undoes.
"""

from collections.abc import Callable

from ordercast.components.execution.messages import Place as StampPlace
from ordercast.components.network_ordered.messages import ReadReply, Reply
from ordercast.core import GroupId, MessageId, NodeId, RemoteError, Stamp

Settle = Callable[[MessageId, bytes, Stamp | None, NodeId], bool]


class Replies:
    """The replies to the calls of one client to one group."""

    def __init__(self, group: GroupId, replicas: tuple[NodeId, ...], settle: Settle) -> None:
        self.group = group
        self._replicas = replicas
        self._settle = settle
        self._majority = len(replicas) // 2 + 1
        self._replies: dict[MessageId, dict[NodeId, Reply | ReadReply]] = {}
        """By call: the last reply of each replica."""

    def forget(self, first: MessageId) -> None:
        """Nobody waits for a call any more."""
        self._replies.pop(first, None)

    def take(self, source: NodeId, reply: Reply | ReadReply) -> None:
        """Take a reply; perhaps it completes an answer."""
        if source not in self._replicas:
            raise RemoteError(f"node {source} answers, but is no replica of group {self.group}")
        replies = self._replies.setdefault(reply.first, {})
        replies[source] = reply
        leader = self._replicas[reply.view % len(self._replicas)]
        answer = replies.get(leader)
        if answer is None or answer.results is None:
            return
        agreeing = sum(_agrees(answer, other) for other in replies.values())
        if agreeing >= self._majority:
            del self._replies[reply.first]
            self._settle(reply.first, answer.results, _stamp(answer.place), leader)


def _agrees(answer: Reply | ReadReply, other: Reply | ReadReply) -> bool:
    """Whether a replica confirms the leader's answer."""
    if type(answer) is not type(other) or (answer.view, answer.tag) != (other.view, other.tag):
        return False
    if isinstance(answer, Reply) and isinstance(other, Reply):
        return answer.slot == other.slot
    if isinstance(answer, ReadReply) and isinstance(other, ReadReply):
        return (other.clock, other.sequencer) >= (answer.clock, answer.sequencer)
    return False


def _stamp(place: StampPlace | None) -> Stamp | None:
    return None if place is None else Stamp(*place)
