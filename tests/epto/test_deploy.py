"""EpTO as it is deployed: who plays which role, what is promised with which options, and what is judged."""

import pytest

from ordercast.catalogue import find_protocol
from ordercast.components.sampling import Cyclon, Uniform
from ordercast.core import Agreement, Deployment, Fault, LocalError, Options, Order, Plan
from ordercast.protocols.epto.options import EptoOptions
from ordercast.protocols.epto.parameters import parameters
from ordercast.protocols.epto.peer import Setting
from ordercast.protocols.epto.protocol import deploy, guarantees
from ordercast.scenario.spec import NetworkSpec, Scenario, UniformSpec, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.sim.world import World
from tests.check.traces import Trace

OVERLAPPING = ((0, 1, 2), (2, 3, 4), (0, 4))


def test_beside_receivers_senders_are_the_first_of_them() -> None:
    plan = deploy(Deployment.disjoint(1, 4, 2, colocated=True), EptoOptions())
    assert [node.role for node in plan.nodes] == ["peer"] * 4
    assert plan.senders == (0, 1)
    assert deploy(Deployment.disjoint(1, 2, 9, colocated=True), EptoOptions()).senders == (0, 1)


def test_elsewhere_they_are_peers_without_a_group() -> None:
    plan = deploy(Deployment.disjoint(2, 2, 3), EptoOptions())
    assert [node.role for node in plan.nodes] == ["peer"] * 4 + ["publisher"] * 3
    assert plan.senders == (4, 5, 6)
    assert len({node.host for node in plan.nodes}) == 7


def test_other_options_are_refused() -> None:
    with pytest.raises(LocalError):
        deploy(Deployment.disjoint(1, 2, 1), Options())


@pytest.mark.parametrize(
    "wrong", [{"round_ns": 1}, {"ttl": 251}, {"jitter": 0.6}, {"jitter": float("nan")}, {"ahead_ns": -1}]
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(LocalError):
        EptoOptions(**wrong)  # type: ignore[arg-type]


def test_k_and_ttl_are_those_of_the_lemmas_for_a_network_with_latency() -> None:
    advice = parameters(30, loss=0.01, drift=0.01, latency=1, target=1e-6)
    first = advice.ttl - 1
    assert parameters(30, loss=0.01, drift=0.01, target=1e-6).ttl == first, "Lemma 6 asks for one round more"
    plan = deploy(Deployment.disjoint(1, 30, 1, colocated=True), EptoOptions())
    setting = _setting(plan)
    assert (setting.fanout, setting.ttl) == (advice.fanout, advice.ttl)


def test_what_is_given_needs_no_lemmas() -> None:
    wanted = Deployment.disjoint(1, 30, 1)
    with pytest.raises(LocalError, match="TTL"):  # the lemmas ask for one above the limit
        deploy(wanted, EptoOptions(drift=0.9, ttl=20))
    setting = _setting(deploy(wanted, EptoOptions(drift=0.9, ttl=20, fanout=5)))
    assert (setting.fanout, setting.ttl) == (5, 20)


def _setting(plan: Plan) -> Setting:
    world = World(plan)
    world.run(0)
    (setting,) = {env.process._set.fanout: env.process._set for env in world.envs}.values()  # type: ignore[attr-defined]
    assert isinstance(setting, Setting)
    return setting


def test_what_is_promised_follows_from_the_options() -> None:
    plain, tagging, durable = (
        guarantees(options) for options in (EptoOptions(), EptoOptions(late="tag"), EptoOptions(durable=True))
    )
    assert (plain.order, plain.agreement) == (Order.ACROSS, Agreement.PROBABILISTIC)
    assert (plain.out_of_order, tagging.out_of_order) == (False, True)
    assert Fault.RESTART not in plain.tolerates
    assert Fault.RESTART in durable.tolerates
    assert {Fault.CRASH, Fault.AMNESIA, Fault.LOSS, Fault.CLOCK} <= set(plain.tolerates)


@pytest.mark.parametrize(("sampling", "kind"), [("uniform", Uniform), ("cyclon", Cyclon)])
def test_peers_are_sampled_as_chosen(sampling: str, kind: type) -> None:
    protocol = find_protocol("epto")
    plan = protocol.deploy(Deployment.disjoint(1, 30, 1), EptoOptions(sampling=sampling))  # type: ignore[arg-type]
    world = World(plan)
    world.run(0)
    assert {type(env.process._sampler) for env in world.envs} == {kind}  # type: ignore[attr-defined]


# How runs are judged


def test_a_late_event_that_is_tagged_breaks_no_order() -> None:
    trace = Trace(guarantees(EptoOptions(late="tag")))
    first, second = trace.submit(), trace.submit()
    trace.deliver(0, first, second)
    trace.deliver(1, second)
    trace.deliver(1, first, kind="out-of-order")
    trace.clean()


def test_one_that_is_not_tagged_does() -> None:
    trace = Trace(guarantees(EptoOptions(late="tag")))
    first, second = trace.submit(), trace.submit()
    trace.deliver(0, first, second)
    trace.deliver(1, second, first)
    assert set(trace.only("total-order").messages) == {first, second}


def test_where_late_events_are_dropped_a_tagged_one_was_not_promised() -> None:
    trace = Trace(guarantees(EptoOptions(late="drop")))
    message = trace.submit()
    trace.deliver(1, message, kind="out-of-order")
    found = trace.only("integrity")
    assert (found.nodes, found.messages) == ((1,), (message,))


@pytest.mark.parametrize("colocated", [True, False])
@pytest.mark.parametrize("late", ["drop", "tag"])
def test_groups_that_overlap_have_one_order_together(colocated: bool, late: str) -> None:
    delivered = 0
    for seed in range(4):
        scenario = Scenario(
            protocol="epto",
            seed=seed,
            membership=OVERLAPPING,
            senders=3,
            colocated=colocated,
            options={"late": late, "ttl": 4},
            network=NetworkSpec(latency=UniformSpec(100, 3000), loss=0.05),
            workload=WorkloadSpec(messages=90, rate_per_s=500, spread=(0.4, 0.3, 0.3)),
            settle_ms=50,
        )
        run = simulate(scenario)
        assert run.violations == []
        delivered += run.summary().delivered
    assert delivered > 4 * 90 * 2


def test_as_many_events_as_there_is_room_for_come_to_all() -> None:
    """Twelve probes at once are fewer than sixteen, however often each is heard."""
    for seed in range(40):
        scenario = Scenario(
            protocol="epto",
            seed=seed,
            groups=3,
            receivers=2,
            senders=4,
            colocated=True,
            options={"events": 16, "jitter": 0.3, "round_ns": 200_000},
            network=NetworkSpec(latency=UniformSpec(1, 10)),
            workload=WorkloadSpec(messages=4, rate_per_s=100),
            settle_ms=50,
            liveness=True,
        )
        assert simulate(scenario).violations == [], seed
