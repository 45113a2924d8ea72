"""The small runs of HydraPaxos of which all interleavings are explored: three replicas and two sequencers.

Each packet may arrive at any time or never, so replicas miss calls and agree on what becomes of them, while
another replica begins a view, or while a sequencer is removed. The configuration service is one replica, for
which consensus is immediate.

A witness stands for all clients. It gets every reply at once and forgets none, so it finds every answer that
some client could find in some order of these replies, and the order need not be explored.
"""

from collections.abc import Mapping
from dataclasses import replace

from ordercast.components.consensus import ConsensusOptions
from ordercast.components.execution import CallOptions, pack_call
from ordercast.components.network_ordered import ReplicaOptions
from ordercast.components.network_ordered.gaps import GAPS
from ordercast.components.network_ordered.messages import Reply, ViewChangeRequest
from ordercast.core import (
    Deployment,
    Env,
    Explanation,
    Message,
    MessageId,
    NodeId,
    Plan,
    Process,
    Replied,
    ServiceType,
    Stamp,
    message_id,
)
from ordercast.core.bundle import pack_bundle
from ordercast.lab.model.explorer_case import Case
from ordercast.lab.model.explorer_paxos_properties import ADD, PaxosProperties
from ordercast.lab.model.explorer_world import Packet, Timer
from ordercast.protocols.hydra.messages import Request, Suspect
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.replication.hydra_paxos.protocol import PROTOCOL, HydraPaxosOptions
from ordercast.services.built_in import Counter

Quorum = tuple[MessageId, int, int, tuple[int, int]]
"""What equal replies have in common: the call, the view, the tag and the slot."""


class Witness(Process):
    """Takes every reply, and finds all answers that they make."""

    def __init__(self, env: Env, replicas: tuple[NodeId, ...]) -> None:
        super().__init__(env)
        self._replicas = replicas
        self._replies: dict[Quorum, dict[NodeId, Reply]] = {}
        self._found: set[tuple[MessageId, Stamp]] = set()

    def on_message(self, source: NodeId, message: Message) -> None:
        """Take a reply; tell each answer once."""
        if not isinstance(message, Reply):
            return
        quorum = (message.first, message.view, message.tag, message.slot)
        replies = self._replies.setdefault(quorum, {})
        replies.setdefault(source, message)
        self._replies = dict(sorted(self._replies.items()))  # the order of arrival does not matter
        leader = self._replicas[message.view % len(self._replicas)]
        answer = replies.get(leader)
        if answer is None or answer.results is None or 2 * len(replies) <= len(self._replicas):
            return
        stamp = Stamp(*answer.place) if answer.place else Stamp(0, 0)
        if (message.first, stamp) not in self._found:
            self._found.add((message.first, stamp))
            self.env.deliver(Replied(0, answer.results, stamp, leader))

    def explain(self) -> Explanation:
        """Nobody asks."""
        return Explanation({})


def _plan() -> Plan:
    network = HydraOptions(
        sequencers=2,
        flush="periodic",
        flush_ns=20,
        replicas=1,
        window=8,
        heartbeat_ns=4,
        retry_ns=4,
        patience_ns=0,
        route="hash",
        announce_ns=20,
        join_ns=20,
        suspect_ns=60,
        consensus=ConsensusOptions(heartbeat_ns=20, election_ns_min=100, election_ns_max=200, retry_ns=20),
    )
    options = HydraPaxosOptions(
        hydra=network,
        replicas=ReplicaOptions(ask_ns=0, gap_ns=10, sync_ns=20, silence_ns=100, view_ns=20),
        calls=CallOptions(retry_ns=40),
    )
    plan = PROTOCOL.deploy(Deployment(((0, 1, 2),), service=ServiceType.of(Counter).spec()), options)
    client = replace(plan.nodes[plan.senders[0]], factory=lambda env: Witness(env, plan.groups[0]))
    nodes = (client if node.id == client.id else node for node in plan.nodes)
    return replace(plan, nodes=tuple(nodes))


def case(
    name: str,
    shows: str,
    calls: tuple[int, ...],
    *,
    view: bool = False,
    gaps: Mapping[NodeId, int] | None = None,
    removed: int | None = None,
    flushes: tuple[int, ...] = (),
    losses: int = 1,
) -> Case:
    """A run with calls, each given to a sequencer, which are counted from 1. Those in `flushes` flush once.

    With `view`, replica 1 begins a view. `gaps` says which replicas lose patience with a gap, and how
    often. One sequencer may be `removed`.
    """
    plan = _plan()
    client = plan.senders[0]
    sequencers = dict(enumerate((node.id for node in plan.nodes if node.role == "sequencer"), 1))
    service = next(node.id for node in plan.nodes if node.role == "configuration")
    packets = [
        Packet(client, sequencers[sequencer], Request(sequencer, number, (0,), _call(client, number)))
        for number, sequencer in enumerate(calls, 1)
    ]
    if view:
        packets.append(Packet(2, 1, ViewChangeRequest(1)))
    if removed is not None:
        packets += [Packet(node, service, Suspect((removed,))) for node in (0, 2)]  # as many as are believed
    timers = {Timer(sequencers[sequencer], "flush"): 1 for sequencer in flushes}
    timers |= {Timer(node, GAPS): times for node, times in (gaps or {}).items()}
    return Case(
        name,
        shows,
        plan,
        PaxosProperties(plan),
        tuple(packets),
        prompt=(service, client),
        # Without questions from replicas a sequencer hears of others only that it is removed.
        leading=tuple(sequencers.values()),
        timers=timers,
        losses=losses,
    )


def _call(client: NodeId, number: int) -> bytes:
    first = message_id(client, number)
    return pack_call(message_id(client, 1), pack_bundle(first, [0], [ADD.pack((number,), {})]))


def quick() -> list[Case]:
    """The cases that take less than a minute together."""
    return [
        case("view", "2 calls, and a view change", (1, 1), view=True),
        case("gap", "2 calls, a gap that the leader asks for and gives up", (1, 1), gaps={0: 2}),
        case("gap-view", "2 calls, a gap, and a view change", (1, 1), gaps={0: 1}, view=True),
        case(
            "removal-view", "a call, its sequencer is removed, and a view change", (2,), removed=2, view=True
        ),
    ]


def deep() -> list[Case]:
    """Further cases, which take some minutes."""
    return [
        case("removal-calls-view", "2 calls, a removal, and a view change", (1, 2), removed=2, view=True),
        case("removal-flush", "2 calls, a removal, and a flush", (1, 2), removed=2, flushes=(1,)),
        case("flush-view", "2 calls, a flush, and a view change", (1, 1), flushes=(2,), view=True),
        case("gap-flush", "2 calls, a flush, and a gap", (1, 1), flushes=(2,), gaps={0: 1}),
        case(
            "removal-flush-view", "2 calls, a removal, a flush, and a view change", (1, 2),
            removed=2, flushes=(1,), view=True,
        ),
    ]  # fmt: skip
