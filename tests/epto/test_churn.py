"""Peers that come and go: order holds always, and whoever stays, or joined in time, lacks nothing (5.4)."""

from random import Random

import pytest

from ordercast.core import MILLISECOND, Deployment, MessageId, Nanos, NodeId, message_sender
from ordercast.protocols.epto.newcomer import Newcomer
from ordercast.protocols.epto.options import EptoOptions
from ordercast.protocols.epto.protocol import deploy
from ordercast.scenario.faults import Crash, FaultSpec, Restart
from ordercast.scenario.spec import ClocksSpec, NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.sim.world import World
from ordercast.trace import Kind

PEERS = 14
STAY = 4
"""Peers 0 to 3 stay."""
END_MS = 100.0
VARIANTS: list[dict[str, object]] = [
    {"clock": "logical"},
    {"clock": "global"},
    {"clock": "logical", "sampling": "cyclon"},
    {"clock": "logical", "late": "tag", "memory": 16},
]


def lives(seed: int) -> list[FaultSpec]:
    """All but a few peers crash three times and come back without their state, some at once."""
    rng, faults = Random(f"{seed}/churn"), list[FaultSpec]()
    for host in range(STAY, PEERS):
        at = 0.0
        for _ in range(3):
            at += rng.uniform(1, END_MS / 4)
            faults.append(Crash(at_ms=at, host=host))
            at += rng.choice((0.0, rng.uniform(0, 5)))
            faults.append(Restart(at_ms=at, host=host, state="lost"))
    return faults


def churn(seed: int, options: dict[str, object]) -> Run:
    """Loss, drift and churn, as much as the parameters are told of."""
    scenario = Scenario(
        protocol="epto",
        seed=seed,
        receivers=PEERS,
        senders=PEERS,
        colocated=True,
        options={"loss": 0.05, "churn": 0.05} | options,
        network=NetworkSpec(latency=UniformSpec(100, 900), loss=0.05),
        clocks=ClocksSpec(skew_us=100, drift_ppm=10_000),
        workload=WorkloadSpec(messages=250, rate_per_s=150),
        settle_ms=100,
        fault=tuple(lives(seed)),
    )
    return simulate(scenario)


def last(run: Run, kind: Kind) -> dict[NodeId, Nanos]:
    """When each node last crashed, or recovered."""
    return {event.node: event.time_ns for event in run.events() if event.kind is kind}


def submissions(run: Run) -> dict[MessageId, Nanos]:
    """When each message was submitted."""
    submitted = [event for event in run.events() if event.kind is Kind.SUBMIT]
    return {event.message: event.time_ns for event in submitted if event.message is not None}


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(map(str, options.values())))
def test_order_holds_stayers_lack_nothing_and_newcomers_nothing_of_their_time(
    options: dict[str, object],
) -> None:
    for seed in range(2):
        run = churn(seed, options)
        assert run.violations == []
        assert run.holes is not None
        assert run.holes.count == 0
        assert run.holes.elsewhere > 0
        submitted, crashed, joined = submissions(run), last(run, Kind.CRASH), last(run, Kind.RECOVER)
        assert len(joined) == PEERS - STAY
        delivered: dict[MessageId, set[NodeId]] = {message: set() for message in submitted}
        for event in run.events():
            if event.kind in (Kind.DELIVER, Kind.OUT_OF_ORDER) and event.message is not None:
                delivered[event.message].add(event.node)
        for message, nodes in delivered.items():
            born, source = submitted[message], message_sender(message)
            if nodes:
                assert {node for node, time in joined.items() if time < born} <= nodes
            else:  # it went with its source
                assert crashed[source] > born


# A newcomer must not broadcast in the past


def comes_back(monkeypatch: pytest.MonkeyPatch | None) -> set[NodeId]:
    """Who delivers the event of a peer that came back without its state, when the others have gone on."""
    if monkeypatch:
        monkeypatch.setattr(Newcomer, "ready", lambda self: True)
    world = World(deploy(Deployment.disjoint(1, 5, 5, colocated=True), EptoOptions(clock="logical")), seed=1)
    world.run(0)
    for _ in range(20):
        world.submit(0, (0,), b"before")
        world.run(world.now + MILLISECOND)
    world.run(world.now + 200 * MILLISECOND)
    world.crash(1)
    world.restart(1, keep_state=False)
    world.run(world.now + 1)
    message = world.submit(1, (0,), b"after")
    world.run(world.now + 200 * MILLISECOND)
    return {row[2] for row in world.rows if row[3] is Kind.DELIVER and row[4] == message}  # type: ignore[misc]


def test_a_peer_that_comes_back_asks_for_the_time_and_is_heard() -> None:
    assert comes_back(None) == {0, 1, 2, 3, 4}


def test_one_that_does_not_ask_is_heard_by_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert comes_back(monkeypatch) == {1}


# A good network, at the parameters of the lemmas


@pytest.mark.parametrize("clock", ["logical", "global"])
@pytest.mark.parametrize("sampling", ["uniform", "cyclon"])
def test_on_a_good_network_there_are_no_holes(clock: str, sampling: str) -> None:
    for seed in range(2):
        scenario = Scenario(
            protocol="epto",
            seed=seed,
            receivers=10,
            senders=10,
            colocated=True,
            options={"clock": clock, "sampling": sampling},
            network=NetworkSpec(latency=UniformSpec(100, 900)),
            workload=WorkloadSpec(messages=200, rate_per_s=200),
            settle_ms=100,
        )
        run = simulate(scenario)
        assert run.ending == "settled"
        assert run.holes is not None
        assert (run.holes.nodes, run.holes.nowhere) == ((), 0)
