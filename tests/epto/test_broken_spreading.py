"""What is broken about dissemination and clocks breaks no order: it shows in what is missing, and where.

No oracle may condemn such a peer, for holes are allowed. So each variant is run beside an honest one in the
same scenario: that has none of the troubles that are measured, the broken one has, with nodes and messages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ordercast.core import SECOND, Message, MessageId, Nanos, NodeId
from ordercast.protocols.epto.clocks import GlobalClock, LogicalClock
from ordercast.protocols.epto.dissemination import NextBall
from ordercast.protocols.epto.messages import Ball
from ordercast.protocols.epto.ordering import Ordering
from ordercast.protocols.epto.peer import Peer
from ordercast.scenario.spec import ClocksSpec, NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind
from tests.sim.meddling import MeddlingEnv
from tests.sim.mutants_epto import CULPRIT, Alter, altered

PEERS = 8
SEEDS = range(3)

Trouble = tuple[NodeId, MessageId | None]
"""A node, and a message that it lacks, if it is about one."""


def scene(seed: int, **changes: Any) -> Scenario:
    """Eight peers that broadcast; a latency within a round, which is what the parameters are for."""
    described: dict[str, Any] = {
        "receivers": PEERS,
        "senders": PEERS,
        "colocated": True,
        "network": NetworkSpec(latency=UniformSpec(100, 900)),
        "workload": WorkloadSpec(messages=80, rate_per_s=100),
        "settle_ms": 100,
    }
    return Scenario(protocol="epto", seed=seed, **(described | changes))


# What is measured


def missing(run: Run) -> list[Trouble]:
    """Who lacks what others delivered, of those that stayed."""
    assert run.holes is not None
    stayed = [found for found in run.holes.nodes if found.standing == "stayed"]
    return [(found.node, message) for found in stayed for message in found.messages]


def own_missing(run: Run) -> list[Trouble]:
    """Who did not deliver its own event: validity, as Table 1 of the paper has it."""
    submitted = [event for event in run.events() if event.kind is Kind.SUBMIT]
    delivered = {(event.node, event.message) for event in run.events() if event.kind is Kind.DELIVER}
    return [(one.node, one.message) for one in submitted if (one.node, one.message) not in delivered]


def restless(run: Run) -> list[Trouble]:
    """Who still relays when all has long been delivered."""
    return [(node, None) for node, said in run.waits.items() if said.state["events to relay"]]


# What is broken


def impatient(peer: Peer) -> None:
    """Delivers after a single round."""
    peer._order = Ordering(1)


class DeafClock(LogicalClock):
    """Counts its own events alone, whatever it heard of and delivered."""

    def stamp(self, now: Nanos, floor: int) -> int:
        """One more than the last."""
        return super().stamp(now, -1)

    def hear(self, ts: int) -> None:
        """Change nothing."""


def deaf(peer: Peer) -> None:
    """Does not follow the others' clocks."""
    peer._clock = DeafClock()


class LateClock(GlobalClock):
    """Says what time it is, even if later events have been delivered already."""

    def stamp(self, now: Nanos, floor: int) -> int:
        """The time."""
        return now


def behind(peer: Peer) -> None:
    """Trusts a clock that is behind."""
    peer._clock = LateClock(SECOND)


class AgelessBall(NextBall):
    """Does not count relays."""

    __slots__ = ()

    def age(self) -> None:
        """Leave the ages as they are."""


def ageless(peer: Peer) -> None:
    """Throws what it heard as if it had been broadcast just now."""
    run_round = peer._run_round

    def run_ageless_round() -> None:
        ball = AgelessBall()
        ball.events, ball.ttls = peer._next.events, peer._next.ttls
        peer._next = ball
        run_round()

    peer._run_round = run_ageless_round  # type: ignore[method-assign]


class SilentEnv(MeddlingEnv):
    """Sends own events alone."""

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Leave the events of others out of balls."""
        if isinstance(message, Ball):
            both = zip(message.ttls, message.events, strict=True)
            own = [(ttl, event) for ttl, event in both if event.source == self.me]
            message = Ball(tuple(ttl for ttl, _ in own), tuple(event for _, event in own))
        super().multicast(to, message)


def silent(peer: Peer) -> None:
    """Relays nothing of others."""
    peer.env = SilentEnv(peer.env, lambda meddler, delivery: [delivery])


@dataclass(frozen=True)
class Broken:
    """A broken variant, where it is broken, and what shows it."""

    name: str
    alter: Alter
    shows: Callable[[Run], list[Trouble]]
    everywhere: bool = False
    options: dict[str, object] = field(default_factory=dict)
    clocks: ClocksSpec = ClocksSpec()  # noqa: RUF009  (frozen)


BROKEN = [
    Broken("delivers too early", impatient, missing),
    Broken("does not hear of the time", deaf, own_missing),
    Broken(
        "trusts a clock that is behind",
        behind,
        own_missing,
        options={"clock": "global"},
        clocks=ClocksSpec(skew_us=50_000),
    ),
    Broken("does not count relays", ageless, restless, everywhere=True),
    Broken("does not relay", silent, missing, everywhere=True, options={"fanout": 2}),
]


def run(broken: Broken, seed: int, honest: bool) -> Run:
    """The same scenario, with the broken variant or without."""
    scenario = scene(seed, options={"round_ns": 1_000_000} | broken.options, clocks=broken.clocks)
    nodes = range(PEERS) if broken.everywhere else (CULPRIT,)
    plan = scenario.plan()
    return simulate(scenario, plan if honest else altered(plan, broken.alter, nodes))


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_it_shows_who_lacks_what_and_breaks_no_order(broken: Broken) -> None:
    found: list[Trouble] = []
    for seed in SEEDS:
        assert broken.shows(run(broken, seed, honest=True)) == []
        caught = run(broken, seed, honest=False)
        assert caught.violations == []
        found += broken.shows(caught)
    assert found
    assert broken.everywhere or {node for node, _ in found} == {CULPRIT}
