"""The calls of a program to a replicated service: each waits until its client process has the answer.

Calls to one group that tasks make in one turn of the event loop are submitted together: the operations in one
bundle, and the reads in another. So tasks that mix both do not break each other's bundles.

The client process gives up calls that have no answer by their deadline, counted from when it takes them. It
takes no calls while it knows nobody to send them to, or has too many under way. So those that it has not
taken by their deadline are given up here, and those that it took late end for their callers, while it goes
on.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from ordercast.components.execution.call import OPERATION_BYTES_MAX
from ordercast.core import (
    GroupId,
    Groups,
    LocalError,
    MessageId,
    NodeId,
    OperationType,
    OrdercastError,
    Unconfirmed,
    Undone,
    message_name,
)
from ordercast.core.bundle import bundle_span
from ordercast.net.host.delivered import BundleOrNotice, RepliedBundle
from ordercast.net.host.live_host import LiveHost

CLOSE_S = 5.0
"""How long a closing client waits for answers to the calls under way."""

TOGETHER_S = 0.01
"""Deadlines that are so close are looked after together."""

log = logging.getLogger(__name__)


class Unknown(OrdercastError):
    """The outcome of an operation is unknown: it was executed, or will be, or never will be."""

    def __init__(self, message: MessageId, why: str) -> None:
        self.message = message
        """The identity of the operation."""
        name = message_name(message)
        super().__init__(f"{why}: it is not known whether operation {name} was executed or still will be")


Answered: TypeAlias = "asyncio.Future[bytes | None]"
"""The future of a result; None says that there was no room."""
Line: TypeAlias = list[tuple[bytes, Answered]]
"""Operations that are to be submitted together."""


class OpenCalls:
    """The calls under way at one client, on the host that this program runs."""

    def __init__(self, host: LiveHost, node: NodeId, group: GroupId, timeout_s: float | None) -> None:
        """`group` is called by default. After `timeout_s` the client process gives calls up; that is told
        here, not done here."""
        self.host = host
        self._node = node
        self._groups: Groups = (group,)
        service = host.plan.service
        self._sharding = service.sharding if service is not None and host.plan.shards else None
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._lines: dict[tuple[Groups, bool], Line] = {}
        """Operations and reads that the next turn submits, by where they go."""
        self._named: dict[Answered, list[MessageId]] = {}
        """Where the identities of operations are put whose callers want to know them."""
        self._due = False
        self._waiting: dict[MessageId, asyncio.Future[bytes | None]] = {}
        self._deadlines: deque[tuple[float, MessageId]] = deque()
        """When the operations up to an identity have waited long enough."""
        self._ended = ""
        """Why no calls are taken any more."""
        self.on_end: Callable[[str], None] | None = None
        """Called with the reason when no calls are taken any more, unless they were closed."""
        self.on_submit: Callable[[MessageId, Sequence[bytes]], None] | None = None
        """Called with the first identity and the bytes of operations that were submitted together."""
        self.on_undone: Callable[[Undone], None] | None = None
        """Called when earlier answers do not hold any more."""

    async def call(self, kind: OperationType, payload: bytes, group: GroupId | None = None) -> Any:
        """Call an operation with its packed arguments; returns its result, or raises what became of it.

        A `LocalError` says that nothing was sent. One coroutine does it all: each level takes time in each
        call.
        """
        if len(payload) > OPERATION_BYTES_MAX:
            raise LocalError(
                f"{kind.name} takes {len(payload)} bytes with its arguments; the limit is"
                f" {OPERATION_BYTES_MAX} bytes"
            )
        if self._sharding is not None:
            groups = self.shards_of(payload)
        else:
            groups = self._groups if group is None else (group,)
        if self._ended:
            raise LocalError(self._ended)
        result = await self._enter(payload, groups, kind.reads)
        if result is None:
            result = await self._try_again(payload, groups, kind.reads)
        return kind.unpack_result(result)

    def shards_of(self, payload: bytes) -> Groups:
        """The shards that a transaction runs in; `LocalError` if the cluster's service has none."""
        plan = self.host.plan
        if self._sharding is None:
            raise LocalError(f"{plan.protocol} runs no transactions over shards here")
        return self._sharding.groups(payload, plan.shards)

    async def prepare(self, payload: bytes) -> tuple[MessageId, bytes]:
        """Call the first half of a general transaction; its identity, by which it is concluded, and its
        result."""
        named: list[MessageId] = []
        result = await self._result(payload, named)
        return named[-1], result

    async def conclude(self, payload: bytes) -> bytes:
        """Call the second half of a general transaction; its result."""
        return await self._result(payload)

    async def _result(self, payload: bytes, named: list[MessageId] | None = None) -> bytes:
        groups = self.shards_of(payload)
        if self._ended:
            raise LocalError(self._ended)
        result = await self._enter(payload, groups, False, named)
        return await self._try_again(payload, groups, False, named) if result is None else result

    def _enter(
        self, payload: bytes, groups: Groups, read: bool, named: list[MessageId] | None = None
    ) -> Answered:
        """Have an operation submitted in the next turn; its identity is put into `named`."""
        waiting: Answered = self._loop.create_future()
        if named is not None:
            self._named[waiting] = named
        self._lines.setdefault((groups, read), []).append((payload, waiting))
        if not self._due:
            self._due = True
            self._loop.call_soon(self._submit)
        return waiting

    def _submit(self) -> None:
        """Submit what was entered since the last turn, except what nobody waits for any more."""
        self._due = False
        lines, self._lines = self._lines, {}
        for (groups, read), line in lines.items():
            entered = [(payload, waiting) for payload, waiting in line if not waiting.done()]
            if entered:
                self._submit_line(entered, groups, read)
        self._named.clear()
        self.host.end_turn()

    def _submit_line(self, line: Line, groups: Groups, read: bool) -> None:
        payloads = [payload for payload, _ in line]
        first = self.host.submit(self._node, groups, payloads, read=read, ends_turn=True)
        if first is None:
            for _, waiting in line:
                waiting.set_result(None)
            return
        if self.on_submit is not None:
            self.on_submit(first, payloads)
        self._waiting.update(enumerate([waiting for _, waiting in line], first))
        for message, (_, waiting) in enumerate(line, first) if self._named else ():
            self._named.get(waiting, []).append(message)
        if self._timeout_s is not None:
            self._note_deadline(self._loop.time() + self._timeout_s, first + len(line) - 1)

    def _note_deadline(self, due: float, last: MessageId) -> None:
        """Look after the operations up to an identity at their deadline, or a little later, with others."""
        deadlines = self._deadlines
        if deadlines and due <= deadlines[-1][0]:
            deadlines[-1] = (deadlines[-1][0], last)
            return
        deadlines.append((due + TOGETHER_S, last))
        if len(deadlines) == 1:
            self._loop.call_at(due + TOGETHER_S, self._withdraw)

    def _withdraw(self) -> None:
        """End the operations whose deadline has come, also those that the client process took late."""
        now, deadlines, backlog = self._loop.time(), self._deadlines, self.host.backlogs[self._node]
        while deadlines and deadlines[0][0] <= now:
            _, last = deadlines.popleft()
            while (found := backlog.withdraw(last)) is not None:
                groups, bundle = found
                self.host.nodes[self._node].deliver(Unconfirmed(groups[0], groups, bundle))
            self._give_up_to(last)
        self.host.end_turn()
        if deadlines:
            self._loop.call_at(deadlines[0][0], self._withdraw)

    async def _try_again(
        self, payload: bytes, groups: Groups, read: bool, named: list[MessageId] | None = None
    ) -> bytes:
        """Submit an operation when there is room in the backlog, and wait for its result."""
        end = None if self._timeout_s is None else self._loop.time() + self._timeout_s
        while not self._ended:
            try:
                async with asyncio.timeout_at(end):
                    await self.host.wait_for_room()
            except TimeoutError:
                raise LocalError(
                    f"too many calls are under way: there was no room for another within {self._timeout_s:g}"
                    " s, and the operation was not sent"
                ) from None
            if (result := await self._enter(payload, groups, read, named)) is not None:
                return result
        raise LocalError(self._ended)

    async def start(self) -> None:
        """Start the host, and wait for answers."""
        self.host.add_answer_listener(self._node, self._on_answer)
        self.host.add_listener(self._node, self._on_notice)
        self.host.on_failure(lambda error: self.end(f"the host has stopped: {error}"))
        self.host.each_second(self._note_waiting)
        await self.host.start()

    def _on_answer(self, answered: RepliedBundle) -> None:
        waiting = self._waiting
        message, _, results = answered.bundle
        for result in results:
            future = waiting.pop(message, None)
            if future is not None and not future.done():
                future.set_result(result)
            message += 1

    def _on_notice(self, delivered: BundleOrNotice) -> None:
        if isinstance(delivered, Unconfirmed):
            first, count = bundle_span(delivered.payload)
            within = "" if self._timeout_s is None else f" within {self._timeout_s:g} s"
            for message in range(first, first + count):
                self._give_up(message, f"no answer came{within}")
        elif isinstance(delivered, Undone):
            log.warning(
                "answers with places behind (%d, %d) do not hold: they were on a branch that was discarded",
                delivered.stamp.clock,
                delivered.stamp.issuer,
            )
            if self.on_undone is not None:
                # In a turn of its own: what a program raises there must not stop the host.
                self._loop.call_soon(self.on_undone, delivered)

    def _give_up_to(self, last: MessageId) -> None:
        """Give up what still waits of the operations up to an identity."""
        # In the order of submission, so the first that is later ends the search.
        overdue = list(takewhile(lambda message: message <= last, self._waiting))
        for message in overdue:
            self._give_up(message, f"no answer came within {self._timeout_s:g} s")

    def _give_up(self, message: MessageId, why: str) -> None:
        future = self._waiting.pop(message, None)
        if future is not None and not future.done():
            future.set_exception(Unknown(message, why))

    def _note_waiting(self) -> None:
        self.host.metrics.operations_waiting = len(self._waiting)

    def end(self, why: str) -> None:
        """Take no more calls; those under way have no outcome."""
        if not self._ended and self.on_end is not None:
            self.on_end(why)
        self._ended = self._ended or why
        for _, waiting in (entered for line in self._lines.values() for entered in line):
            if not waiting.done():
                waiting.set_exception(LocalError(f"{why}; the operation was not sent"))
        self._lines.clear()
        for message in list(self._waiting):
            self._give_up(message, why)

    async def close(self) -> None:
        """Wait for the answers to calls under way, but not for long, and stop the host."""
        self._ended = self._ended or "the client is closed"
        try:
            self._submit()
            await self.host.drain(CLOSE_S)
        finally:
            await self.host.stop()
            self.end("the client was closed before the answer came")
