"""A peer that comes back without its state: it delivers nothing that its earlier life delivered."""

from collections.abc import Mapping

import pytest

from ordercast.core import MessageId
from ordercast.protocols.epto.peer import Peer
from ordercast.scenario.faults import Crash, Disk, Restart
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import CARRYING, Kind
from tests.epto.lab import Bench, event, global_clock

PEERS = 5
VARIANTS: list[dict[str, object]] = [
    {"clock": "logical"},
    {"clock": "global"},
    {"clock": "logical", "durable": True, "late": "tag"},
]


def run_of(options: Mapping[str, object]) -> Run:
    """A peer crashes again and again while events are on their way, and is soon back with an empty disk."""
    crashes = [50 + 40 * number for number in range(10)]
    return simulate(
        Scenario(
            protocol="epto",
            receivers=PEERS,
            senders=PEERS,
            colocated=True,
            options=dict(options),
            network=NetworkSpec(latency=UniformSpec(100, 900), loss=0.1, reordering=0.1, reorder_us=3000),
            workload=WorkloadSpec(messages=400, rate_per_s=200),
            fault=tuple(
                fault
                for place, at in enumerate(crashes)
                for fault in (
                    Disk(at_ms=at, host=2, what="wiped"),
                    Crash(at_ms=at, host=2),
                    Restart(at_ms=at + place % 4, host=2),
                )
            ),
            settle_ms=100,
        )
    )


def lives(run: Run) -> list[list[MessageId]]:
    """What peer 2 delivered in each of its lives."""
    found: list[list[MessageId]] = [[]]
    for row in run.events():
        if row.node == 2 and row.kind is Kind.RECOVER:
            found.append([])
        elif row.node == 2 and row.kind in CARRYING and row.message is not None:
            found[-1].append(row.message)
    return found


def again(run: Run) -> int:
    """How many messages a later life of peer 2 delivered again."""
    seen: set[MessageId] = set()
    count = 0
    for delivered in lives(run):
        count += len(seen.intersection(delivered))
        seen.update(delivered)
    assert len(seen) > 50
    return count


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_a_new_life_delivers_nothing_again(options: Mapping[str, object]) -> None:
    run = run_of(options)
    assert again(run) == 0
    assert not run.violations


def test_a_life_that_takes_what_it_hears_would_deliver_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def go_on(peer: Peer) -> None:
        peer._behind = False

    monkeypatch.setattr(Peer, "_catch_up", go_on)
    assert again(run_of(VARIANTS[1])) > 5


def test_a_peer_that_forgot_nothing_takes_what_was_sent_before_it_began() -> None:
    bench = Bench(me=0, clock=global_clock())
    bench.hear((event("old", 0, source=2), 2))
    bench.round(5)
    assert bench.words() == ["old"]
