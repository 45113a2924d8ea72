"""The small runs of Hydra of which all interleavings are explored.

Two groups of one receiver, or one group of two that must both report, so that the properties are exact. The
configuration service is one replica, for which consensus is immediate; consensus has its own tests.
"""

from collections.abc import Mapping

from ordercast.consensus import ConsensusOptions
from ordercast.core import Deployment, Message, NodeId, Plan
from ordercast.model.explorer_case import Case
from ordercast.model.explorer_hydra_properties import HydraProperties
from ordercast.model.explorer_world import Jump, Packet, Timer
from ordercast.protocols.hydra.messages import Request, Suspect
from ordercast.protocols.hydra.options import FlushPolicy, HydraOptions
from ordercast.protocols.hydra.protocol import PROTOCOL

SEQUENCERS = 2


def _plan(groups: tuple[tuple[NodeId, ...], ...], spares: int, flush: FlushPolicy) -> Plan:
    options = HydraOptions(
        sequencers=SEQUENCERS,
        spares=spares,
        flush=flush,
        flush_ns=2 if flush == "periodic" else 0,
        quorum="all",
        replicas=1,
        window=8,
        # Short times make small clocks, which are easier to read.
        heartbeat_ns=4,
        retry_ns=4,
        hold_ns=5,
        announce_ns=20,
        join_ns=20,
        suspect_ns=60,
        addition_ns=1000,
        consensus=ConsensusOptions(heartbeat_ns=20, election_ns_min=100, election_ns_max=200, retry_ns=20),
    )
    return PROTOCOL.deploy(Deployment(groups), options)


def case(
    name: str,
    shows: str,
    requests: tuple[tuple[int, tuple[int, ...]], ...],
    *,
    groups: tuple[tuple[NodeId, ...], ...] = ((0,), (1,)),
    flush: FlushPolicy = "solicited",
    clocks: tuple[int, ...] = (0, 0, 0),
    removed: int | None = None,
    added: bool = False,
    jumps: Mapping[int, int] | None = None,
    timers: Mapping[tuple[int, str], int] | None = None,
    losses: int = 1,
    copies: int = 0,
) -> Case:
    """A run with these messages, each given to a sequencer for some groups; sequencers count from 1."""
    plan = _plan(groups, int(added), flush)
    sequencers = [node.id for node in plan.nodes if node.role == "sequencer"]
    service = next(node.id for node in plan.nodes if node.role == "configuration")
    sender = plan.senders[0]
    messages: list[tuple[NodeId, NodeId, Message]] = [
        (sender, sequencers[sequencer - 1], Request(sequencer, number, to, f"m{number}".encode()))
        for number, (sequencer, to) in enumerate(requests, 1)
    ]
    if removed is not None:
        messages.append((0, service, Suspect((removed,))))
    payloads = [message.payload for _, _, message in messages if isinstance(message, Request)]
    changes = int(removed is not None) + int(added)
    return Case(
        name,
        shows,
        plan,
        HydraProperties(plan, SEQUENCERS, payloads, changes),
        tuple(Packet(*message) for message in messages),
        late=tuple(sequencers[SEQUENCERS:]),
        deaf=plan.senders,
        prompt=(service,),
        # Only receivers that ask for flushes make sequencers wait for others.
        leading=tuple(sequencers[:SEQUENCERS]) if flush == "periodic" else (),
        certain=tuple(Packet(*message) for message in messages if isinstance(message[2], Suspect)),
        clocks=dict(zip(sequencers, clocks, strict=False)),
        timers={Timer(sequencers[s - 1], name): count for (s, name), count in (timers or {}).items()},
        always=tuple(Timer(node, "held") for node in sequencers),
        jumps=tuple(Jump(sequencers[s - 1], by) for s, by in (jumps or {}).items()),
        losses=losses,
        copies=copies,
    )
