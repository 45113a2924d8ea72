"""Two shards of HydraTxn, driven by hand: six replicas, a coordinator, and a network that a test plays.

A test stamps calls and says which replicas get them. All other messages travel at once, unless the test loses
them.
"""

from collections import defaultdict
from collections.abc import Callable
from functools import partial

from ordercast.components.cross_shard import MESSAGES, FailureCoordinator, ShardReplica
from ordercast.components.execution import pack_call
from ordercast.components.network_ordered import ReplicaOptions, Replies
from ordercast.components.network_ordered.messages import Reply
from ordercast.core import (
    MILLISECOND,
    Delivered,
    Env,
    GroupId,
    Message,
    NodeId,
    Process,
    Stamp,
    message_id,
)
from ordercast.core.bundle import pack_bundle, unpack
from ordercast.protocols.hydra.messages import Announce, Flush, Groupcast, Plans, Step, Steps
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.shard_ordering import HydraShardOrdering
from ordercast.protocols.hydra.shards import make_shard_replica
from ordercast.testing import ProcessDriver, RecordingEnv
from ordercast.transactions.eris.protocol import ErisOptions
from ordercast.transactions.hydra_txn.protocol import HydraTxnOptions, _make_coordinator
from tests.hand_driven import nothing, require
from tests.network_ordered.replicas import Replicas

SHARDS = {0: (0, 1, 2), 1: (3, 4, 5)}
REPLICAS = (*SHARDS[0], *SHARDS[1])
SERVICE = (31, 32, 33)
CLIENT = 51
NETWORK = HydraOptions(flush="periodic", flush_ns=MILLISECOND, repair=False, resend=False)
OPTIONS = HydraTxnOptions(hydra=NETWORK, replicas=ReplicaOptions(ask_ns=0, gap_ns=MILLISECOND))


class Lab(Replicas):
    """The shards, and the rest of the world."""

    counted: tuple[type[Message], ...] = MESSAGES
    """The messages after so many of which a process crashes."""
    surviving = 2
    """The sequencer that is there at the end."""

    def __init__(self, *, coordinators: int = 1, options: HydraTxnOptions = OPTIONS) -> None:
        super().__init__(1)
        self.options = options
        self.coordinators = tuple(range(41, 41 + coordinators))
        self.initial = {1: 21, 2: 22}
        self.clock = 100
        self.numbers: dict[int, list[int]] = {1: [0, 0], 2: [0, 0]}
        """By sequencer: the last number in each shard."""
        self.steps: list[Step] = []
        self.names: dict[str, int] = {}
        self.groups: dict[str, tuple[GroupId, ...]] = {}
        self.answered: defaultdict[str, set[GroupId]] = defaultdict(set)
        """By call: the shards whose answers the client has."""
        self.delivered: dict[NodeId, list[str]] = {node: [] for node in REPLICAS}
        self.crash_at: tuple[int, NodeId] | None = None
        """After so many messages of the coordinator, or to it, this process crashes."""
        self._replies = {
            group: Replies(group, nodes, self._settle_in(group)) for group, nodes in SHARDS.items()
        }
        for group, nodes in SHARDS.items():
            for node in nodes:
                self._start(node, self._replica_of(group))
        for node in self.coordinators:
            self._start(node, self._coordinator)
        self.wait(150 * MILLISECOND)  # until the coordinator has a leader
        self.sent.clear()

    # Processes

    def _replica_of(self, group: GroupId) -> Callable[[Env], Process]:
        return self._replica_with(HydraShardOrdering, group, self.initial, NETWORK, self.options)

    def _replica_with(
        self,
        order: type[HydraShardOrdering],
        group: GroupId,
        initial: dict[int, NodeId],
        network: HydraOptions,
        own: HydraTxnOptions | ErisOptions,
    ) -> Callable[[Env], Process]:
        return partial(
            make_shard_replica,
            group=group,
            members=dict(SHARDS),
            initial=initial,
            service=SERVICE,
            aggregator=None,
            options=network,
            order=order,
            coordinators=self.coordinators,
            spec=None,
            replicas=own.replicas,
            coordinator=own.coordinator,
            durable=own.durable,
        )

    def _coordinator(self, env: Env) -> FailureCoordinator:
        own = self.options.coordinator
        return _make_coordinator(env, dict(SHARDS), self.coordinators, SERVICE, NETWORK, own=own)

    def _start(self, node: NodeId, make: Callable[[Env], Process]) -> None:
        saved = self.disks.pop(node, {})
        self.drivers[node] = ProcessDriver(make, saved=saved, env=RecordingEnv(node, self.now, seed=node))
        self.pump()

    def crash(self, node: NodeId) -> None:
        """Stop a process; its disk stays."""
        self._note_delivered(node)
        self.disks[node] = dict(self.drivers.pop(node).env.saved)

    def restart(self, *nodes: NodeId) -> None:
        """Crash replicas all at once, and start them with what is on their disks."""
        for node in nodes:
            self.crash(node)
        for node in nodes:
            self._start(node, self._replica_of(node // 3))

    def replica(self, node: NodeId) -> ShardReplica:
        """A replica that is up."""
        process = self.drivers[node].process
        assert isinstance(process, ShardReplica)
        return process

    def chief(self) -> NodeId:
        """The leader of the coordinator."""
        for node in self.coordinators:
            process = self.drivers[node].process if node in self.drivers else None
            if isinstance(process, FailureCoordinator) and process._log.is_leader:
                return node
        raise AssertionError("the coordinator has no leader")

    # Messages and time

    def _crash_if_due(self, message: Message) -> None:
        if self.crash_at is None or not isinstance(message, self.counted):
            return
        left, node = self.crash_at[0] - 1, self.crash_at[1]
        self.crash_at = (left, node) if left else None
        if not left:
            self.crash(node)

    def _carry(self, source: NodeId, to: NodeId, message: Message) -> None:
        self.sent.append((source, to, message))
        if self.lost(source, to, message):
            return
        if to in self.drivers:
            self.drivers[to].receive(source, message)
        elif to == CLIENT and isinstance(message, Reply):
            self._replies[source // 3].take(source, message)

    def _settle_in(self, group: GroupId) -> Callable[[int, bytes, Stamp | None, NodeId], bool]:
        def settle(first: int, results: bytes, stamp: Stamp | None, replica: NodeId) -> bool:
            name = next(name for name, known in self.names.items() if known == first)
            self.answered[name].add(group)
            return True

        return settle

    def _note_delivered(self, node: NodeId) -> None:
        for delivery in self.drivers[node].take_delivered():
            if isinstance(delivery, Delivered):
                self.delivered[node] += [item.payload.decode() for item in unpack(delivery.payload)]

    def wait_ms(self, duration: int, *nodes: NodeId) -> None:
        """Let milliseconds pass; the sequencers flush to these replicas meanwhile, or to all."""
        for _ in range(duration):
            self.wait(MILLISECOND)
            self.flush(*nodes)

    # The network

    def stamp(self, name: str, groups: tuple[GroupId, ...] = (0, 1), sequencer: int = 1) -> Groupcast:
        """Stamp a call; the same name is the same call."""
        first = self.names.setdefault(name, message_id(CLIENT, len(self.names) + 1))
        self.groups[name] = groups
        self.clock += 10
        for group in groups:
            self.numbers[sequencer][group] += 1
        numbers = tuple(self.numbers[sequencer][group] for group in groups)
        call = pack_call(0, pack_bundle(first, [0], [name.encode()]))
        return Groupcast(sequencer, self.clock, groups, numbers, CLIENT, call)

    def node_of(self, sequencer: int) -> NodeId:
        """Where a sequencer is."""
        return 20 + sequencer

    def give(self, packet: Groupcast, *nodes: NodeId) -> None:
        """Let a packet come to some replicas, or to all of its shards."""
        for node in nodes or [node for group in packet.groups for node in SHARDS[group]]:
            if node in self.drivers:
                self.drivers[node].receive(self.node_of(packet.sequencer), packet)
        self.pump()

    def call(self, name: str, groups: tuple[GroupId, ...] = (0, 1), sequencer: int = 1) -> Groupcast:
        """Stamp a call and give it to its shards; the sequencers flush."""
        packet = self.stamp(name, groups, sequencer)
        self.give(packet)
        self.flush()
        return packet

    def flush(self, *nodes: NodeId) -> None:
        """Let the sequencers tell their clock and last numbers."""
        self.clock += 10
        removed = {step.sequencer for step in self.steps}
        for sequencer in sorted(set(self.numbers) - removed):
            flush = Flush(sequencer, self.clock, tuple(self.numbers[sequencer]))
            for node in nodes or REPLICAS:
                if node in self.drivers:
                    self.drivers[node].receive(self.node_of(sequencer), flush)
        self.pump()

    # The service

    def plan_removal(self, sequencer: int, *nodes: NodeId) -> None:
        """Ask replicas for their reports."""
        plans = Plans("removed", sequencer, 20 + sequencer)
        self._tell(Announce(0, tuple(self.initial.items()), plans, None), nodes)

    def decide_removal(self, sequencer: int, clock: int, numbers: tuple[int, ...], *nodes: NodeId) -> None:
        """Decide that a sequencer is removed, and tell some replicas."""
        self.steps.append(Step("removed", sequencer, 20 + sequencer, 1, clock, numbers))
        self.tell_steps(*nodes)

    def tell_steps(self, *nodes: NodeId) -> None:
        """Tell replicas of all steps."""
        if self.steps:
            self._tell(Steps(0, tuple(self.steps)), nodes)

    def _tell(self, message: Message, nodes: tuple[NodeId, ...]) -> None:
        for node in nodes or REPLICAS:
            if node in self.drivers:
                self.drivers[node].receive(SERVICE[0], message)
        self.pump()

    # What a test looks at

    def order(self, group: GroupId) -> list[str]:
        """What a shard has delivered, as far as any of its replicas is."""
        return max((self.delivered[node] for node in SHARDS[group]), key=len)

    def check(self) -> None:
        """What holds at all times: replicas of a shard agree, shards have one order, nothing comes twice."""
        for group, nodes in SHARDS.items():
            order = self.order(group)
            require(len(set(order)) == len(order), f"shard {group} delivered a call twice: {order}")
            for node in nodes:
                told = self.delivered[node]
                require(told == order[: len(told)], f"node {node} delivered {told}, its shard {order}")
        common = set(self.order(0)) & set(self.order(1))
        orders = [[name for name in self.order(group) if name in common] for group in SHARDS]
        require(orders[0] == orders[1], f"shards have different orders: {orders}")

    def finish(self, *names: str, never: tuple[str, ...] = ()) -> None:
        """Let everything settle. Shards take all of a call or nothing, and what was answered is there; of the
        names given all are there, and none of the last."""
        self.lost = nothing
        self.tell_steps()
        self.call("the end", sequencer=self.surviving)
        self.wait_ms(200)
        self.check()
        for name, groups in self.groups.items():
            takers = {group for group in groups if name in self.order(group)}
            require(takers in (set(), set(groups)), f"{name} of {groups} was delivered in {takers} alone")
            require(self.answered[name] <= takers, f"{name} was answered, but is lost")
        for group in SHARDS:
            for node in SHARDS[group]:
                if node in self.drivers:
                    told = self.delivered[node]
                    require(told == self.order(group), f"node {node} stayed behind")
        for name in (*names, "the end"):
            for group in self.groups[name]:
                require(name in self.order(group), f"{name} is not in shard {group}: {self.order(group)}")
        for name in never:
            require(all(name not in self.order(group) for group in SHARDS), f"{name} was delivered")
