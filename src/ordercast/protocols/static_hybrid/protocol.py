"""Static hybrid: some members are active, the others have a sequencer, and that stays so (section 4)."""

from random import Random

from ordercast.components.membership import ROLES
from ordercast.components.ticketing import LIVE_OPTIONS, TicketMember, member_plan, promises, vary_tickets
from ordercast.core import Deployment, Extension, LocalError, Options, Plan, Protocol
from ordercast.protocols.static_hybrid.options import StaticHybridOptions

NAME = "static_hybrid"


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Receivers and senders are members, with the roles of the options."""
    return extend(deployment, options, Extension())


def extend(deployment: Deployment, options: Options, extension: Extension) -> Plan:
    """The same, with members and senders that came later, and without those that were removed."""
    if not isinstance(options, StaticHybridOptions):
        raise LocalError(f"{NAME} takes StaticHybridOptions, not {type(options).__name__}")
    return member_plan(NAME, deployment, extension, options, options.roles, TicketMember)


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm; every deployment has at least two nodes."""
    return vary_tickets(rng) | {"active": rng.choice(([0], [1], [0, 1]))}


PROTOCOL = Protocol(
    name=NAME,
    summary="Some members order their own messages, the others have a sequencer; roles do not change.",
    paper="Hybrid protocol (ICDCS 1996), section 4",
    guarantees=promises(StaticHybridOptions()),
    options=StaticHybridOptions,
    deploy=deploy,
    roles=ROLES,
    newcomers=ROLES,
    extend=extend,
    vary=vary,
    live=LIVE_OPTIONS,
)
