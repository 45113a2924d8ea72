"""The order by tickets, broken inside: in its tickets, its rule of order, its switches and its views."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any

from ordercast.components.ticketing.configuration import Configuration
from ordercast.components.ticketing.issuer import Issuer
from ordercast.components.ticketing.messages import DataMessage, Key, Ticket
from ordercast.components.ticketing.modes import ModeEvent
from ordercast.components.ticketing.ordering import Ordered, Ordering
from ordercast.core import Env, NodeId, Plan
from ordercast.core.plan import Factory
from ordercast.scenario.faults import Crash, FaultSpec
from ordercast.scenario.spec import NetworkSpec, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.sim.mutant import Mutant, calm

Alter = Callable[[Any], None]
"""Breaks a member."""

MEMBERS = tuple(range(6))
SENDERS = (3, 4, 5)
CULPRIT: NodeId = 1
CRASH = (Crash(at_ms=30, host=5),)


def broken(alter: Alter, nodes: tuple[NodeId, ...], plan: Plan) -> Plan:
    """The plan with some members broken."""

    def changed(make: Factory) -> Factory:
        def factory(env: Env) -> Any:
            member = make(env)
            alter(member)
            return member

        return factory

    return replace(
        plan,
        nodes=tuple(
            replace(node, factory=changed(node.factory)) if node.id in nodes else node for node in plan.nodes
        ),
    )


def run_broken(
    protocol: str,
    alter: Alter,
    nodes: tuple[NodeId, ...],
    faults: tuple[FaultSpec, ...],
    options: dict[str, object],
    seed: int,
) -> Run:
    """Three receivers and three senders, all members, with some of them broken."""
    scenario = calm(
        protocol,
        seed,
        fault=faults,
        options=options,
        network=NetworkSpec(latency=UniformSpec(50, 4000)),
        workload=WorkloadSpec(messages=150, rate_per_s=300),
    )
    return simulate(scenario, broken(alter, nodes, scenario.plan()))


def with_ordering(kind: type[Ordering], member: Any) -> None:
    """Order in another way; the state of a newcomer is of the same kind."""
    member.ordering = kind()


# Tickets


def same_number(member: Any) -> None:
    """Issues every number twice."""
    last = [0, 0]

    class Stuck(type(member.clock)):  # type: ignore[misc]
        __slots__ = ()

        def issue(self, now: int) -> int:
            last[0] += 1
            if last[0] % 2:
                last[1] = super().issue(now)
            return last[1]

    member.clock.__class__ = Stuck


class Keeping(Ordering):
    """Keeps a message after it is ordered, and does not know that it was."""

    def _order(self, ticket: Ticket) -> Ordered:
        entry = self.waiting[ticket.key]
        ordered = super()._order(ticket)
        if isinstance(entry.message, DataMessage):
            self.waiting[ticket.key] = entry
        return ordered

    def _is_open(self, key: Key) -> bool:
        return True


def ordered_again(member: Any) -> None:
    """Assigns all its messages to another sequencer, those that are ordered too."""
    with_ordering(Keeping, member)
    member._ordered_count = lambda: 0


# The rule of order


class Hasty(Ordering):
    """Orders a ticket as soon as it comes."""

    def laggards(self, ticket: Ticket, me: NodeId, clock: int) -> Iterator[NodeId]:
        """Waits for nobody."""
        return iter(())


class Careless(Ordering):
    """Orders tickets at the end of a view as they come."""

    def close(self) -> list[Ordered]:
        """By the counts of their messages."""
        for place, ticket in enumerate(self.tickets):
            self.tickets[place] = ticket._replace(number=-ticket.number)
        return super().close()


# Switches


class Deserted(Configuration):
    """Lets the last active member go."""

    def switch(self, node: NodeId, active: bool) -> bool:
        """Whoever wants."""
        self.actives = tuple(other for other in self.actives if other != node) + ((node,) if active else ())
        return True


def all_leave(member: Any) -> None:
    """Wants to be passive at once, and lets the last active member go."""
    member.ordering.configuration = Deserted()
    start = member.on_start

    def on_start(saved: Any) -> None:
        start(saved)
        member._switch(ModeEvent.WANT_PASSIVE, tuple(range(6)))  # it relies on all, itself too
        member.conclude()

    member.on_start = on_start


class Unguarded(Ordering):
    """Orders messages of a sender that come after a later one of it."""

    def _is_open(self, key: Key) -> bool:
        return True


def fickle(member: Any) -> None:
    """Changes its sequencer with every message, although others are under way; nobody notices."""
    with_ordering(Unguarded, member)
    if member.env.me not in SENDERS:
        return
    make, turns = member._next_data, cycle((0, 1))

    def next_data() -> Any:
        member.sequencer = member.ordering.configuration.sequencer(next(turns))
        return make()

    member._next_data = next_data


class Trusting(Issuer):
    """Thinks that the tickets of an earlier view still count."""

    __slots__ = ()

    def forget(self) -> None:
        """Nothing is void."""
        self._unsent.clear()


def greedy(member: Any) -> None:
    """Does not issue tickets again in another view."""
    member.issuer.__class__ = Trusting


def _mutant(
    name: str,
    breaks: set[str],
    protocol: str,
    alter: Alter,
    nodes: tuple[NodeId, ...] = MEMBERS,
    faults: tuple[FaultSpec, ...] = (),
    also: frozenset[str] = frozenset(),
    culprit: NodeId | None = None,
    options: dict[str, object] | None = None,
) -> Mutant:
    run = partial(run_broken, protocol, alter, nodes, faults, options or {})
    return Mutant(name, frozenset(breaks), run, culprit, also)


LOST = frozenset({"agreement", "validity", "probe", "progress"})

TICKET_MUTANTS = [
    _mutant(
        "a ticket is issued twice",
        {"stamp-owner"},
        "token_site",
        same_number,
        (0,),
        also=frozenset({"fifo", "total-order"}),
    ),
    _mutant(
        "a message is ordered again after it was reassigned",
        {"integrity"},
        "token_site",
        ordered_again,
        faults=(Crash(at_ms=30, host=0),),
        also=frozenset({"total-order"}) | LOST,
    ),
    _mutant(
        "a member orders before all active members are past a ticket",
        {"total-order"},
        "symmetric",
        partial(with_ordering, Hasty),
        (CULPRIT,),
        also=frozenset({"stamp-order", "fifo"}),
        culprit=CULPRIT,
    ),
    _mutant(
        "a member orders the rest of a view in its own way",
        {"total-order"},
        "symmetric",
        partial(with_ordering, Careless),
        (CULPRIT,),
        CRASH,
        also=frozenset({"stamp-order", "stamp", "fifo", "view-synchrony"}) | LOST,
        culprit=CULPRIT,
    ),
    _mutant("the last active member leaves", {"protocol failed"}, "hybrid", all_leave, also=LOST),
    _mutant(
        "a sender changes its sequencer while messages are under way",
        {"fifo"},
        "static_hybrid",
        fickle,
        options={"active": [0, 1]},
    ),
    _mutant(
        "a member thinks that its tickets of an earlier view still count",
        {"validity"},
        "symmetric",
        greedy,
        SENDERS,
        (Crash(at_ms=30, host=2),),
        also=LOST,
    ),
]
