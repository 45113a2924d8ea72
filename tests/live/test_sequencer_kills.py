"""Hydra's sequencers are killed (SIGKILL) again and again under load, by the account of the applications."""

import pytest

from ordercast.lab.trial.run import run_live
from ordercast.scenario.faults import Crash, FaultSpec, Restart
from ordercast.scenario.spec import Scenario, WorkloadSpec

SEQUENCERS = (6, 7)
"""The hosts after three receivers with a sender each."""
KILLS = 20
EVERY_MS, DOWN_MS = 1_500, 500
RATE_PER_S = 100


def kills() -> tuple[FaultSpec, ...]:
    """The sequencers are killed in turn, and each is restarted before the other is killed."""
    faults: list[FaultSpec] = []
    for place in range(KILLS):
        host, at_ms = SEQUENCERS[place % 2], 1_000 + place * EVERY_MS
        faults += [Crash(at_ms=at_ms, host=host), Restart(at_ms=at_ms + DOWN_MS, host=host)]
    return tuple(faults)


@pytest.mark.deep
def test_twenty_kills_of_a_sequencer_lose_nothing() -> None:
    lasts_s = (KILLS * EVERY_MS + 2_000) // 1_000
    messages = 3 * RATE_PER_S * lasts_s
    scenario = Scenario(
        protocol="hydra",
        senders=3,
        colocated=True,
        options={"sequencers": len(SEQUENCERS), "durable": True},
        live_options=True,
        workload=WorkloadSpec(kind="periodic", messages=messages, rate_per_s=RATE_PER_S),
        fault=kills(),
        settle_ms=3_000,
    )
    run, _ = run_live(scenario)
    account = run.account
    assert [crash.host for crash in run.silences] == [SEQUENCERS[place % 2] for place in range(KILLS)]
    assert run.violations == [] and run.hindrance == ""
    assert account.complaints == ()
    assert (account.missing, account.twice, account.disorder) == (0, 0, 0)
    assert account.accepted == messages
    assert account.delivered + account.dropped + account.unconfirmed >= messages
