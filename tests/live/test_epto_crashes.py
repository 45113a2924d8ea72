"""EpTO with tens of peers on real processes: a third of them is killed under load, and the others go on."""

from pathlib import Path

import msgspec
import pytest

from ordercast.core import SECOND, NodeId
from ordercast.judge import audit
from ordercast.lab.trial.run import LiveRun
from ordercast.scenario.faults import Crash, FaultSpec, Restart
from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import ConstantSpec, NetworkSpec, Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import Event, Kind, events_of
from tests.live.flowing import run_flowing

pytestmark = pytest.mark.deep

EXAMPLES = Path(__file__).parents[2] / "examples"
PEERS = 24
VICTIMS = range(0, PEERS, 3)
"""A third, and among them one of the three whom every peer knows at its start."""
OPTIONS = {"round_ns": 500_000_000, "ttl": 250, "fanout": 8, "relay_bytes": 1 << 20}
LIFE_NS = 10 * SECOND
"""A peer that a busy machine holds up for as long as an event lives loses it. On a fast network an event is
relayed many times within a round, and the more often the more peers a ball goes to: it does not live for TTL
rounds. By these options it lives longer than this, and with rounds of 200 ms, a TTL of 60 and the fan-out of
the lemmas for one second only."""
SETTLE_MS = 30_000
"""Longer than an event lives, so that a run does not end while an event is on its way."""


def peers(*faults: FaultSpec, messages: int, rate_per_s: float, **options: object) -> Scenario:
    """Peers that all send."""
    return Scenario(
        protocol="epto",
        receivers=PEERS,
        senders=PEERS,
        colocated=True,
        seed=4,
        options=OPTIONS | options,
        workload=WorkloadSpec(messages=messages, rate_per_s=rate_per_s),
        settle_ms=SETTLE_MS,
        fault=faults,
    )


def delivered(run: LiveRun) -> dict[NodeId, list[int]]:
    """What each peer delivered, in its order."""
    found: dict[NodeId, list[int]] = {node: [] for node in range(PEERS)}
    for event in events_of(run.table):
        if event.kind is Kind.DELIVER and event.message is not None:
            found[event.node].append(event.message)
    return found


def submitted(run: LiveRun) -> dict[int, tuple[NodeId, int]]:
    """All messages: who submitted each, and when."""
    return {
        event.message: (event.node, event.time_ns)
        for event in events_of(run.table)
        if event.kind is Kind.SUBMIT and event.message is not None
    }


def _is_later(event: Event, recoveries: dict[NodeId, Event]) -> bool:
    recovery = recoveries.get(event.node)
    return recovery is not None and event.time_ns > recovery.time_ns


@pytest.mark.parametrize("sampling", ["uniform", "cyclon"])
def test_an_event_lives_longer_than_a_busy_machine_holds_up_a_peer(sampling: str) -> None:
    scenario = peers(messages=48, rate_per_s=1, sampling=sampling)
    fast = NetworkSpec(latency=ConstantSpec(50))
    run = simulate(msgspec.structs.replace(scenario, network=fast))
    sent = {event.message: event.time_ns for event in run.events() if event.kind is Kind.SUBMIT}
    lives = [e.time_ns - sent[e.message] for e in run.events() if e.kind is Kind.DELIVER]
    assert len(lives) == 48 * PEERS and min(lives) > LIFE_NS


def judged(run: LiveRun) -> None:
    assert run.violations == [] and run.hindrance == ""
    assert audit(run.description, run.table).violations == []


def test_many_peers_deliver_everything_in_one_order_and_end() -> None:
    run = run_flowing(peers(messages=80, rate_per_s=1))
    judged(run)
    orders = delivered(run)
    assert len(orders[0]) == len(submitted(run)) == 80, "no holes"
    assert all(order == orders[0] for order in orders.values())
    assert run.summary().overflowed == 0


@pytest.mark.parametrize(("sampling", "state"), [("uniform", "saved"), ("cyclon", "lost")])
def test_a_third_is_killed_and_comes_back_and_the_others_go_on(sampling: str, state: str) -> None:
    kept = state == "saved"
    killed = [Crash(at_ms=100, host=host) for host in VICTIMS]
    again = [Restart(at_ms=1_500, host=host, state="saved" if kept else "lost") for host in VICTIMS]
    # Messages for 80 s: on a busy machine, the first delivery and the start of eight hosts take half of it,
    # and an event needs 13 s.
    scenario = peers(*killed, *again, messages=960, rate_per_s=0.5, sampling=sampling, durable=kept)
    run = run_flowing(scenario)
    judged(run)
    assert run.beyond_contract == []
    orders, all_of_them = delivered(run), submitted(run)
    stayed = [node for node in range(PEERS) if node not in VICTIMS]
    theirs = {message for message, (node, _) in all_of_them.items() if node in stayed}
    first = orders[stayed[0]]
    assert all(orders[node] == first for node in stayed), "one order"
    assert theirs <= set(first), "and no holes in what those sent that stayed"
    crash = max(silence.time_ns for silence in run.silences)
    began = min(time for _, time in all_of_them.values())
    after = {message for message in theirs if all_of_them[message][1] > began + crash}
    assert after, "some were sent when the others had gone"
    back = {event.node: event for event in events_of(run.table) if event.kind is Kind.RECOVER}
    assert {node: event.label for node, event in back.items()} == dict.fromkeys(VICTIMS, state)
    again_at = [e.node for e in events_of(run.table) if e.kind is Kind.DELIVER and _is_later(e, back)]
    assert set(again_at) == set(VICTIMS), "all that came back take part again"


def test_the_example_has_the_same_verdict_simulated_and_live() -> None:
    scenario = load_scenario(EXAMPLES / "epto-crashes.toml")
    simulated = simulate(scenario)
    live = run_flowing(scenario)
    assert live.violations == simulated.violations == []
    assert live.hindrance == simulated.hindrance == ""
    assert live.beyond_contract == simulated.beyond_contract == []
    assert live.description.complete and simulated.description.complete
    assert 0 < live.summary().submitted <= scenario.workload.messages
    live_events, sim_events = events_of(live.table), simulated.events()
    assert live.description.guarantees == simulated.description.guarantees
    crashed, also = ({e.node for e in events if e.kind is Kind.CRASH} for events in (live_events, sim_events))
    assert crashed == also == {2, 5, 8, 11}
