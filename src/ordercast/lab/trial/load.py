"""The applications of a host process: senders that submit by a schedule, or clients that wait for answers.

Open-loop senders submit at scheduled times. A closed-loop client waits for the answers of all receivers
before it goes on. Receivers answer by a small datagram outside the protocol, as in the simulator. A client of
a service waits for the one answer of the service.
"""

import asyncio
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct

from ordercast.core import MICROSECOND, SECOND, Groups, MessageId, Nanos, NodeId, message_sender
from ordercast.lab.trial.conclusions import Conclusions
from ordercast.lab.trial.diary import Diary
from ordercast.lab.trial.messages import Life
from ordercast.lab.trial.setting import LOOPBACK, Setting
from ordercast.net.host.delivered import BundleOrNotice, DeliveredBundle, RepliedBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.scenario.clients import ClientCalls, Clients
from ordercast.scenario.operations import operations_of
from ordercast.scenario.receipts import receipts_wanted
from ordercast.scenario.schedule import schedule
from ordercast.scenario.submission import numbered_payload
from ordercast.scenario.window import Budget
from ordercast.trace import READ

IN_A_ROW_MAX = 64
"""How many late submissions are made together before other work gets a turn."""
LIFE_BITS = 40
"""For the time in microseconds at which a life of a client begins, from that of the run."""
_ANSWER = Struct("<IQI")  # receiver, first message, how many


class Load(ABC):
    """What the senders on a host do."""

    def __init__(self, live: LiveHost, life: Life, setting: Setting, diary: Diary) -> None:
        self.live = live
        self._diary = diary
        self.senders = [node for node in live.plan.senders if node in live.nodes]
        self.submitted = {node: life.submitted.get(node, 0) for node in self.senders}
        """Number of messages submitted by each sender, including earlier lives."""
        self.expected = 0
        self.refused = 0
        self.late_ns: Nanos = 0
        self._receivers: dict[Groups, frozenset[NodeId]] = {}
        self.operations = operations_of(setting.scenario, live.plan)
        """What is called, if the plan has a service."""
        self._conclusions: Conclusions | None = None
        service = live.plan.service
        if self.operations is not None and service is not None and service.sharding is not None:
            self._conclusions = Conclusions(live, self.operations, diary, self.senders, self.submit)

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether nothing more will be submitted here."""

    @property
    def timed_out(self) -> int:
        """Messages whose answers a client stopped waiting for."""
        return 0

    @abstractmethod
    async def run(self, start_ns: Nanos) -> None:
        """Submit, from this reading of the monotonic clock on."""

    def close(self) -> None:  # noqa: B027  (optional hook)
        """Release all resources."""

    def receivers(self, groups: Groups) -> frozenset[NodeId]:
        """All receivers of some groups."""
        found = self._receivers.get(groups)
        if found is None:
            members = self.live.plan.groups
            found = self._receivers[groups] = frozenset(node for group in groups for node in members[group])
        return found

    def submit(
        self, sender: NodeId, groups: Groups, payload: bytes, label: str | None = None
    ) -> MessageId | None:
        """Submit one message; None if there is no room for it."""
        self.submitted[sender] += 1
        serves, read = self.live.plan.service is not None, label == READ
        message = self.live.submit(sender, groups, (payload,), read=read)
        if message is None:
            self.refused += 1
            return None
        if not read:
            self._diary.sent(message, groups)
        if serves:
            self._diary.called(message, groups, payload, read=read)
        if self._conclusions is not None:
            self._conclusions.note(message, payload)
        self.expected += receipts_wanted(len(self.receivers(groups)), label, serves=serves)
        return message


class OpenLoad(Load):
    """Submits by the schedule; submissions during the time when the host was down are skipped."""

    def __init__(self, live: LiveHost, life: Life, setting: Setting, diary: Diary) -> None:
        super().__init__(live, life, setting, diary)
        self._first_life = life.first
        self._left = (
            [
                (number, submission)
                for number, submission in enumerate(schedule(setting.scenario, live.plan), 1)
                if submission.sender in self.submitted
            ]
            if self.senders
            else []
        )
        self._left.reverse()

    @property
    def done(self) -> bool:
        """Whether the schedule is used up."""
        return not self._left

    async def run(self, start_ns: Nanos) -> None:
        """Submit each message when it is due."""
        left = self._left
        if not self._first_life:
            now = time.monotonic_ns()
            while left and start_ns + left[-1][1].at_ns < now:
                left.pop()
        in_a_row = 0
        while left and self.live.running:
            number, submission = left[-1]
            wait = start_ns + submission.at_ns - time.monotonic_ns()
            if wait > 0 or in_a_row >= IN_A_ROW_MAX:
                in_a_row = 0
                await asyncio.sleep(max(0, wait) / SECOND)
                continue
            in_a_row += 1
            self.late_ns = max(self.late_ns, -wait)
            payload, label = submission.payload, READ if submission.read else None
            if payload is None:
                payload = numbered_payload(number, submission.size)
            self.submit(submission.sender, submission.groups, payload, label)
            left.pop()


class ClosedLoad(Load):
    """The clients of a host, which get the answers of receivers by datagrams.

    Hosts share no counter, so each sender has its own part of the messages. The operations of all clients and
    lives have different numbers: what they write can be told apart.
    """

    def __init__(
        self, live: LiveHost, life: Life, setting: Setting, diary: Diary, clock: Callable[[], Nanos]
    ) -> None:
        super().__init__(live, life, setting, diary)
        spec, senders = setting.scenario.workload, live.plan.senders
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        share, more = divmod(spec.messages, len(senders))
        life_us = (time.time_ns() - setting.epoch_ns) // MICROSECOND if self.operations else 0
        budgets = {
            node: Budget(share + (place < more), self.submitted[node], (place << LIFE_BITS) + life_us)
            for place, node in enumerate(senders)
            if node in self.submitted
        }
        operations = self.operations
        complete = self._complete if operations is None else _unrecorded
        calls = ClientCalls(clock, self.submit, self._after, complete)
        self._clients = Clients(spec, live.plan, setting.scenario.seed, budgets, calls, operations)
        self._answers = Answers(live, setting.answer_ports, self._on_answer) if operations is None else None
        for node in budgets if operations is not None else ():
            live.add_answer_listener(node, partial(self._on_result, node))

    @property
    def done(self) -> bool:
        """Whether all messages were submitted, and answered or given up."""
        return self._clients.finished

    @property
    def timed_out(self) -> int:
        """Messages whose answers a client stopped waiting for."""
        return self._clients.timed_out

    async def run(self, start_ns: Nanos) -> None:
        """Let all clients begin."""
        await asyncio.sleep(max(0, start_ns - time.monotonic_ns()) / SECOND)
        self._clients.start()

    def close(self) -> None:
        """Stop listening for answers."""
        if self._answers is not None:
            self._answers.close()

    def _after(self, delay: Nanos, action: Callable[..., None], *args: object) -> None:
        self._loop.call_later(delay / SECOND, self._act, action, args)

    def _act(self, action: Callable[..., None], args: tuple[object, ...]) -> None:
        if self.live.running:
            action(*args)

    def _complete(self, sender: NodeId, message: MessageId, submitted: Nanos) -> None:
        if self.live.recorder is not None:
            self.live.recorder.completed(max(self._clock(), submitted), sender, message, submitted)

    def _on_result(self, node: NodeId, answered: RepliedBundle) -> None:
        """A client of a service has an answer. It goes on after this turn, which may be the host's last."""
        first, count = answered.bundle.first, len(answered.bundle.payloads)
        self._loop.call_soon(self._on_answer, node, first, count)

    def _on_answer(self, node: NodeId, first: MessageId, count: int) -> None:
        if self.live.running:
            for message in range(first, first + count):
                self._clients.answer(node, message)


def _unrecorded(sender: NodeId, message: MessageId, submitted: Nanos) -> None:
    """The trace has the answer of a service already."""


class Answers:
    """Tells clients what the receivers here have delivered, and reads the answers of other hosts."""

    def __init__(
        self,
        live: LiveHost,
        ports: Mapping[int, int],
        heard: Callable[[NodeId, MessageId, int], None],
    ) -> None:
        self._heard = heard
        self._here = live.host
        self._ports = ports
        self._hosts = {node.id: node.host for node in live.plan.nodes}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind((LOOPBACK, ports[live.host]))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.fileno(), self._read)
        receivers = {node for members in live.plan.groups.values() for node in members}
        for node in sorted(receivers & live.nodes.keys()):
            live.add_listener(node, partial(self._answer, node))

    def close(self) -> None:
        """Stop listening."""
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _answer(self, node: NodeId, delivered: BundleOrNotice) -> None:
        if not isinstance(delivered, DeliveredBundle):
            return
        first, count = delivered.bundle.first, len(delivered.bundle.payloads)
        host = self._hosts.get(message_sender(first))
        if host == self._here:
            self._loop.call_soon(self._heard, node, first, count)
        elif host is not None:
            try:
                self._socket.sendto(_ANSWER.pack(node, first, count), (LOOPBACK, self._ports[host]))
            except OSError:
                return  # nobody listens there now, or the buffer is full: the client will give up in time

    def _read(self) -> None:
        while True:
            try:
                content = self._socket.recv(_ANSWER.size + 1)
            except OSError:  # nothing more, or news of an answer that nobody heard
                return
            if len(content) == _ANSWER.size:
                self._heard(*_ANSWER.unpack(content))


def make_load(live: LiveHost, life: Life, setting: Setting, diary: Diary, clock: Callable[[], Nanos]) -> Load:
    """The applications that a scenario has on a host."""
    if setting.scenario.workload.kind == "closed":
        return ClosedLoad(live, life, setting, diary, clock)
    return OpenLoad(live, life, setting, diary)
