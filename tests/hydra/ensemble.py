"""Nine receivers and one configuration replica, with every packet between them carried by hand."""

from collections.abc import Iterable, Iterator

from ordercast.core import Message, NodeId
from ordercast.protocols.hydra.messages import Join, Suspect
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.service import ConfigurationReplica
from tests.hydra.lab import CLIENT, LEADER, MEMBERS, SEQUENCERS, Bench, ReceiverBench, receiver

EVERYONE = tuple(sorted(node for nodes in MEMBERS.values() for node in nodes))
GROUP_OF = {node: group for group, nodes in MEMBERS.items() for node in nodes}


class Ensemble:
    """Receivers of three groups, and a service of one replica that is its own majority."""

    def __init__(self, quorum: str = "majority", *, claimed: bool = True, resend: bool = False) -> None:
        options = HydraOptions(
            spares=1,
            flush="periodic",
            flush_ns=1_000_000,
            patience_ns=0,
            quorum="all" if quorum == "all" else "majority",
            replicas=1,
            addition_ns=1_000_000_000,
            repair=False,
            resend=resend,
        )
        self.receivers: dict[NodeId, ReceiverBench] = {
            node: receiver(options, me=node, group=GROUP_OF[node]) for node in EVERYONE
        }
        self.service = Bench(
            LEADER,
            lambda env: ConfigurationReplica(
                env, MEMBERS, SEQUENCERS, (LEADER,), EVERYONE, (CLIENT,), options
            ),
        )
        for node in SEQUENCERS.values() if claimed else ():
            self.service.receive(node, Join(node))
        self.service.pass_time(100_000_000)
        self.service.take_sent()
        self.told: dict[NodeId, list[str]] = {node: [] for node in EVERYONE}

    def hear(self, nodes: Iterable[NodeId], *texts: str) -> None:
        """Some receivers hear these."""
        for node in nodes:
            self.receivers[node].hears(*texts)

    def suspect(self, sequencer: int, nodes: Iterable[NodeId]) -> None:
        """Some receivers suspect a sequencer."""
        for node in nodes:
            self.service.receive(node, Suspect((sequencer,)))

    def exchange(self, without: Iterable[NodeId] = ()) -> None:
        """Carry packets between receivers and service until there are none; those of some are lost."""
        lost = frozenset(without)
        while packets := list(self._packets()):
            for source, to, message in packets:
                if source not in lost and to not in lost:
                    (self.service if to == LEADER else self.receivers[to]).receive(source, message)
        self._note()

    def reannounce(self, without: Iterable[NodeId] = ()) -> None:
        """The service says again where it stands."""
        self.service.pass_time(40_000_000)
        self.exchange(without)

    def given(self, node: NodeId) -> list[str]:
        """All that a receiver has delivered so far."""
        self._note()
        return self.told[node]

    def _note(self) -> None:
        for node, lab in self.receivers.items():
            self.told[node] += lab.delivered()

    def _packets(self) -> Iterator[tuple[NodeId, NodeId, Message]]:
        for source, lab in self.receivers.items():
            yield from ((source, to, message) for to, message in lab.take_sent() if to == LEADER)
        yield from ((LEADER, to, message) for to, message in self.service.take_sent() if to in self.receivers)
