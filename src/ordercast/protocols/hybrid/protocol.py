"""Dynamic hybrid: members become active or passive as their rates and delays change (sections 5 and 6)."""

from random import Random

from ordercast.components.membership import ROLES
from ordercast.components.ticketing import (
    LIVE_OPTIONS,
    AdaptiveMember,
    AdaptiveOptions,
    MakeViews,
    Roles,
    Setting,
    member_plan,
    promises,
    vary_tickets,
)
from ordercast.core import (
    MILLISECOND,
    Deployment,
    Env,
    Extension,
    LocalError,
    NodeId,
    Options,
    Plan,
    Protocol,
)

NAME = "hybrid"


class HybridOptions(AdaptiveOptions, frozen=True):
    """Options of the dynamic hybrid protocol."""


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Receivers and senders are members; all begin as active, until they know rates and delays (section
    5.1)."""
    return extend(deployment, options, Extension())


def extend(deployment: Deployment, options: Options, extension: Extension) -> Plan:
    """The same, with members and senders that came later, and without those that were removed."""
    if not isinstance(options, HybridOptions):
        raise LocalError(f"{NAME} takes HybridOptions, not {type(options).__name__}")

    def choose(members: tuple[NodeId, ...]) -> Roles:
        return Roles(actives=None)

    def make(env: Env, setting: Setting, make_views: MakeViews) -> AdaptiveMember:
        return AdaptiveMember(env, setting, options, make_views)

    return member_plan(NAME, deployment, extension, options, choose, make)


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm: members that decide often, and on few samples."""
    return vary_tickets(rng) | {
        "probe_ns": rng.choice((2, 10, 100)) * MILLISECOND,
        "decide_ns": rng.choice((1, 10, 50)) * MILLISECOND,
        "threshold": rng.choice((0.0, 0.2)),
        "detector": rng.choice(("mean-shift", "ewma")),
        "samples": rng.choice((1, 2, 5)),
    }


PROTOCOL = Protocol(
    name=NAME,
    summary="Each member orders its own messages or has a sequencer, whichever is faster for it now.",
    paper="Hybrid protocol (ICDCS 1996)",
    guarantees=promises(HybridOptions()),
    options=HybridOptions,
    deploy=deploy,
    roles=ROLES,
    newcomers=ROLES,
    extend=extend,
    vary=vary,
    live={**LIVE_OPTIONS, "decide_ns": 1000 * MILLISECOND},
)
