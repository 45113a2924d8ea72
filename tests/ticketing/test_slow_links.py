"""Links become slow and fast again while messages flow, and members of hybrid order change their roles."""

from ordercast.core import MILLISECOND
from ordercast.scenario.faults import Delay
from ordercast.scenario.spec import ConstantSpec, NetworkSpec, PhaseSpec, Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import Kind

SLOW_MS, FAST_MS = 2000, 4000
SIDES = ((2,), (0, 1))


def test_a_member_is_active_while_the_others_are_far_away() -> None:
    """Node 1 sends rarely, and the two others a message every 10 ms, which are 1 ms or 31 ms apart."""
    often, rarely = PhaseSpec(rate_per_s=100), PhaseSpec(rate_per_s=2, senders=(1,))
    scenario = Scenario(
        protocol="hybrid",
        senders=3,
        colocated=True,
        network=NetworkSpec(latency=ConstantSpec(us=1000)),
        workload=WorkloadSpec(kind="periodic", messages=1200, phase=(often, rarely)),
        fault=(
            Delay(at_ms=SLOW_MS, sides=SIDES, by_us=30_000),
            Delay(at_ms=FAST_MS, sides=SIDES, by_us=0),
        ),
        settle_ms=1000,
    )
    run = simulate(scenario)
    assert run.violations == []
    assert run.summary().delivered == 3 * 1200
    roles = [event for event in run.events() if event.kind is Kind.ROLE and event.label is not None]
    for begin, end, active in ((1000, SLOW_MS, 1), (SLOW_MS + 1000, FAST_MS, 2), (FAST_MS + 1000, 6000, 1)):
        assert not any(begin < event.time_ns / MILLISECOND < end for event in roles), "all have settled"
        last = {event.node: event for event in roles if event.time_ns < end * MILLISECOND}
        assert sum(str(event.label).startswith("active") for event in last.values()) == active, begin
        if active == 2:
            assert (last[1].peer, str(last[1].label)[:7]) == (0, "passive"), "the closer one orders for it"
            assert "31 ms away" in str(last[0].label)
