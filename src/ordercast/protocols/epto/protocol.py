"""EpTO as a user deploys it."""

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

import msgspec

from ordercast.components.sampling import MESSAGES as SAMPLING_MESSAGES
from ordercast.components.sampling import Cyclon, CyclonOptions, Sampler, Uniform
from ordercast.core import (
    SECOND,
    Agreement,
    Codec,
    Crashes,
    Deployment,
    Env,
    Extension,
    Fault,
    Gaps,
    GroupId,
    Guarantees,
    LocalError,
    Membership,
    Nanos,
    NewNode,
    Node,
    NodeId,
    Options,
    Order,
    Pace,
    Partition,
    Plan,
    Protocol,
)
from ordercast.protocols.epto.clocks import GlobalClock, LogicalClock
from ordercast.protocols.epto.messages import MESSAGES
from ordercast.protocols.epto.options import EptoOptions
from ordercast.protocols.epto.parameters import parameters
from ordercast.protocols.epto.peer import Peer, Setting
from ordercast.protocols.epto.stability import Stability
from ordercast.protocols.epto.views import AUTHORS_VIEW, any_peers, cyclon_options

PACE = 2.0
"""With rounds that are not in step, an event is relayed along the fastest way about twice in a round's time.
"""
TOLERATES = (
    Fault.LOSS,
    Fault.DUPLICATION,
    Fault.REORDERING,
    Fault.PARTITION,
    Fault.CRASH,
    Fault.AMNESIA,
    Fault.PAUSE,
    Fault.CLOCK,
    Fault.DISK,
)


def guarantees(options: EptoOptions) -> Guarantees:
    """What is promised: order without exception, agreement with a probability (Table 1 of the paper)."""
    return Guarantees(
        order=Order.ACROSS,
        agreement=Agreement.PROBABILISTIC,
        gaps=Gaps.SILENT,
        out_of_order=options.late == "tag",
        partition=Partition.EACH_SIDE_CONTINUES,
        crashes=Crashes.ANY,
        tolerates=(*TOLERATES, Fault.RESTART) if options.durable else TOLERATES,
        membership=Membership.SUBSCRIPTIONS,
    )


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Every receiver is a peer, and so is every sender; co-located, a receiver is the sender itself."""
    return extend(deployment, options, Extension())


def extend(deployment: Deployment, options: Options, extension: Extension) -> Plan:
    """The same, with peers and publishers that came later, and without those that were removed."""
    if not isinstance(options, EptoOptions):
        raise LocalError(f"epto takes EptoOptions, not {type(options).__name__}")
    receivers = deployment.receivers
    first = receivers if deployment.colocated else receivers + deployment.senders
    count = first + len(extension.added)
    groups = extension.members(dict(enumerate(deployment.groups)), first)
    resize = partial(_sized, options, groups)
    setting, stability = resize(count)
    cyclon = cyclon_options(options.sampling, max(1, setting.fanout), setting.round_ns, setting.jitter_ns)
    peers = extension.left(range(count)) if extension.removed else range(count)

    def make(env: Env) -> Peer:
        seed = env.rng.getrandbits(64)
        clock = LogicalClock() if options.clock == "logical" else GlobalClock(options.ahead_ns)
        sampler = partial(_sampler, options, cyclon, peers, seed)
        return Peer(env, setting, clock, sampler, stability, seed, resize)

    nodes = [
        Node(node, "peer" if node < receivers else "publisher", node // options.peers_per_host, make)
        for node in range(first)
    ]
    nodes += [Node(node, _role_of(new), node, make) for node, new in extension.nodes(first)]
    return Plan(
        "epto",
        guarantees(options),
        tuple(nodes),
        groups,
        _senders(deployment, extension, first),
        Codec((*MESSAGES, *SAMPLING_MESSAGES)),
        partial(pace, options, setting),
        removed=extension.removed,
        joiners=deployment.joiner_ids(),
    )


def _role_of(new: NewNode) -> str:
    """The role of a node that came later, if it fits its groups."""
    if new.role == "peer" and not new.groups:
        raise LocalError("epto: a new peer needs a group that it receives; a publisher only sends")
    if new.role == "publisher" and new.groups:
        raise LocalError("epto: a new publisher only sends; a peer receives groups")
    return new.role


def _senders(deployment: Deployment, extension: Extension, first: NodeId) -> tuple[NodeId, ...]:
    """The nodes that send: beside receivers, newcomers of both roles."""
    if deployment.colocated:
        senders = range(min(deployment.senders, deployment.receivers))
        later = [node for node, _ in extension.nodes(first)]
    else:
        senders = range(deployment.receivers, first)
        later = [node for node, new in extension.nodes(first) if new.role == "publisher"]
    return extension.left((*senders, *later))


def _sized(
    options: EptoOptions, groups: Mapping[GroupId, tuple[NodeId, ...]], count: int
) -> tuple[Setting, Stability]:
    """The settings of a peer among so many."""
    fanout, ttl = _by_lemmas(count, options)
    setting = Setting(
        fanout=fanout,
        ttl=ttl,
        round_ns=options.round_ns,
        jitter_ns=int(options.round_ns * options.jitter),
        window=options.window,
        events=options.events,
        peers=count,
        groups=groups,
        asks_time=options.clock == "logical",
        tags=options.late == "tag",
        memory=options.memory,
        durable=options.durable,
        ball_bytes=options.relay_bytes // max(1, fanout),
        together=options.rounds == "together",
    )
    stability = Stability(count, max(1, fanout), ttl, loss=options.loss, churn=options.churn, pace=PACE)
    return setting, stability


def pace(options: EptoOptions, setting: Setting, delay: Nanos) -> Pace | None:
    """An event is delivered when it is as old as its TTL; a newcomer needs that time too.

    Nothing is promised with fewer balls or rounds than the lemmas ask for, with rounds that are shorter than
    the latency, or where wrong clocks make events unbelievable. Neither is anything with Cyclon: newcomers
    whose contacts have lost their views too may know only each other for ever.
    """
    fanout, ttl = _by_lemmas(setting.peers, msgspec.structs.replace(options, fanout=0, ttl=0))
    enough = setting.fanout >= fanout and setting.ttl >= ttl and setting.round_ns > delay
    believed = options.clock == "logical" or options.ahead_ns >= SECOND
    everybody = options.sampling == "uniform" or setting.peers <= options.contacts
    if not (enough and believed and everybody):
        return None
    delivery = (setting.ttl + 4) * (setting.round_ns + setting.jitter_ns + delay)
    return Pace(2 * delivery, 4 * delivery)


def _by_lemmas(count: int, options: EptoOptions) -> tuple[int, int]:
    """K and TTL, as they are given or as the lemmas have them."""
    if options.fanout and options.ttl:
        return options.fanout, options.ttl
    advice = parameters(
        count,
        loss=options.loss,
        churn=options.churn,
        drift=options.drift,
        latency=options.round_ns,  # that balls take time costs a round (Lemma 6), however much it is
        clock=options.clock,
        target=options.target,
    )
    return options.fanout or advice.fanout, options.ttl or advice.ttl


def _sampler(
    options: EptoOptions, cyclon: CyclonOptions, peers: Sequence[NodeId], seed: int, env: Env
) -> Sampler:
    drawn = options.sampling == "cyclon-authors"
    contacts = AUTHORS_VIEW if drawn else options.contacts
    if options.sampling == "uniform" or len(peers) <= contacts:  # who knows everybody needs no view
        return Uniform(env, seed, peers)
    ids = range(1 + max(peers))
    known = any_peers(seed, env.me, contacts, len(ids)) if drawn else peers[:contacts]
    return Cyclon(env, seed, [node for node in known if node in peers], cyclon, ids)


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm: rounds far shorter than the latency too, and too few of them.

    "cyclon-authors" is not among them: its views have room for all peers of a swarm, as "uniform" has.
    """
    sampling = rng.choice(("uniform", "uniform", "cyclon"))
    # Cyclon shuffles once a round, whether or not there is something to relay: long rounds keep runs short.
    rounds = (5_000_000,) if sampling == "cyclon" else (200_000, 1_000_000, 5_000_000, 5_000_000)
    return {
        "clock": rng.choice(("logical", "global")),
        "round_ns": rng.choice(rounds),
        "fanout": rng.choice((0, 0, 0, 1, 2)),
        "ttl": rng.choice((0, 0, 0, 2, 5)),
        "jitter": rng.choice((0.0, 0.01, 0.3)),
        "late": rng.choice(("drop", "tag")),
        "memory": rng.choice((16, 1 << 16)),
        "window": rng.choice((2, 1024)),
        "relay_bytes": rng.choice((0, 2000)),
        "events": rng.choice((16, 1 << 18)),
        "ahead_ns": rng.choice((1_000_000, 10_000_000_000)),
        "durable": rng.random() < 0.5,
        "sampling": sampling,
        "contacts": rng.choice((1, 3)),
        "rounds": rng.choice(("apart", "apart", "together")),
    }


PROTOCOL = Protocol(
    name="epto",
    summary="Epidemic total order for many peers: order always, agreement with high probability.",
    paper="EpTO (Middleware 2015)",
    guarantees=guarantees(EptoOptions()),
    options=EptoOptions,
    deploy=deploy,
    roles=("peer", "publisher"),
    vary=vary,
    newcomers=("peer", "publisher"),
    extend=extend,
    with_programs={"durable": True},
    # Rounds far longer than a busy machine holds a process up, and balls that thirty peers on one can carry.
    live={"round_ns": 100_000_000, "relay_bytes": 1 << 20},
)
