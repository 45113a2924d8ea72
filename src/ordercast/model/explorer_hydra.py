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

GROUPS = ((0,), (1,))
TOGETHER = ((0, 1),)


def _plan(groups: tuple[tuple[NodeId, ...], ...], sequencers: int, spares: int, flush: FlushPolicy) -> Plan:
    options = HydraOptions(
        sequencers=sequencers,
        spares=spares,
        flush=flush,
        flush_ns=20 if flush == "periodic" else 0,
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
    groups: tuple[tuple[NodeId, ...], ...] = GROUPS,
    first: int = 2,
    flush: FlushPolicy = "solicited",
    clocks: tuple[int, ...] = (0, 0, 0),
    removed: int | None = None,
    added: bool = False,
    jumps: Mapping[int, int] | None = None,
    timers: Mapping[tuple[int, str], int] | None = None,
    announces: int = 0,
    greeting: bool = False,
    losses: int = 1,
    copies: int = 0,
) -> Case:
    """A run with these messages, each given to a sequencer for some groups; sequencers count from 1."""
    plan = _plan(groups, first, int(added), flush)
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
    armed = {Timer(sequencers[s - 1], name): count for (s, name), count in (timers or {}).items()}
    if announces:
        armed[Timer(service, "announce")] = announces
    return Case(
        name,
        shows,
        plan,
        HydraProperties(plan, first, payloads, changes),
        tuple(Packet(*message) for message in messages),
        late=tuple(sequencers[first:]),
        deaf=plan.senders,
        prompt=(service,),
        # Only receivers that ask for flushes make sequencers wait for others.
        leading=tuple(sequencers[:first]) if flush == "periodic" else (),
        clocks=dict(zip(sequencers, clocks, strict=False)),
        timers=armed,
        always=tuple(Timer(node, "held") for node in sequencers),
        jumps=tuple(Jump(sequencers[s - 1], by) for s, by in (jumps or {}).items()),
        greeting=greeting,
        losses=losses,
        copies=copies,
    )


BOTH, LEFT, RIGHT = (0, 1), (0,), (1,)
FIRST_FLUSH = {(1, "flush"): 1}
FLUSHES = {(1, "flush"): 1, (2, "flush"): 1}


def quick() -> list[Case]:
    """Less than a minute in all."""
    mixed = ((1, BOTH), (2, BOTH), (2, RIGHT))
    return [
        case("order-ties", "3 messages with equal clocks, flushes on request", mixed),
        case("order-skew", "3 messages, one clock ahead", mixed, clocks=(0, 5)),
        case(
            "order-jump", "3 messages, a clock jumps", ((1, BOTH), (2, LEFT), (2, RIGHT)),
            clocks=(0, 3), jumps={1: 3},
        ),
        case(
            "order-copies", "3 messages, periodic flushes, one packet comes twice", mixed,
            flush="periodic", timers=FIRST_FLUSH, copies=1,
        ),
        case(
            "removal", "3 messages, a sequencer that still sends is removed", mixed,
            removed=2, flush="periodic", timers=FIRST_FLUSH,
        ),
        case("removal-solicited", "2 messages, and the same", mixed[:2], removed=2),
        case(
            "removal-one-group", "3 messages to two receivers that both report",
            ((1, LEFT), (2, LEFT), (2, LEFT)), groups=TOGETHER, removed=2, flush="periodic",
            timers=FIRST_FLUSH,
        ),
        case(
            "addition", "2 messages, one of them of the sequencer that is added", mixed[:2],
            first=1, added=True, flush="periodic", timers=FIRST_FLUSH, clocks=(20, 0),
        ),
        case(
            "addition-three", "3 messages, two of them of the sequencer that is added",
            ((1, BOTH), (2, LEFT), (2, BOTH)), first=1, added=True, flush="periodic", clocks=(20, 0),
        ),
    ]  # fmt: skip


def deep() -> list[Case]:
    """Some minutes more."""
    mixed = ((1, BOTH), (2, BOTH), (2, RIGHT))
    return [
        case("order-losses", "3 messages, two packets lost", mixed, losses=2),
        case(
            "removal-flushes", "3 messages, both sequencers flush", mixed,
            removed=2, flush="periodic", timers=FLUSHES,
        ),
        case(
            "removal-four", "2 messages of each sequencer", (*mixed, (1, LEFT)),
            removed=2, flush="periodic", timers=FIRST_FLUSH, losses=2,
        ),
        case(
            "removal-copies", "3 messages, one packet comes twice", mixed,
            removed=2, flush="periodic", timers=FIRST_FLUSH, copies=1,
        ),
        case(
            "addition-early", "2 messages; the first flush of the one that is added is under way",
            mixed[:2], first=1, added=True, flush="periodic", clocks=(20, 0), greeting=True,
        ),
        case(
            "addition-one-group", "3 messages to two receivers that both report",
            ((1, LEFT), (2, LEFT), (1, LEFT)), groups=TOGETHER, first=1, added=True, flush="periodic",
            clocks=(20, 0),
        ),
        case(
            "addition-solicited", "2 messages, and flushes on request", mixed[:2],
            first=1, added=True, clocks=(20, 0),
        ),
        case(
            "addition-flush", "3 messages, two of them of the sequencer that is added, and a flush",
            ((1, BOTH), (2, LEFT), (2, BOTH)), first=1, added=True, flush="periodic", timers=FIRST_FLUSH,
            clocks=(20, 0),
        ),
    ]  # fmt: skip
