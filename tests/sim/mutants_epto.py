"""EpTO, broken inside, in ways that an oracle sees: order and integrity hold without exception.

What is broken about dissemination and clocks makes holes, which no oracle condemns: those variants are in
`tests/epto/test_broken_spreading.py`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from ordercast.core import Delivered, Env, NodeId, Plan, Process, Stamp
from ordercast.core.plan import Factory
from ordercast.protocols.epto.memory import Memory
from ordercast.protocols.epto.messages import Event, Key
from ordercast.protocols.epto.ordering import START, Ordering
from ordercast.protocols.epto.peer import Peer
from ordercast.scenario.faults import Crash, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.paper.epto_printed import Printed
from tests.sim.mutant import Mutant
from tests.sim.mutants_atomic import ForgetfulEnv

CULPRIT: NodeId = 1
"""The peer that is broken, where only one is."""
PEERS = 5
TTL = 4
"""Too few rounds for these latencies: events come late, and of different ages."""

Alter = Callable[[Peer], None]


def scene(seed: int, options: dict[str, object], **changes: Any) -> Scenario:
    """Five peers that all broadcast, on a network that takes up to three rounds."""
    described: dict[str, Any] = {
        "receivers": PEERS,
        "senders": PEERS,
        "colocated": True,
        "options": {"ttl": TTL} | options,
        "network": NetworkSpec(latency=UniformSpec(100, 3000)),
        "workload": WorkloadSpec(messages=100, rate_per_s=400),
        "settle_ms": 50,
    }
    return Scenario(protocol="epto", seed=seed, **(described | changes))


def altered(plan: Plan, alter: Alter, nodes: Iterable[NodeId]) -> Plan:
    """A plan in which some peers are changed when they are made."""

    def changed(make: Factory) -> Factory:
        def factory(env: Env) -> Process:
            peer = make(env)
            assert isinstance(peer, Peer)
            alter(peer)
            return peer

        return factory

    chosen = set(nodes)
    return replace(
        plan,
        nodes=tuple(
            replace(node, factory=changed(node.factory)) if node.id in chosen else node for node in plan.nodes
        ),
    )


# The ordering component


class ByArrival(Ordering):
    """Of events with one timestamp, the first that came is the first."""

    def __init__(self, ttl: int) -> None:
        super().__init__(ttl)
        self.arrived: dict[Key, int] = {}
        self.number = count()

    def admit(self, key: Key, event: Event, ttl: int, round_number: int) -> bool:
        """Compare by another key: the timestamp, and when it came."""
        place = self.arrived.setdefault(key, next(self.number))
        return super().admit((key[0], place, 0), event, ttl, round_number)

    def stable(self, round_number: int) -> Iterator[tuple[Key, Event]]:
        """Give events their own keys back."""
        for _, event in super().stable(round_number):
            yield event.key, event


class Gullible(Ordering):
    """Takes events whose place has passed, again and again."""

    def admit(self, key: Key, event: Event, ttl: int, round_number: int) -> bool:
        """Forget what was delivered last."""
        self.last = START
        return super().admit(key, event, ttl, round_number)


def order_by(make: Callable[[int], Ordering], peer: Peer) -> None:
    """Give a peer another ordering component."""
    peer._order = make(TTL)


def late_as_usual(peer: Peer) -> None:
    """Hand late events over as if they were in order."""

    def deliver_late(key: Key, event: Event) -> None:
        if key not in peer._memory:
            peer._memory.add_late(key)
            stamp = Stamp(event.ts, event.source)
            peer.env.deliver(Delivered(event.payload, event.groups, event.source, stamp))

    peer._pass = deliver_late  # type: ignore[method-assign]


# What is remembered


class Forgetful(Memory):
    """Forgets, and takes what it has forgotten for new."""

    __slots__ = ()

    def __contains__(self, key: Key) -> bool:
        return key in self._keys


def forgetful(peer: Peer) -> None:
    """Give a peer a bad memory."""
    peer._memory = Forgetful(peer._set.memory, START)


class NoPlace(ForgetfulEnv):
    """A disk that loses the place in the order."""

    forgets = "place"


def bad_disk(peer: Peer) -> None:
    """Save to it."""
    peer.env = NoPlace(peer.env, lambda meddler, delivery: [delivery])


def saves_late(peer: Peer) -> None:
    """Save the place after the deliveries that it covers, when a crash may undo it."""
    env, round_of, pending = peer.env, peer._run_round, list[tuple[str, bytes | None]]()

    class Late(ForgetfulEnv):
        """Puts saves off."""

        def save(self, name: str, state: bytes | None) -> None:
            pending.append((name, state))

    def run_round() -> None:
        round_of()
        for name, state in pending:
            env.save(name, state)
        pending.clear()

    peer.env = Late(env, lambda meddler, delivery: [delivery])
    peer._run_round = run_round  # type: ignore[method-assign]


# The table


def _run(
    alter: Alter, nodes: tuple[NodeId, ...], options: dict[str, object], restart: bool, seed: int
) -> Run:
    fault: tuple[Crash | Restart, ...] = ()
    if restart:
        strikes = [
            (Crash(at_ms=at, host=CULPRIT), Restart(at_ms=at + 1, host=CULPRIT)) for at in (20, 30, 40)
        ]
        fault = tuple(step for strike in strikes for step in strike)
    scenario = scene(seed, options, fault=fault)
    return simulate(scenario, altered(scenario.plan(), alter, nodes))


def _epto(
    name: str,
    breaks: set[str],
    alter: Alter,
    *,
    everywhere: bool = False,
    restart: bool = False,
    also: Iterable[str] = (),
    **options: object,
) -> Mutant:
    nodes = tuple(range(PEERS)) if everywhere else (CULPRIT,)
    run = partial(_run, alter, nodes, options, restart)
    return Mutant(name, frozenset(breaks), run, None if everywhere else CULPRIT, frozenset(also), seeds=6)


ORDER = {"total-order", "stamp-order"}
EPTO_MUTANTS = [
    _epto("peers order as printed", ORDER, partial(order_by, Printed), everywhere=True),
    _epto("events of one timestamp go by arrival", ORDER, partial(order_by, ByArrival)),
    _epto("a peer takes what has passed", {"integrity"}, partial(order_by, Gullible), also=ORDER),
    _epto("late events are handed over as usual", ORDER, late_as_usual, late="tag", ttl=2),
    _epto("a memory has no floor", {"integrity"}, forgetful, late="tag", memory=16, ttl=12),
    _epto(
        "a disk loses the place in the order",
        {"integrity"},
        bad_disk,
        restart=True,
        also=ORDER,
        durable=True,
    ),
    _epto(
        "the place is saved after the deliveries",
        {"integrity"},
        saves_late,
        restart=True,
        also=ORDER,
        durable=True,
    ),
]
