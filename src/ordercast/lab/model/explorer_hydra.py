"""The small runs of Hydra of which all interleavings are explored.

Two groups of one receiver, or one group of two that must both report, so that the properties are exact. The
configuration service is one replica, for which consensus is immediate; consensus has its own tests.
"""

from collections.abc import Mapping

from ordercast.components.consensus import ConsensusOptions
from ordercast.core import Deployment, Groups, NodeId, Plan
from ordercast.lab.model.explorer_case import Case
from ordercast.lab.model.explorer_hydra_properties import HydraProperties
from ordercast.lab.model.explorer_world import Jump, Packet, Submission, Timer
from ordercast.protocols.hydra.keeper import KEEP
from ordercast.protocols.hydra.messages import Request, Suspect
from ordercast.protocols.hydra.options import FlushPolicy, HydraOptions
from ordercast.protocols.hydra.protocol import PROTOCOL
from ordercast.protocols.hydra.repair import REPAIR

GROUPS = ((0,), (1,))
TOGETHER = ((0, 1),)


def _plan(
    groups: tuple[tuple[NodeId, ...], ...],
    sequencers: int,
    spares: int,
    flush: FlushPolicy,
    *,
    repair: bool,
    resend: bool,
) -> Plan:
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
        patience_ns=0,
        repair=repair,
        resend=resend,
        route="hash",  # a sender's choice must not depend on luck
        ack_ns=5,
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
    flushes: Mapping[int, int] | None = None,
    clocks: tuple[int, ...] = (0, 0, 0),
    jumps: Mapping[int, int] | None = None,
    ticks: int = 0,
    removed: int | None = None,
    rejoins: bool = False,
    added: bool = False,
    greeting: bool = False,
    losses: int = 1,
    copies: int = 0,
    repair: bool = False,
    kept: tuple[Groups, ...] = (),
    repeats: int = 0,
) -> Case:
    """A run with these messages, each given to a sequencer, which are counted from 1, for some groups.

    There are `first` sequencers at the beginning. Those in `flushes` flush so often, and those in `jumps`
    have clocks that jump so far. Receivers look for gaps `ticks` times. One sequencer may be `removed`, and
    then `rejoins` under the next number; and one more may be `added`. With `repair`, receivers ask each other
    and the sequencers for missing packets. A sender keeps further messages, to the groups in `kept`: it gives
    them to a sequencer by a hash of the groups (BOTH and RIGHT to 2, LEFT to 1), and sends them again
    if it is removed. It repeats `repeats` times what it says and asks without an answer.
    """
    plan = _plan(groups, first, int(added), flush, repair=repair, resend=bool(kept))
    sequencers = [node.id for node in plan.nodes if node.role == "sequencer"]
    service = next(node.id for node in plan.nodes if node.role == "configuration")
    nodes = dict(enumerate(sequencers, 1))
    timers = {Timer(nodes[sequencer], "flush"): count for sequencer, count in (flushes or {}).items()}
    if repair:
        timers |= {Timer(node.id, REPAIR): 1 for node in plan.nodes if node.role == "receiver"}
    if ticks:
        timers |= {Timer(node.id, "tick"): ticks for node in plan.nodes if node.role == "receiver"}
    if repeats:
        timers[Timer(plan.senders[0], KEEP)] = repeats
    packets: list[Packet] = []
    leading = set(sequencers[:first]) if flush == "periodic" and not repair and not kept else set()
    if removed is not None:
        packets.append(Packet(0, service, Suspect((removed,))))
        if rejoins:
            nodes[len(sequencers) + 1] = nodes[removed]
            timers[Timer(nodes[removed], "join")] = 1
            leading -= {nodes[removed]}
    for number, (sequencer, to) in enumerate(requests, 1):
        message = Request(sequencer, number, to, f"m{number}".encode())
        packets.append(Packet(plan.senders[0], nodes[sequencer], message))
    sent = {f"k{number}".encode(): to for number, to in enumerate(kept, 1)}
    changes = (removed is not None) + rejoins + added
    payloads = [packet.message.payload for packet in packets if isinstance(packet.message, Request)]
    return Case(
        name,
        shows,
        plan,
        HydraProperties(plan, first, (*payloads, *sent), changes, sent),
        tuple(packets),
        submissions=tuple(Submission(plan.senders[0], to, payload) for payload, to in sent.items()),
        late=tuple(sequencers[first:]),
        greeting=greeting,
        deaf=() if kept else plan.senders,
        # What the service makes of reports does not depend on their order. Only where a sequencer rejoins may
        # a receiver also ask it for steps that it missed; those questions then never come late.
        prompt=(service,),
        # Without questions from receivers a sequencer hears of others only that it is removed. Whatever it
        # would then have left unsaid may as well be lost on the way.
        leading=tuple(sorted(leading)),
        clocks=dict(zip(sequencers, clocks, strict=False)),
        timers=timers,
        always=tuple(Timer(node, "held") for node in sequencers),
        jumps=tuple(Jump(nodes[sequencer], by) for sequencer, by in (jumps or {}).items()),
        losses=losses,
        copies=copies,
    )


BOTH, LEFT, RIGHT = (0, 1), (0,), (1,)
FIRST = {1: 1}


def quick() -> list[Case]:
    """The cases that take less than a minute together."""
    mixed = ((1, BOTH), (2, BOTH), (2, RIGHT))
    return [
        case("order-ties", "3 messages with equal clocks, flushes on request", mixed),
        case("order-skew", "3 messages, one clock ahead", mixed, clocks=(0, 5)),
        case(
            "order-jump", "3 messages, a clock jumps", ((1, BOTH), (2, LEFT), (2, RIGHT)),
            clocks=(0, 3), jumps={1: 3},
        ),
        case(
            "order-copies", "3 messages, periodic flushes, one packet is duplicated", mixed,
            flush="periodic", flushes=FIRST, copies=1,
        ),
        case(
            "order-ticks", "3 messages, a flush, and receivers that look for gaps", mixed,
            flush="periodic", flushes=FIRST, ticks=1,
        ),
        case(
            "removal", "3 messages, removal of a sequencer that still sends", mixed,
            removed=2, flush="periodic", flushes=FIRST,
        ),
        case(
            "repair", "2 messages, a flush; receivers ask for missing packets", mixed[:2],
            flush="periodic", flushes=FIRST, repair=True,
        ),
        case(
            "resend", "a sender keeps a message and sends it again through another sequencer", (),
            kept=(BOTH,), removed=2, flush="periodic", flushes=FIRST,
        ),
        case("removal-solicited", "2 messages, removal, flushes on request", mixed[:2], removed=2),
        case(
            "removal-one-group", "3 messages to two receivers that both report",
            ((1, LEFT), (2, LEFT), (2, LEFT)), groups=TOGETHER, removed=2, flush="periodic",
            flushes=FIRST,
        ),
        case(
            "addition", "2 messages, one of them from the added sequencer", mixed[:2],
            first=1, added=True, flush="periodic", flushes=FIRST, clocks=(20, 0),
        ),
        case(
            "addition-three", "3 messages, two of them from the added sequencer",
            ((1, BOTH), (2, LEFT), (2, BOTH)), first=1, added=True, flush="periodic", clocks=(20, 0),
        ),
    ]  # fmt: skip


def deep() -> list[Case]:
    """Further cases, which take some minutes."""
    mixed = ((1, BOTH), (2, BOTH), (2, RIGHT))
    return [
        case("order-losses", "3 messages, two packets lost", mixed, losses=2),
        case(
            "repair-three", "3 messages, a flush; receivers ask for missing packets", mixed,
            flush="periodic", flushes=FIRST, repair=True,
        ),
        case(
            "repair-one-group", "2 messages, a flush; receivers ask each other too", ((1, LEFT), (1, LEFT)),
            groups=TOGETHER, first=1, flush="periodic", flushes=FIRST, repair=True,
        ),
        case(
            "repair-removal", "2 messages, removal; receivers ask each other for missing packets", mixed[:2],
            flush="periodic", removed=2, repair=True,
        ),
        case(
            "resend-unconfirmed", "a kept message is stamped, lost, and known to be missing", (),
            kept=(RIGHT,), removed=2, flush="periodic", flushes={1: 1, 2: 1}, clocks=(5, 0),
        ),
        case(
            "resend-repeats", "a sender repeats a kept message, or asks again what became of it", (),
            kept=(BOTH,), repeats=1, removed=2, flush="periodic", flushes=FIRST,
        ),
        case(
            "resend-copies", "a sender sends a kept message again, and one packet is duplicated", (),
            kept=(RIGHT,), removed=2, flush="periodic", flushes=FIRST, copies=1,
        ),
        case(
            "resend-order", "a message of the other sequencer beside one that is sent again", ((1, BOTH),),
            kept=(RIGHT,), removed=2, flush="periodic", flushes=FIRST,
        ),
        case(
            "resend-one-group", "a message to two receivers is sent again", (),
            kept=(LEFT,), groups=TOGETHER, removed=1, flush="periodic", flushes={2: 1},
        ),
        case(
            "removal-flushes", "3 messages, both sequencers flush", mixed,
            removed=2, flush="periodic", flushes={1: 1, 2: 1},
        ),
        case(
            "removal-four", "2 messages from each sequencer", (*mixed, (1, LEFT)),
            removed=2, flush="periodic", flushes=FIRST, losses=2,
        ),
        case(
            "removal-copies", "3 messages, one packet is duplicated", mixed,
            removed=2, flush="periodic", flushes=FIRST, copies=1,
        ),
        case(
            "addition-early", "2 messages; the first flush of the added sequencer is under way",
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
            "addition-flush", "3 messages, two of them from the added sequencer, and a flush",
            ((1, BOTH), (2, LEFT), (2, BOTH)), first=1, added=True, flush="periodic", flushes=FIRST,
            clocks=(20, 0),
        ),
        case(
            "removal-ticks", "3 messages, a flush, and receivers that look for gaps", mixed,
            removed=2, flush="periodic", flushes=FIRST, ticks=1,
        ),
        case(
            "rejoin", "2 messages; a removed sequencer comes back under a new number",
            ((1, BOTH), (3, BOTH)), removed=2, rejoins=True, flush="periodic", clocks=(200, 0),
        ),
        case(
            "rejoin-three", "3 messages, one of them from the sequencer before its removal",
            ((1, BOTH), (2, LEFT), (3, RIGHT)), removed=2, rejoins=True, flush="periodic", clocks=(200, 0),
        ),
    ]  # fmt: skip
