"""A live host: runs the processes that a plan puts on it, in one event loop.

The loop works in *turns*: a burst of datagrams, the timers that are due, or what applications have handed
over. In a turn handlers run one after the other, and their effects are gathered; at its end what was saved
is made durable, what was delivered goes to the applications, and what was sent leaves.

Nothing here knows a protocol. A message that its process refuses is counted and forgotten; an error that no
process expects stops the host, for nobody knows what state it is in.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple, TypeAlias

from ordercast.core import (
    CARRIERS,
    SECOND,
    Carrier,
    Delivery,
    Dropped,
    Explanation,
    Fault,
    Groups,
    HostId,
    LocalError,
    Message,
    MessageId,
    Nanos,
    NodeId,
    Notice,
    Plan,
    RemoteError,
    View,
    message_id,
    message_number,
)
from ordercast.core.bundle import HEAD_BYTES, Bundle, unpack_bundle
from ordercast.core.ids import NUMBER_MAX
from ordercast.kernel.backlog import Backlog
from ordercast.kernel.payloads import check_payloads
from ordercast.kernel.recipients import Recipients
from ordercast.net.host.live_env import LiveEnv
from ordercast.net.host.recording.spool import Recorder
from ordercast.net.host.routes import Routes
from ordercast.net.host.store import Store
from ordercast.net.host.timers import Timers
from ordercast.net.links.wire import REPAIR_NS, TICK_NS, Wire
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.transport import Datagram

LOCAL_MAX = 10_000
"""Messages between processes of this host that are handled in a turn; more wait for the next."""
ENVELOPE_BYTES = 128
"""What protocols put around a payload, about; a little more costs a fragment, not a failure."""
BACKLOG_BYTES_MAX = 8 << 20
SAMPLES = 16
"""Of a large bundle, the messages whose latency is measured."""

OURS = -1
"""The store keeps what the host itself must remember under this number, which no node has."""
RESERVED = 1 << 24
"""Message numbers that are set aside at a time."""

_log = logging.getLogger("ordercast")


class Batch(NamedTuple):
    """The application messages of one packet, as they were delivered."""

    delivery: Carrier
    bundle: Bundle
    now: Nanos


Heard: TypeAlias = Batch | Notice
Listener: TypeAlias = Callable[[Heard], None]


class LiveHost:
    """The processes of one host."""

    def __init__(
        self,
        plan: Plan,
        host: HostId,
        wire: Wire,
        *,
        store: Store,
        recorder: Recorder | None = None,
        bundle_bytes: int = 0,
        clock: Callable[[], Nanos] = time.time_ns,
    ) -> None:
        self.plan = plan
        self.host = host
        self.wire = wire
        self.store = store
        self.recorder = recorder
        self.metrics: Metrics = wire.metrics
        self.failure: BaseException | None = None
        """What stopped this host, if it was not asked to stop."""
        self.failed = asyncio.Event()
        self.on_failure: list[Callable[[BaseException], None]] = []
        """Told when that happens."""
        self.running = False
        self._closed = True
        self.each_second: list[Callable[[], None]] = []
        """Called once a second, for what needs no hurry."""
        self.delivered: list[tuple[LiveEnv, Delivery]] = []
        """What processes have delivered in this turn, and is not on record yet."""
        self._heard: list[tuple[LiveEnv, Heard]] = []
        """What is on record, and applications have not been told yet."""
        self.room: asyncio.Event = asyncio.Event()
        """Set whenever a backlog has got shorter."""
        self._clock = clock
        self._now: Nanos = 0
        self._recipients = Recipients(plan.groups)
        self._places = [node.host for node in plan.nodes]
        self._routes = Routes(self._places, host, self.metrics)
        self._local: deque[tuple[NodeId, NodeId, Message]] = deque()
        self._listeners: dict[NodeId, list[Listener]] = {}
        self._due = False
        self._reserved: dict[NodeId, MessageId] = {}
        """For each sender the identity at which more must be set aside."""
        limit = max(bundle_bytes or wire.room - ENVELOPE_BYTES, HEAD_BYTES + 1)
        self.nodes = {
            node.id: LiveEnv(self, node.id, node.role, self._backlog(node.id, limit))
            for node in plan.nodes
            if node.host == host
        }
        if not self.nodes:
            known = ", ".join(map(str, sorted(set(self._places))))
            raise LocalError(f"the plan has no host {host}; it has {known}")
        self._senders = [env for env in self.nodes.values() if env.backlog is not None]

    def _backlog(self, node: NodeId, limit: int) -> Backlog | None:
        if node not in self.plan.senders:
            return None
        return Backlog(message_id(node, 0), limit, bytes_max=BACKLOG_BYTES_MAX)

    # Life

    async def start(self) -> None:
        """Open the sockets and start all processes."""
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self.timers = Timers(self._loop, self._on_timer, self.end_turn)
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        self._now = self.store.begin_life(self._clock())
        if self.recorder is not None:
            self.recorder.begin(self._now, saved=self.store.lives > 1 and self._remembers())
        for env in self._senders:
            self._reserve(env, int(self.store.load(OURS).get(f"messages {env.me}", b"0")))
        self.wire.barrier = self._secure
        self.wire.unfinished = lambda: self.timers.set(OURS, "repair", REPAIR_NS)
        await self.wire.start(self._on_frame, self.end_turn)
        self.running = True
        for env in self.nodes.values():
            env.now = self._now
            env.process = self.plan.nodes[env.me].factory(env)
        for env in self.nodes.values():
            self._guard(env, env.process.on_start, self.store.load(env.me))
        self.timers.set(OURS, "wire", TICK_NS)
        self.timers.set(OURS, "second", SECOND)
        self.end_turn()

    def _remembers(self) -> bool:
        """Whether a later life of a node is the same member: one that may come back without its memory, and
        makes no promise about coming back with it, keeps nothing, and its later life is a new one."""
        tolerates = self.plan.guarantees.tolerates
        return Fault.RESTART in tolerates or Fault.AMNESIA not in tolerates

    def _reserve(self, env: LiveEnv, first: int) -> None:
        """Set identities aside for this life of a sender, so that no other life uses them too."""
        assert env.backlog is not None
        if not self._reserved.get(env.me):
            env.backlog.next_message = message_id(env.me, first)
        self._reserved[env.me] = message_id(env.me, min(first + RESERVED, NUMBER_MAX))
        self.store.save(OURS, f"messages {env.me}", str(first + RESERVED).encode())

    def skip_messages(self, node: NodeId, count: int) -> None:
        """Before the start: a sender has used so many identities, which its store may have forgotten."""
        name = f"messages {node}"
        if int(self.store.load(OURS).get(name, b"0")) < count:
            self.store.save(OURS, name, str(count).encode())

    async def stop(self) -> None:
        """Send what is ready and stop; what applications had not been delivered yet is not lost elsewhere."""
        if self._closed:
            return
        self._closed = True
        self.end_turn()
        ended_well, self.running = self.running, False
        self.room.set()  # there will be none, which those who wait for it should know
        self.timers.cancel_all()
        self.store.note_time(self._now)
        async with AsyncExitStack() as parts:  # each is let go of, whatever happens to the others
            parts.callback(self.store.close)
            if self.recorder is not None:
                parts.callback(self.recorder.close)
            parts.push_async_callback(self.wire.transport.close)
            if ended_well and self.failure is None:
                self.wire.flush()
                self._give_back()

    def _give_back(self) -> None:
        """Let the next life go on with the identities that this one did not use."""
        for env in self._senders:
            assert env.backlog is not None
            number = message_number(env.backlog.next_message)
            self.store.save(OURS, f"messages {env.me}", str(number).encode())
        self.store.commit()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until the protocols have taken all that applications handed over; False if it takes longer."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.running and any(env.backlog and env.backlog.packets for env in self._senders):
                    self.room.clear()
                    await self.room.wait()
        except TimeoutError:
            return False
        return True

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            _log.critical("host %d stops: a defect", self.host, exc_info=error)
            self.metrics.handler_errors += 1
            self.failure = error
            self.running = False
            self.failed.set()
            self.room.set()
            for tell in self.on_failure:
                tell(error)

    # Applications

    def submit(
        self, node: NodeId, groups: Groups, payloads: Sequence[bytes], *, urgent: bool = False
    ) -> MessageId | None:
        """Take messages for these groups; the identity of the first, or None if too much waits already.

        Urgent ones have to wait their turn too, but are taken however many wait.
        """
        env = self.nodes.get(node)
        if env is None or env.backlog is None:
            raise LocalError(f"node {node} is no sender on host {self.host}")
        self._recipients.count(groups)
        check_payloads(payloads)
        backlog = env.backlog
        if (backlog.full and not urgent) or not self.running:
            self.metrics.messages_refused += len(payloads)
            return None
        now = self._read_clock()
        first = backlog.add(groups, now, payloads)
        self.metrics.messages_submitted += len(payloads)
        if self.recorder is not None:
            self.recorder.submitted(node, groups, first, [now] * len(payloads), payloads)
        if backlog.next_message + len(payloads) > self._reserved[node]:
            self._reserve(env, message_number(backlog.next_message) + len(payloads))
        self.wake()
        return first

    def add_listener(self, node: NodeId, listener: Listener) -> None:
        """Tell somebody what a node delivers."""
        if node not in self.nodes:
            raise LocalError(f"node {node} is not on host {self.host}")
        self._listeners.setdefault(node, []).append(listener)

    def explain(self) -> dict[NodeId, Explanation]:
        """What waits at the nodes here, and for what."""
        return {env.me: env.process.explain() for env in self.nodes.values()}

    def explain_node(self, node: NodeId) -> Explanation:
        """What waits at one of them."""
        return self.nodes[node].process.explain()

    def wake(self) -> None:
        """Have a turn soon: something was handed over."""
        if not self._due:
            self._due = True
            self._loop.call_soon(self._on_wake)

    def _on_wake(self) -> None:
        self._due = False
        self.end_turn()

    # Events

    def _read_clock(self) -> Nanos:
        now = self._clock()
        if now > self._now:
            self._now = now
        return self._now

    def _on_frame(
        self, host: HostId, source: NodeId, destinations: tuple[NodeId, ...], body: Datagram
    ) -> None:
        """A frame came: for each of its destinations that is here, a message."""
        if source >= len(self._places) or self._places[source] != host:
            self.metrics.rejected_source += 1
            return
        try:
            message = self.plan.codec.decode(body)
        except RemoteError:
            self.metrics.malformed += 1
            return
        for node in destinations:
            env = self.nodes.get(node)
            if env is not None:
                self._handle(env, source, message)

    def _handle(self, env: LiveEnv, source: NodeId, message: Message) -> None:
        if not self.running:
            return
        env.now = self._read_clock()
        try:
            env.process.on_message(source, message)
        except RemoteError as error:
            self.metrics.malformed += 1
            _log.debug("node %d refused a message of node %d: %s", env.me, source, error)
        except Exception as error:
            self._fail(error)

    def _on_timer(self, node: NodeId, name: str) -> None:
        if not self.running:
            return
        if node == OURS:
            try:
                self._on_own_timer(name)
            except Exception as error:
                self._fail(error)
            return
        env = self.nodes[node]
        self._guard(env, env.process.on_timer, name)

    def _on_own_timer(self, name: str) -> None:
        if name == "wire":
            self.wire.tick()
            self.timers.set(OURS, name, TICK_NS)
            return
        if name == "repair":
            if self.wire.repair():
                self.timers.set(OURS, name, REPAIR_NS)
            return
        self.store.note_time(self._read_clock())
        for action in self.each_second:
            action()
        self.timers.set(OURS, name, SECOND)

    def _guard(self, env: LiveEnv, handler: Callable[..., None], *args: object) -> None:
        env.now = self._read_clock()
        try:
            handler(*args)
        except Exception as error:
            self._fail(error)

    # Effects

    def post(self, source: NodeId, to: tuple[NodeId, ...], message: Message) -> None:
        """A process sends."""
        here, elsewhere = self._routes.find(to)
        for node in here:
            self._local.append((node, source, message))
        if elsewhere:
            body = self.plan.codec.encode(message)
            for hosts, destinations, count in elsewhere:
                self.wire.send(hosts, source, destinations, count, body)

    def end_turn(self) -> None:
        """Pass on what is local, hand over what waits, and let all effects out."""
        if self.running:
            try:
                self._end_turn()
            except Exception as error:  # a full disk, for one: what cannot be kept may not leave
                self._fail(error)

    def _end_turn(self) -> None:
        local = self._local
        for _ in range(LOCAL_MAX):
            if not local:
                break
            node, source, message = local.popleft()
            self._handle(self.nodes[node], source, message)
        for env in self._senders:
            if env.backlog is not None and env.backlog.packets:
                self._drain(env, env.backlog)
        if local:
            self.wake()
        self._secure()
        if self._heard:
            self._hand_over()
        self.wire.flush()

    def _secure(self) -> None:
        """Make durable what was saved, and put on record what happened, before anything leaves.

        The record comes first: to write to the kernel is a matter of microseconds, to wait for the disk takes
        long, and if the host is killed in between, its state says already that the messages were delivered.
        """
        if self.delivered:
            self._put_on_record()
        if self.recorder is not None:
            self.recorder.flush()
        self.store.commit()

    def _drain(self, env: LiveEnv, backlog: Backlog) -> None:
        """Give packets to the protocol until it has enough, or the network has."""
        member = self.plan.member(env.process)
        before = backlog.messages
        env.now = self._read_clock()
        while backlog.packets and not self.wire.pressed():
            try:
                if backlog.offer(member) is None:
                    break
            except Exception as error:
                self._fail(error)
                return
        self.metrics.backlog_messages = sum(one.backlog.messages for one in self._senders if one.backlog)
        if backlog.messages < before:
            self.room.set()

    def _put_on_record(self) -> None:
        delivered, self.delivered = self.delivered, []
        now = self._read_clock()
        for env, delivery in delivered:
            heard = self._hear(env, delivery, now)
            if heard is not None:
                self._heard.append((env, heard))

    def _hand_over(self) -> None:
        told, self._heard = self._heard, []
        for env, heard in told:
            for listener in self._listeners.get(env.me, ()):
                listener(heard)

    def _hear(self, env: LiveEnv, delivery: Delivery, now: Nanos) -> Heard | None:
        if isinstance(delivery, CARRIERS):
            return self._open(env, delivery, now)
        assert isinstance(delivery, Notice), delivery
        self._note(env, delivery, now)
        return delivery

    def _open(self, env: LiveEnv, delivery: Carrier, now: Nanos) -> Batch | None:
        try:
            bundle = unpack_bundle(delivery.payload)
        except RemoteError as error:
            self.metrics.malformed += 1
            if self.recorder is not None:
                self.recorder.unreadable(now, env.me, delivery, str(error))
            return None
        if self.recorder is not None:
            self.recorder.delivered(now, env.me, delivery, bundle)
        times, metrics = bundle.times, self.metrics
        count = len(times)
        metrics.messages_delivered += count
        if count == 1:
            metrics.latency.record(now - times[0])
        else:
            step = max(1, count // SAMPLES)
            for submitted in times[::step]:
                metrics.latency.record(now - submitted, step)
        return Batch(delivery, bundle, now)

    def _note(self, env: LiveEnv, notice: Notice, now: Nanos) -> None:
        if isinstance(notice, Dropped):
            self.metrics.drops_notified += 1
        elif isinstance(notice, View):
            self.metrics.views += 1
            self.metrics.config = notice.config
        if self.recorder is not None:
            self.recorder.noticed(now, env.me, notice)
