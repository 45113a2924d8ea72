"""Members of hybrid order that are close to each other do not follow each other from role to role."""

import pytest

from ordercast.core import MILLISECOND
from ordercast.scenario.spec import ConstantSpec, NetworkSpec, Scenario, SitesSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind
from tests.deep import deep_after

FAR_MS, NEAR_MS = 30, 1
RATE_PER_S = 100
"""A message every 10 ms: more than the delay between neighbours, less than that to the others."""


def run(protocol: str, sites: tuple[tuple[int, ...], ...], kind: str) -> Run:
    """Members at some sites that all send equally often, for six seconds."""
    members = sum(map(len, sites))
    latency = SitesSpec(sites=sites, near=ConstantSpec(NEAR_MS * 1000), far=ConstantSpec(FAR_MS * 1000))
    return simulate(
        Scenario(
            protocol=protocol,
            receivers=members,
            senders=members,
            colocated=True,
            network=NetworkSpec(latency=latency),
            workload=WorkloadSpec(kind=kind, messages=600 * members, rate_per_s=RATE_PER_S),
            settle_ms=1000,
        )
    )


def latency_ms(found: Run) -> float:
    """The mean time until the last receiver has delivered, of the messages after the first second."""
    sent = {event.message: event.time_ns for event in found.events() if event.kind is Kind.SUBMIT}
    last = {event.message: event.time_ns for event in found.events() if event.kind is Kind.DELIVER}
    taken = [last[message] - sent[message] for message in sent if sent[message] > 1000 * MILLISECOND]
    return sum(taken) / len(taken) / MILLISECOND


TWO_AND_ONE, TWICE_THREE = ((0, 1), (2,)), ((0, 1, 2), (3, 4, 5))
CASES = [(sites, kind) for sites in (TWO_AND_ONE, TWICE_THREE) for kind in ("periodic", "poisson")]


@pytest.mark.parametrize(("sites", "kind"), deep_after(1, CASES))
def test_one_member_of_each_site_stays_active(sites: tuple[tuple[int, ...], ...], kind: str) -> None:
    hybrid = run("hybrid", sites, kind)
    assert hybrid.violations == []
    roles = [
        (event.time_ns, event.node, str(event.label)) for event in hybrid.events() if event.kind is Kind.ROLE
    ]
    late = [role for role in roles if role[0] > 2000 * MILLISECOND]
    assert late == [], "all have settled"
    actives = {
        node
        for node in sum(sites, ())
        if [label for _, who, label in roles if who == node][-1].startswith("active")
    }
    assert [len(actives & set(site)) for site in sites] == [1] * len(sites)
    assert latency_ms(hybrid) < 1.05 * min(
        latency_ms(run(other, sites, kind)) for other in ("symmetric", "token_site")
    )
