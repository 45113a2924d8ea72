"""A peer that comes back without its state: it delivers nothing that its earlier life delivered."""

from collections.abc import Mapping

import pytest

from ordercast.protocols.epto.peer import Peer
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from tests.epto.lab import Bench, event, global_clock
from tests.sim.lives import again, wiped_again_and_again

PEERS = 5
VARIANTS: list[dict[str, object]] = [
    {"clock": "logical"},
    {"clock": "global"},
    {"clock": "logical", "durable": True, "late": "tag"},
]


def run_of(options: Mapping[str, object]) -> Run:
    """A peer crashes again and again while events are on their way, and is soon back with an empty disk."""
    return simulate(
        Scenario(
            protocol="epto",
            receivers=PEERS,
            senders=PEERS,
            colocated=True,
            options=dict(options),
            network=NetworkSpec(latency=UniformSpec(100, 900), loss=0.1, reordering=0.1, reorder_us=3000),
            workload=WorkloadSpec(messages=400, rate_per_s=200),
            fault=wiped_again_and_again(2),
            settle_ms=100,
        )
    )


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_a_new_life_delivers_nothing_again(options: Mapping[str, object]) -> None:
    run = run_of(options)
    assert again(run, 2) == 0
    assert not run.violations


def test_a_life_that_takes_what_it_hears_would_deliver_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def go_on(peer: Peer) -> None:
        peer._behind = False

    monkeypatch.setattr(Peer, "_catch_up", go_on)
    assert again(run_of(VARIANTS[1]), 2) > 5


def test_a_peer_that_forgot_nothing_takes_what_was_sent_before_it_began() -> None:
    bench = Bench(me=0, clock=global_clock())
    bench.hear((event("old", 0, source=2), 2))
    bench.round(5)
    assert bench.words() == ["old"]
