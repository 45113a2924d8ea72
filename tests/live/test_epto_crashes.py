"""EpTO with tens of peers on real processes: a third of them is killed under load, and the others go on."""

from pathlib import Path

import pytest

from ordercast.core import NodeId
from ordercast.judge import audit
from ordercast.lab.trial.run import LiveRun
from ordercast.scenario.faults import Crash, FaultSpec, Restart
from ordercast.scenario.file import load_scenario
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import Event, Kind, events_of
from tests.live.flowing import run_flowing

pytestmark = pytest.mark.deep

EXAMPLES = Path(__file__).parents[2] / "examples"
PEERS = 24
VICTIMS = range(0, PEERS, 3)
"""A third, and among them one of the three whom every peer knows at its start."""
OPTIONS = {"round_ns": 200_000_000, "ttl": 60, "relay_bytes": 1 << 20}
"""A peer that a busy machine holds up for as long as an event lives loses it: here that is some seconds."""


def run_peers(*faults: FaultSpec, messages: int, rate_per_s: float, **options: object) -> LiveRun:
    """Peers that all send, struck while messages flow."""
    scenario = Scenario(
        protocol="epto",
        receivers=PEERS,
        senders=PEERS,
        colocated=True,
        seed=4,
        options=OPTIONS | options,
        workload=WorkloadSpec(messages=messages, rate_per_s=rate_per_s),
        settle_ms=5_000,
        fault=faults,
    )
    return run_flowing(scenario)


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


def judged(run: LiveRun) -> None:
    assert run.violations == [] and run.hindrance == ""
    assert audit(run.description, run.table).violations == []


def test_many_peers_deliver_everything_in_one_order_and_end() -> None:
    run = run_peers(messages=80, rate_per_s=1)
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
    # Messages for a minute: on a busy machine, the first delivery and the start of eight hosts take half of
    # it, and an event needs 12 s.
    run = run_peers(*killed, *again, messages=720, rate_per_s=0.5, sampling=sampling, durable=kept)
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
