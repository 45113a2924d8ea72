"""Two shards of Eris, driven by hand: the lab of HydraTxn with one sequencer at a time."""

from collections.abc import Callable

from ordercast.components.network_ordered import ReplicaOptions
from ordercast.core import MILLISECOND, Env, GroupId, NodeId, Process
from ordercast.protocols.hydra.messages import Announce, Flush, Groupcast, Report, Step, Steps
from ordercast.replication.nopaxos.session import SESSION_BITS
from ordercast.transactions.eris.coordinator import EpochCoordinator
from ordercast.transactions.eris.messages import EpochRequest
from ordercast.transactions.eris.ordering import EpochOrdering
from ordercast.transactions.eris.protocol import ErisOptions, _make_coordinator
from tests.hydra_txn.lab import REPLICAS, SERVICE, SHARDS, Lab

FIRST, SECOND = SHARDS[0], SHARDS[1]
OPTIONS = ErisOptions(replicas=ReplicaOptions(ask_ns=0, gap_ns=MILLISECOND))
DURABLE = ErisOptions(durable=True, replicas=OPTIONS.replicas)
ABOUT_EPOCHS = (EpochRequest, Report, Announce, Steps)
"""What replicas and the coordinator tell each other about epochs."""


class EpochLab(Lab):
    """The shards, their coordinator, and a network with one sequencer at a time."""

    counted = ABOUT_EPOCHS

    def __init__(self, *, coordinators: int = 1, options: ErisOptions = OPTIONS) -> None:
        self.own = options
        self.forgetful: set[NodeId] = set()
        """The replicas that have lost their memory: they deliver only what came after their return."""
        self.alive = {1}
        """The sequencers that flush."""
        self.told: tuple[NodeId, ...] = REPLICAS
        """The replicas that hear the controllers."""
        super().__init__(coordinators=coordinators)
        self.surviving = 1
        self.numbers = {1: [0, 0]}
        self.clocks = {1: 1 << SESSION_BITS}

    # Processes

    def _replica_of(self, group: GroupId) -> Callable[[Env], Process]:
        return self._replica_with(EpochOrdering, group, {1: 21}, self.own.network(), self.own)

    def _coordinator(self, env: Env) -> EpochCoordinator:
        groups: dict[GroupId, tuple[NodeId, ...]] = {**SHARDS}
        network = self.own.network()
        own = self.own.coordinator
        return _make_coordinator(env, groups, self.coordinators, SERVICE, network, own=own, first=21)

    def forget(self, node: NodeId) -> None:
        """Restart a replica that is not durable: it knows only that there was a life before."""
        self.restart(node)
        self.forgetful.add(node)
        self.delivered[node].clear()

    def resume(self, *nodes: NodeId) -> None:
        """Start coordinators that have crashed."""
        for node in nodes:
            self._start(node, self._coordinator)

    def ordering(self, node: NodeId) -> EpochOrdering:
        """The order at a replica."""
        ordering = self.replica(node).ordering
        assert isinstance(ordering, EpochOrdering)
        return ordering

    def epochs(self) -> list[int]:
        """The present epoch of each replica that is up."""
        return [self.ordering(node).epoch for node in REPLICAS if node in self.drivers]

    def coordinator(self, node: NodeId) -> EpochCoordinator:
        """A coordinator that is up."""
        process = self.drivers[node].process
        assert isinstance(process, EpochCoordinator)
        return process

    # The network

    def next_epoch(self, epoch: int, *nodes: NodeId, old_one_stays: bool = False) -> None:
        """Let the network have another sequencer; the controllers tell these replicas, or all."""
        self.surviving = epoch
        self.numbers[epoch] = [0, 0]
        self.clocks[epoch] = epoch << SESSION_BITS
        self.alive = {*self.alive, epoch} if old_one_stays else {epoch}
        self.told = nodes or REPLICAS
        self.announce()

    def announce(self) -> None:
        """Let the controllers tell who the sequencer is."""
        epoch, node = self.surviving, self.node_of(self.surviving)
        steps = 2 * (epoch - 1)
        latest = Step("added", epoch, node, steps, 0, (0, 0)) if steps else None
        news = Announce(steps, ((epoch, node),), None, latest)
        self._tell(news, self.told)

    def wait_ms(self, duration: int, *nodes: NodeId) -> None:
        """Let milliseconds pass; the sequencers flush meanwhile, and the controllers announce."""
        for passed in range(duration):
            self.wait(MILLISECOND)
            self.flush(*nodes)
            if passed % 20 == 19:
                self.announce()

    def node_of(self, sequencer: int) -> NodeId:
        """Where the sequencer of an epoch is: one of nine nodes."""
        return 21 + (sequencer - 1) % 9

    def stamp(self, name: str, groups: tuple[GroupId, ...] = (0, 1), sequencer: int = 1) -> Groupcast:
        """Stamp a call in an epoch."""
        self.clock = self.clocks[sequencer]
        packet = super().stamp(name, groups, sequencer)
        self.clocks[sequencer] = self.clock
        return packet

    def flush(self, *nodes: NodeId) -> None:
        """Let the sequencers that are alive tell their last numbers."""
        for sequencer in sorted(self.alive):
            self.clocks[sequencer] += 1
            flush = Flush(sequencer, self.clocks[sequencer], tuple(self.numbers[sequencer]))
            for node in nodes or REPLICAS:
                if node in self.drivers:
                    self.drivers[node].receive(self.node_of(sequencer), flush)
        self.pump()

    def finish(self, *names: str, never: tuple[str, ...] = ()) -> None:
        """Let everything settle in the last epoch."""
        self.told = REPLICAS
        self.lost = lambda source, to, message: False
        self.announce()
        self.wait_ms(200)
        for node in self.forgetful & self.drivers.keys():
            told, order = self.delivered[node], self.order(node // 3)
            self.delivered[node] = order[: order.index(told[0])] + told if told else list(order)
        super().finish(*names, never=never)
