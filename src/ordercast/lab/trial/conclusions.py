"""How clients in a trial go on with transactions that were answered: they conclude general ones when they
have read, and write down what sums came to."""

import asyncio
from collections.abc import Callable
from functools import partial

from ordercast.core import Groups, MessageId, NodeId
from ordercast.lab.trial.diary import Diary
from ordercast.net.host.delivered import RepliedBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.services import Operations


class Conclusions:
    """The calls of the clients on a host to a service in shards, until they are answered."""

    def __init__(
        self,
        live: LiveHost,
        operations: Operations,
        diary: Diary,
        clients: list[NodeId],
        submit: Callable[[NodeId, Groups, bytes], object],
    ) -> None:
        self._live = live
        self._operations = operations
        self._diary = diary
        self._submit = submit
        self._calls: dict[MessageId, bytes] = {}
        self._loop = asyncio.get_running_loop()
        for client in clients:
            live.add_answer_listener(client, partial(self._on_answer, client))

    def note(self, message: MessageId, operation: bytes) -> None:
        """A client has called this operation."""
        self._calls[message] = operation

    def _on_answer(self, client: NodeId, answered: RepliedBundle) -> None:
        """A client goes on after this turn, which may be the host's last."""
        for message, result in enumerate(answered.bundle.payloads, answered.bundle.first):
            operation = self._calls.pop(message, None)
            if operation is not None:
                self._note_sum(message, operation, result)
                self._loop.call_soon(self._go_on, client, message, operation, result)

    def _note_sum(self, message: MessageId, operation: bytes, result: bytes) -> None:
        total = self._operations.total(operation, result)
        if total is not None:
            self._diary.summed(message, total)

    def _go_on(self, client: NodeId, message: MessageId, operation: bytes, result: bytes) -> None:
        drawn = self._operations.proceed(message, operation, result)
        if drawn is not None and drawn.groups is not None and self._live.running:
            self._submit(client, drawn.groups, drawn.payload)
