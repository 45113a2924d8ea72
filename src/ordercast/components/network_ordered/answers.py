"""What a replica tells clients: that a call is in its log, what came of it, and the results of reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.components.execution import unpack_call
from ordercast.components.execution.messages import place_of_stamp
from ordercast.components.network_ordered.ledger import call_of
from ordercast.components.network_ordered.messages import ReadReply, ReadRequest, Reply

if TYPE_CHECKING:
    from ordercast.components.network_ordered.replica import NetworkReplica
    from ordercast.core import NodeId


class Answers:
    """The replies of one replica. The leader sends results with them."""

    def __init__(self, replica: NetworkReplica) -> None:
        self._replica = replica

    def reply(self, index: int) -> None:
        """Tell the client that its call is in the log; the leader says what came of it."""
        replica, entry = self._replica, self._replica.log.entries[index]
        if replica.executes_all:
            _, done = replica.ledger.outcomes[index]
            if done is None or not done.finished:
                return
            # A read names the call before it; there may be none.
            nothing = not done.fresh and done.stamp == entry.stamp
            place = None if nothing else place_of_stamp(done.stamp)
            first, results = done.first, done.results
        else:
            call = call_of(entry)
            if call is None:
                return
            first, results, place = call.first, None, None
        reply = Reply(replica.view, replica.tag, entry.slot, first, results, place)
        replica.env.send(entry.client, reply)

    def reply_anew(self) -> None:
        """Reply to all that is not certain: the view or the tag has changed."""
        log = self._replica.log
        for index in range(log.synced, len(log.entries)):
            self.reply(index)

    def on_read(self, source: NodeId, message: ReadRequest) -> None:
        """Answer reads past the log: with the results, or only with how far the log is."""
        replica = self._replica
        if not replica.is_normal:
            return
        call = unpack_call(message.call, source)
        results = place = None
        if replica.leads:
            executor = replica.ledger.executor
            results, place = executor.read(call.bundle), place_of_stamp(executor.place)
        reply = ReadReply(replica.view, replica.tag, *replica.log.rank, call.first, results, place)
        replica.env.send(source, reply)
