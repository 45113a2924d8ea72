"""Replicas of HydraPaxos, driven by hand: two sequencers, a configuration service and a client that a test
plays itself.

A test stamps calls and says which replicas get them. Messages between replicas travel at once, unless the
test loses them. The service of the lab answers each call with all calls executed so far, so an answer shows
the whole log before it.
"""

from ordercast.components.execution import pack_call
from ordercast.components.network_ordered import NetworkReplica, ReplicaOptions, Replies
from ordercast.components.network_ordered.messages import (
    ReadReply,
    ReadRequest,
    Reply,
)
from ordercast.core import (
    MILLISECOND,
    Checkpoint,
    Delivered,
    Env,
    Message,
    NodeId,
    ServiceSpec,
    Stamp,
    message_id,
)
from ordercast.core.bundle import pack_bundle, unpack
from ordercast.protocols.hydra.messages import (
    Announce,
    Flush,
    Groupcast,
    Plans,
    Rebirth,
    Report,
    Revived,
    Step,
    Steps,
)
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.replica_ordering import HydraOrdering
from ordercast.testing import ProcessDriver, RecordingEnv
from tests.hand_driven import nothing
from tests.network_ordered.replicas import Replicas
from tests.story import Story

REPLICAS = (0, 1, 2)
SERVICE = (31, 32, 33)
CLIENT = 51
NETWORK = HydraOptions(flush="periodic", flush_ns=MILLISECOND, repair=False)
OPTIONS = ReplicaOptions(ask_ns=0, gap_ns=MILLISECOND)


class Lab(Replicas):
    """Replicas, and the rest of the world."""

    def __init__(
        self,
        *,
        durable: bool = False,
        options: ReplicaOptions = OPTIONS,
        groups: int = 1,
        ordering: type[HydraOrdering] = HydraOrdering,
        sequencers: tuple[int, ...] = (1, 2),
    ) -> None:
        super().__init__(1)
        self.durable = durable
        self.options = options
        self.groups = groups
        self.ordering = ordering
        self.initial = {sequencer: 20 + sequencer for sequencer in sequencers}
        self.numbers = dict.fromkeys(sequencers, 0)
        self.clock = 100
        self.steps: list[Step] = []
        self.names: dict[str, int] = {}
        self.crash_at: tuple[int, NodeId] | None = None
        """After so many messages this replica crashes."""
        self.crashed = False
        self.reports: list[tuple[NodeId, Report]] = []
        self.answers: dict[str, str] = {}
        """By call: the answer that the client has accepted."""
        self.delivered: dict[NodeId, list[str]] = {node: [] for node in REPLICAS}
        self.checkpoints: dict[NodeId, list[Checkpoint]] = {node: [] for node in REPLICAS}
        self._replies = Replies(0, REPLICAS, self._settle)
        for node in REPLICAS:
            self.start(node)

    # Replicas

    def start(self, node: NodeId, *, forgot: bool = False) -> None:
        """Start a replica, with what is on its disk."""

        def make(env: Env) -> NetworkReplica:
            return NetworkReplica(
                env,
                0,
                REPLICAS,
                ServiceSpec("story", Story),
                lambda env, owner: self.ordering(
                    env, owner, 0, self.groups, self.initial, SERVICE, None, NETWORK
                ),
                self.options,
                durable=self.durable,
            )

        env = RecordingEnv(node, self.now)
        env.forgot = forgot
        self.drivers[node] = ProcessDriver(make, saved=self.disks.get(node, {}), env=env)
        self.pump()

    def crash(self, node: NodeId) -> None:
        """Stop a replica; its disk stays."""
        self.disks[node] = dict(self.drivers.pop(node).env.saved)

    def replica(self, node: NodeId) -> NetworkReplica:
        """A replica that is up."""
        process = self.drivers[node].process
        assert isinstance(process, NetworkReplica)
        return process

    def _crash_if_due(self, message: Message) -> None:
        if self.crash_at is not None and not self.crashed and len(self.sent) >= self.crash_at[0]:
            self.crashed = True
            self._note_delivered(self.crash_at[1])
            self.crash(self.crash_at[1])

    def _carry(self, source: NodeId, to: NodeId, message: Message) -> None:
        self.sent.append((source, to, message))
        if isinstance(message, Report) and to == SERVICE[0]:
            self.reports.append((source, message))
        if isinstance(message, Rebirth) and to == SERVICE[0]:
            self._revive(source, message)
        if self.lost(source, to, message):
            return
        if to in self.drivers:
            self.drivers[to].receive(source, message)
        elif isinstance(message, Reply | ReadReply) and self.name(message.first) not in self.answers:
            self._replies.take(source, message)

    def _revive(self, node: NodeId, message: Rebirth) -> None:
        step = Step("reborn", 0, node, self._config(), 0, ())
        self.steps.append(step)
        revived = Revived(message.life, len(self.steps), 0, 0, 0, 2, ((1, 21), (2, 22)))
        if not self.lost(SERVICE[0], node, revived):
            self.drivers[node].receive(SERVICE[0], revived)

    def _note_delivered(self, node: NodeId) -> None:
        for delivery in self.drivers[node].take_delivered():
            if isinstance(delivery, Delivered):
                self.delivered[node] += [item.payload.decode() for item in unpack(delivery.payload)]
            elif isinstance(delivery, Checkpoint):
                self.checkpoints[node].append(delivery)

    def wait_ms(self, duration: int) -> None:
        """Let milliseconds pass; the sequencers flush meanwhile."""
        for _ in range(duration):
            self.wait(MILLISECOND)
            self.flush()

    # The network

    def stamp(self, sequencer: int, name: str, clock: int | None = None) -> Groupcast:
        """Stamp a call; the same name is the same call."""
        first = self.names.setdefault(name, message_id(CLIENT, len(self.names) + 1))
        self.clock = max(self.clock + 10, clock or 0)
        self.numbers[sequencer] += 1
        call = pack_call(0, pack_bundle(first, [0], [name.encode()]))
        numbers = (self.numbers[sequencer],)
        return Groupcast(sequencer, clock or self.clock, (0,), numbers, CLIENT, call)

    def give(self, packet: Groupcast, *nodes: NodeId) -> None:
        """Let a packet come to some replicas, or to all."""
        for node in nodes or tuple(self.drivers):
            if node in self.drivers:
                self.drivers[node].receive(20 + packet.sequencer, packet)
        self.pump()

    def call(self, name: str, *nodes: NodeId, sequencer: int = 1) -> Groupcast:
        """Stamp a call and give it to replicas; the sequencers flush."""
        packet = self.stamp(sequencer, name)
        self.give(packet, *nodes)
        self.flush()
        return packet

    def flush(self, *nodes: NodeId, only: tuple[int, ...] = ()) -> None:
        """Let the sequencers tell their clock and last numbers."""
        self.clock += 10
        removed = {step.sequencer for step in self.steps if step.change == "removed"}
        for sequencer in only or sorted(set(self.numbers) - removed):
            numbers = (self.numbers[sequencer],) + (0,) * (self.groups - 1)
            for node in nodes or tuple(self.drivers):
                if node in self.drivers:
                    flush = Flush(sequencer, self.clock, numbers)
                    self.drivers[node].receive(20 + sequencer, flush)
        self.pump()

    # The service

    def plan(self, change: str, sequencer: int, *nodes: NodeId) -> None:
        """Plan a step."""
        plans = Plans("added" if change == "added" else "removed", sequencer, 20 + sequencer)
        self._announce(Announce(len(self.steps), self._active(), plans, None), nodes)

    def decide(
        self, change: str, sequencer: int, clock: int, number: int, *nodes: NodeId, others: int = 0
    ) -> None:
        """Decide on a step, and tell some replicas."""
        assert change in ("added", "removed")
        numbers = (number,) + (others,) * (self.groups - 1)
        kind = "added" if change == "added" else "removed"
        self.steps.append(Step(kind, sequencer, 20 + sequencer, self._config() + 1, clock, numbers))  # type: ignore[arg-type]
        if change == "added":
            self.numbers.setdefault(sequencer, number)
        self.tell(*nodes)

    def _config(self) -> int:
        """The configuration after all steps; a rebirth does not make one."""
        return self.steps[-1].config if self.steps else 0

    def _active(self) -> tuple[tuple[int, NodeId], ...]:
        """The sequencers after all steps."""
        active = set(self.initial)
        for step in self.steps:
            if step.change == "added":
                active.add(step.sequencer)
            elif step.change == "removed":
                active.discard(step.sequencer)
        return tuple((sequencer, 20 + sequencer) for sequencer in sorted(active))

    def tell(self, *nodes: NodeId) -> None:
        """Tell replicas of the last step."""
        latest = self.steps[-1] if self.steps else None
        self._announce(Announce(len(self.steps), self._active(), None, latest), nodes)

    def tell_all(self) -> None:
        """Tell all replicas of all steps."""
        for node in tuple(self.drivers):
            self.drivers[node].receive(SERVICE[0], Steps(0, tuple(self.steps)))
        self.pump()

    def _announce(self, message: Announce, nodes: tuple[NodeId, ...]) -> None:
        for node in nodes or tuple(self.drivers):
            if node in self.drivers:
                self.drivers[node].receive(SERVICE[0], message)
        self.pump()

    # The client

    def _settle(self, first: int, results: bytes, stamp: Stamp | None, replica: NodeId) -> bool:
        self.answers[self.name(first)] = unpack(results)[0].payload[1:].decode()
        return True

    def name(self, first: int) -> str:
        """The name of a call."""
        return next(name for name, known in self.names.items() if known == first)

    def read(self, name: str, *nodes: NodeId) -> None:
        """Read past the log."""
        first = self.names.setdefault(name, message_id(CLIENT, len(self.names) + 1))
        call = pack_call(0, pack_bundle(first, [0], [b""]), read=True)
        for node in nodes or tuple(self.drivers):
            self.drivers[node].receive(CLIENT, ReadRequest(call))
        self.pump()

    # What a test looks at

    def log(self, node: NodeId) -> list[str]:
        """The calls in a replica's log, from the beginning."""
        told = self.replica(node).ledger
        executed = told.executor._machine
        assert isinstance(executed, Story)
        rest = self.replica(node).log.entries[told.executed :]
        names = [name.decode() for name in executed.told]
        return names + [self._call_name(entry.payload) for entry in rest]

    def _call_name(self, payload: bytes) -> str:
        return unpack(payload[9:])[0].payload.decode()

    def leader(self) -> NodeId:
        """The leader of the highest view."""
        return max(map(self.replica, self.drivers), key=lambda one: one.view).leader

    def check(self) -> None:
        """What holds at all times: answers are prefixes of the delivered order, deliveries agree."""
        order = max(self.delivered.values(), key=len)
        for node, told in self.delivered.items():
            restored = any(one.restored for one in self.checkpoints[node])
            assert restored or told == order[: len(told)], f"node {node} delivered {told}, others {order}"
        for name, answer in self.answers.items():
            if name in order:
                expected = " ".join(order[: order.index(name) + 1])
                assert answer == expected, f"{name} was answered '{answer}', and the order is '{expected}'"
        states: dict[Stamp, int | None] = {}
        for found in self.checkpoints.values():
            for one in found:
                assert states.setdefault(one.stamp, one.digest) == one.digest, "states differ"

    def finish(self, *names: str) -> None:
        """Let everything settle; each of these calls was answered, and is delivered everywhere once."""
        self.lost = nothing
        self.tell_all()
        self.wait_ms(120)
        self.check()
        for node in self.drivers:
            log = self.log(node)
            assert len(set(log)) == len(log), f"node {node} executed a call twice: {log}"
            for name in names:
                assert name in log, f"node {node} has {log}, without {name}"
        logs = {tuple(self.log(node)) for node in self.drivers}
        assert len(logs) == 1, f"logs differ: {logs}"
        for name in self.answers:
            if not name.startswith("read"):
                assert name in next(iter(logs)), f"{name} was answered, but is lost"
