"""The control socket of a running host: JSON lines over a Unix socket that only its owner may use.

A request is one object on a line, ``{"do": "status"}``. Its answer is also one line, ``{"ok": ...}`` or
``{"error": "..."}``. After the answer to ``tail`` one line follows for each delivery, until the reader hangs
up or has as many as it asked for. The length of lines and the number of clients are limited. No reader slows
the host down: a reader of a tail that is too slow misses lines, and is told how many.

Clients may stay as long as they like, and could take all places for ever. So some places are left for
*visitors*: when all others are taken, a new client is answered, and the visitor that has asked nothing for
longest has to go if there are too many. So tools such as `ordercast cluster status` are always answered.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from ordercast.core import (
    Explanation,
    GroupId,
    Groups,
    HostId,
    LocalError,
    Membership,
    MessageId,
    Nanos,
    NodeId,
    Plan,
    Unconfirmed,
    exception_text,
    message_name,
)
from ordercast.core.bundle import bundle_span
from ordercast.net.cluster.socket_file import close_socket, open_socket
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle, RepliedBundle
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.tools.facts import HostFact, SenderFact, node_fact
from ordercast.net.tools.feed import Feed, Watch
from ordercast.net.tools.feed_lines import feed_lines
from ordercast.net.tools.progress import Outcomes, Progress
from ordercast.net.tools.requests import (
    LINE_BYTES_MAX,
    Explain,
    GroupName,
    Impair,
    ReadMetrics,
    Status,
    Stop,
    Submit,
    Tail,
    decode_request,
    encode_line,
)
from ordercast.net.transports.impair import Impairment

CLIENTS_MAX = 64
VISITORS_MAX = 16


class Controlled(Protocol):
    """What the server needs of a host."""

    @property
    def plan(self) -> Plan:
        """All nodes of the cluster."""

    @property
    def host(self) -> HostId:
        """The id of the host."""

    @property
    def metrics(self) -> Metrics:
        """Its counters."""

    def submit(self, node: NodeId, groups: Groups, payloads: Sequence[bytes]) -> MessageId | None:
        """Submit messages; returns the identity of the first, or None if the backlog is full."""

    def add_listener(self, node: NodeId, listener: Callable[[BundleOrNotice], None]) -> None:
        """Tell a listener what is delivered at a node."""

    def add_answer_listener(self, node: NodeId, listener: Callable[[RepliedBundle], None]) -> None:
        """Tell a listener what a client is answered."""

    def explain(self) -> dict[NodeId, Explanation]:
        """What waits at its nodes."""


class ControlServer:
    """Answers requests to one host."""

    def __init__(
        self,
        host: Controlled,
        path: Path,
        *,
        cluster: str,
        groups: Mapping[str, GroupId],
        stop: Callable[[], None],
        sending: Callable[[], Mapping[NodeId, SenderFact]] = dict,
        details: Callable[[], Mapping[str, object]] = dict,
        impair: Callable[[Impairment], None] | None = None,
        clock: Callable[[], Nanos] = time.time_ns,
    ) -> None:
        self._host = host
        self._path = path
        self._cluster = cluster
        self._groups = dict(groups)
        self._group_names = {group: name for name, group in groups.items()}
        self._stop = stop
        self._sending = sending
        self._details = details
        self._set_impairment = impair
        self._clock = clock
        self._began = time.monotonic_ns()
        self._roles = {node.id: node.role for node in host.plan.nodes if node.host == host.host}
        members = {node for nodes in host.plan.groups.values() for node in nodes}
        self._receivers = sorted(members.union(host.plan.joiners) & {*self._roles})
        self._senders = [node for node in host.plan.senders if node in self._roles]
        self._feed = Feed()
        self._progress = {node: Progress() for node in self._receivers}
        serves = host.plan.service is not None
        self._outcomes = {node: Outcomes() for node in self._senders} if serves else {}
        self._clients: set[asyncio.Task[None]] = set()
        self._visitors: dict[asyncio.Task[None], None] = {}
        """Clients without a place of their own, the one that has asked nothing for longest first."""
        self._server: asyncio.Server | None = None
        self._place = path
        self._inode = 0
        self._refusal = ""

    async def start(self) -> None:
        """Listen; `LocalError` if another process serves this host."""
        listening, self._place = open_socket(self._path)
        self._inode = self._place.lstat().st_ino
        for node in self._receivers:
            self._host.add_listener(node, partial(self._tell, node))
        for node, outcomes in self._outcomes.items():
            self._host.add_answer_listener(node, partial(_note_answer, outcomes))
            self._host.add_listener(node, partial(_note_unknown, outcomes))
        self._server = await asyncio.start_unix_server(self._accept, sock=listening, limit=LINE_BYTES_MAX)

    async def close(self) -> None:
        """Close all connections, and remove the socket."""
        if self._server is None:
            return
        self._server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        close_socket(self._path, self._place, self._inode)
        self._server = None

    def refuse(self, reason: str) -> None:
        """Take no more messages: the host stops, and could not send them."""
        self._refusal = reason

    def _tell(self, node: NodeId, delivered: BundleOrNotice) -> None:
        """Count a delivery, and pass it to those who watch."""
        if isinstance(delivered, DeliveredBundle):
            self._progress[node].add(delivered.bundle.first, len(delivered.bundle.payloads))
        self._feed.tell(node, delivered)

    # Clients.

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._clients) - len(self._visitors) >= CLIENTS_MAX:
            self._admit_visitor(task)
        self._clients.add(task)
        try:
            await self._serve(task, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has gone or had to go, or the host stops
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._visitors.pop(task, None)
            self._clients.discard(task)  # not before, so that `close` waits for it

    def _admit_visitor(self, task: asyncio.Task[None]) -> None:
        if len(self._visitors) >= VISITORS_MAX:
            oldest = next(iter(self._visitors))
            del self._visitors[oldest]
            oldest.cancel()
        self._visitors[task] = None

    async def _serve(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            try:
                line = await reader.readline()
            except ValueError:  # the rest of the line may be of any length: hang up
                writer.write(
                    encode_line({"error": f"request line is too long; the limit is {LINE_BYTES_MAX} bytes"})
                )
                return
            if not line.endswith(b"\n"):
                return
            if task in self._visitors:
                self._visitors[task] = self._visitors.pop(task)  # now it is the last that asked
            then = self._answer(line, writer, task in self._visitors)
            if then is not None:
                await _until_hung_up(then(), reader)
                return
            await writer.drain()

    def _answer(
        self, line: bytes, writer: asyncio.StreamWriter, visits: bool
    ) -> Callable[[], Awaitable[None]] | None:
        """Answer a request; for a tail, returns what is left to do."""
        then = None
        try:
            request = decode_request(line)
            if isinstance(request, Tail):
                if visits:
                    raise LocalError(f"too many clients for a tail; the limit is {CLIENTS_MAX}")
                answer, then = self._tail(request, writer)
            else:
                answer = self._do(request)
        except LocalError as error:
            writer.write(encode_line({"error": str(error)}))
            return None
        except Exception as error:  # a question must never stop the host
            writer.write(encode_line({"error": f"a defect of ordercast: {exception_text(error)}"}))
            return None
        writer.write(encode_line({"ok": answer}))
        return then

    # Requests.

    def _do(self, request: Status | ReadMetrics | Explain | Submit | Stop | Impair) -> object:
        match request:
            case Status():
                return self.status()
            case ReadMetrics():
                return {"host": self._host.host, **self._host.metrics.snapshot()}
            case Explain():
                return self._explain(request)
            case Submit():
                return self._submit(request)
            case Impair():
                return self._impair(request)
            case Stop():
                asyncio.get_running_loop().call_soon(self._stop)  # after the answer is written
                return {"stopping": True}

    def status(self) -> dict[str, object]:
        """The identity and the state of the host."""
        return {
            "cluster": self._cluster,
            "protocol": self._host.plan.protocol,
            "host": self._host.host,
            "pid": os.getpid(),
            "uptime_ns": time.monotonic_ns() - self._began,
            "nodes": {node: {"role": role} for node, role in sorted(self._roles.items())},
            "groups": self._groups,
            "receivers": self._receivers,
            "senders": self._senders,
            "metrics": self._host.metrics.snapshot(),
            "sending": self._sending(),
            **self._details(),
        }

    def _explain(self, request: Explain) -> HostFact:
        sending = self._sending()
        now = self._clock()
        return HostFact(
            self._host.host,
            {
                node: node_fact(
                    self._roles[node],
                    explanation,
                    now,
                    asked=request.message,
                    progress=self._progress.get(node),
                    outcomes=self._outcomes.get(node),
                    sender=sending.get(node),
                )
                for node, explanation in self._host.explain().items()
            },
        )

    def _impair(self, request: Impair) -> Impairment:
        if self._set_impairment is None:
            raise LocalError(f"host {self._host.host} was not started with --impair")
        self._set_impairment(request.impairment)
        return request.impairment

    def _submit(self, request: Submit) -> dict[str, object]:
        if self._refusal:
            raise LocalError(self._refusal)
        node = self._local(request.node, self._senders, "sender")
        groups = tuple(sorted({self._group(name) for name in request.groups}))
        first = self._host.submit(node, groups, request.payloads)
        if first is None:
            return {"node": node, "full": True}
        return {"node": node, "first": first, "name": message_name(first), "count": len(request.payloads)}

    def _tail(
        self, request: Tail, writer: asyncio.StreamWriter
    ) -> tuple[object, Callable[[], Awaitable[None]]]:
        groups = [self._group(name) for name in request.groups]
        members = {node for group in groups for node in self._host.plan.groups[group]}
        # Where groups are not fixed, any receiver may be watched: it may be in the group now, or later.
        fixed = self._host.plan.guarantees.membership is Membership.FIXED
        choices = [node for node in self._receivers if not groups or not fixed or node in members]
        node = self._local(request.node, choices, "receiver of that group" if groups else "receiver")
        then = partial(self._stream, node, Watch(groups), request.count, writer)
        return {"node": node, "host": self._host.host}, then

    async def _stream(
        self, node: NodeId, watch: Watch, count: int | None, writer: asyncio.StreamWriter
    ) -> None:
        left = count
        self._feed.add(node, watch)  # here, where it is taken back whatever happens to the reader
        try:
            await writer.drain()
            while left is None or left > 0:
                for line, messages in feed_lines(await watch.get(), self._group_names, left):
                    writer.write(line)
                    left = None if left is None else left - messages
                await writer.drain()
            writer.write(encode_line({"end": count}))
            await writer.drain()
        finally:
            self._feed.remove(node, watch)
            self._host.metrics.tail_lost += watch.lost

    def _group(self, name: GroupName) -> GroupId:
        group = self._groups.get(name) if isinstance(name, str) else name
        if group is None or group not in self._host.plan.groups:
            known = ", ".join(self._groups)
            raise LocalError(f"there is no group '{name}'; the groups are: {known}")
        return group

    def _local(self, asked: NodeId | None, choices: list[NodeId], what: str) -> NodeId:
        if asked is None and choices:
            return choices[0]
        if asked not in choices or asked is None:
            which = "has no" if asked is None else f"has no node {asked} that is a"
            raise LocalError(f"host {self._host.host} {which} {what}")
        return asked


def _note_answer(outcomes: Outcomes, answered: RepliedBundle) -> None:
    outcomes.answered.add(answered.bundle.first, len(answered.bundle.payloads))


def _note_unknown(outcomes: Outcomes, delivered: BundleOrNotice) -> None:
    if isinstance(delivered, Unconfirmed):
        outcomes.unknown.add(*bundle_span(delivered.payload))


async def _until_hung_up(stream: Awaitable[None], reader: asyncio.StreamReader) -> None:
    """Run a stream until it ends or its reader hangs up; otherwise only the next line would show that."""
    tasks = [asyncio.ensure_future(stream), asyncio.ensure_future(reader.read(1))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
