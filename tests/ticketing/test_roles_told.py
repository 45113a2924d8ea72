"""Members tell their roles: in the trace, with what they believe about rates and delays."""

from ordercast.experiments.hybrid.static import FAR_MS, NEAR_MS
from ordercast.scenario.spec import ConstantSpec, NetworkSpec, PhaseSpec, Scenario, SitesSpec, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import Event, Kind


def roles(protocol: str, rarely_per_s: float = 2.0) -> list[Event]:
    """The rows of a run in which node 0 sends often and the others rarely."""
    latency = SitesSpec(
        sites=((0, 1), (2,)), near=ConstantSpec(us=NEAR_MS * 1000), far=ConstantSpec(us=FAR_MS * 1000)
    )
    phases = (PhaseSpec(rate_per_s=50.0), PhaseSpec(rate_per_s=rarely_per_s, senders=(1, 2)))
    run = simulate(
        Scenario(
            protocol=protocol,
            senders=3,
            colocated=True,
            network=NetworkSpec(latency=latency),
            workload=WorkloadSpec(kind="periodic", messages=500, phase=phases),
            options={"views": {"heartbeat_ns": 10**9, "suspect_ns": 60 * 10**9}},
            settle_ms=5000,
        )
    )
    assert not run.violations
    return [event for event in run.events() if event.kind is Kind.ROLE]


def test_a_member_that_becomes_passive_tells_why() -> None:
    rows = roles("hybrid", 12.0)
    last = {row.node: row for row in rows}
    assert [row.label for row in rows[:3]] == ["active"] * 3
    told = last[1]
    assert told.label is not None and told.label.startswith("passive: own: a message every ")
    assert "closest active member 0" in told.label and "20 ms away" in told.label
    assert told.peer == 0


def test_a_member_that_becomes_passive_by_its_silence_tells_it() -> None:
    labels = [str(row.label) for row in roles("hybrid") if row.node == 1]
    assert labels[1].startswith("passive: own: too few messages to know a rate; closest active member 0: ")


def test_static_roles_are_told_once() -> None:
    assert [(row.node, row.label, row.peer) for row in roles("token_site")] == [
        (0, "active", 0),
        (1, "passive", 0),
        (2, "passive", 0),
    ]
