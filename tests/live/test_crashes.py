"""kill -9 of real processes that receive and send, in the middle of their work, judged from the trace."""

import pytest

from ordercast.core import Fault
from ordercast.lab.trial.run import LiveRun
from ordercast.scenario.faults import Crash, FaultSpec, Restart
from ordercast.scenario.spec import ConstantSpec, NetworkSpec, Scenario, WorkloadSpec
from ordercast.trace import Event, Kind, events_of
from tests.deep import deep_after
from tests.live.flowing import run_flowing

VICTIM = 1
"""A host with a receiver, and with a sender where they sit together."""
MESSAGES = 600
DELAY_US = 2_000
"""Of each datagram. A message takes two at least, so no sender is done before 800 ms."""


def crash(protocol: str, *faults: FaultSpec, **options: object) -> LiveRun:
    """Three receivers with a sender each, struck while messages flow.

    The senders wait for answers and have so many messages to send each. So one that was killed has messages
    left for its next life, whenever that begins.
    """
    if protocol == "hydra":
        options = {"suspect_ns": 200_000_000, "replicas": 1} | options
    scenario = Scenario(
        protocol=protocol,
        senders=3,
        colocated=True,
        seed=2,
        options=options,
        network=NetworkSpec(latency=ConstantSpec(DELAY_US)),
        workload=WorkloadSpec(kind="closed", messages=MESSAGES, timeout_ms=10),
        settle_ms=1_000,
        fault=faults,
    )
    return run_flowing(scenario)


def rows(run: LiveRun, kind: Kind, node: int | None = None) -> list[Event]:
    return [e for e in events_of(run.table) if e.kind is kind and node in (None, e.node)]


def lives(run: LiveRun, node: int) -> list[list[Event]]:
    """What a receiver delivered in each of its lives."""
    found: list[list[Event]] = [[]]
    for event in events_of(run.table):
        if event.node == node and event.kind is Kind.RECOVER:
            found.append([])
        elif event.node == node and event.kind is Kind.DELIVER:
            found[-1].append(event)
    return found


@pytest.mark.parametrize("protocol", deep_after(1, ["hydra", "atomic_multicast"]))
def test_a_killed_receiver_that_saved_its_place_goes_on_where_it_was(protocol: str) -> None:
    options = {"durable": True} if protocol == "hydra" else {}
    run = crash(protocol, Crash(at_ms=100, host=VICTIM), Restart(at_ms=250, host=VICTIM), **options)
    assert run.beyond_contract == []
    assert run.violations == [] and run.hindrance == ""
    (recovery,) = rows(run, Kind.RECOVER, VICTIM)
    assert recovery.label == "saved"
    before, after = lives(run, VICTIM)
    assert before and after, "it delivered in both lives"
    messages = [event.message for event in (*before, *after)]
    assert len(set(messages)) == len(messages), "nothing twice"
    others = [event.message for event in rows(run, Kind.DELIVER, 0)]
    common = [message for message in others if message in set(messages)]
    assert [message for message in messages if message in set(others)] == common, "in the same order"


@pytest.mark.deep
def test_a_killed_hydra_receiver_that_saves_nothing_may_stay_away_and_the_others_go_on() -> None:
    run = crash("hydra", Crash(at_ms=100, host=VICTIM))
    assert run.beyond_contract == []
    assert run.violations == [] and run.hindrance == ""
    (silence,) = run.silences
    assert silence.receivers[VICTIM] is None
    assert silence.receivers[0] is not None and silence.receivers[2] is not None
    delivered = [len(rows(run, Kind.DELIVER, node)) for node in (0, VICTIM, 2)]
    assert delivered[1] < min(delivered[0], delivered[2])


@pytest.mark.deep
def test_without_durable_a_restart_is_beyond_what_hydra_promises() -> None:
    run = crash("hydra", Crash(at_ms=100, host=VICTIM), Restart(at_ms=250, host=VICTIM))
    assert run.beyond_contract == [Fault.RESTART], "so the run says, whatever comes of it"
    untouched = [violation for violation in run.violations if VICTIM not in violation.nodes]
    assert untouched == [], "and the others keep their promises all the same"


@pytest.mark.parametrize("protocol", deep_after(1, ["atomic_multicast", "hydra"]))
def test_a_sender_killed_in_the_middle_of_sending_leaves_no_doubt_about_what_it_sent(protocol: str) -> None:
    run = crash(protocol, Crash(at_ms=100, host=VICTIM))
    assert run.violations == [] and run.hindrance == ""
    sender = next(e.node for e in rows(run, Kind.CRASH) if e.node != VICTIM)
    mine = {event.message for event in rows(run, Kind.SUBMIT, sender)}
    assert 0 < len(mine) < MESSAGES / 3, "it was killed on the way"
    heard = [{e.message for e in rows(run, Kind.DELIVER, node)} & mine for node in (0, 2)]
    assert heard[0], "some of it came through"
    if protocol == "atomic_multicast":
        assert heard[0] == heard[1], "and the same everywhere"
