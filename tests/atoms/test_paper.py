"""What the paper promises, in runs of the protocol: Figure 1, one order, no waiting, causal order."""

from typing import Any

import pytest

from ordercast.judge import audit
from ordercast.protocols.atoms.registry import Registry
from ordercast.scenario.changes import Join, Leave
from ordercast.scenario.spec import NetworkSpec, Scenario, SubmissionSpec, UniformSpec, WorkloadSpec
from ordercast.sim.build import build_world
from ordercast.sim.run import Run, drive, simulate
from ordercast.trace import Kind
from tests.atoms.lab import Lab
from tests.deep import deep_after

A, B, C, D = range(4)
FIGURE_1A = ((A, B, C), (B, C), (A, B, D), (), ())
Q0, Q1, Q2 = frozenset({B, C}), frozenset({A, B}), frozenset({B, D})


def overlaps(registry: Registry) -> set[frozenset[int]]:
    """The overlaps that have an atom. Groups that get their members one by one may leave two for one."""
    graph = registry.graph
    return {graph.overlap(atom) for atom in graph.atoms if graph.overlap(atom)}


def path(registry: Registry, group: int, *, own: bool = False) -> set[frozenset[int]]:
    """The overlaps on the path of a group: of all atoms, or of those that number it."""
    graph = registry.graph
    return {graph.overlap(atom) for atom in (graph.own_atoms(group) if own else graph.path(group))}


def everybody_sends(lab: Lab, name: str) -> None:
    for group in range(5):
        for count in range(3):
            lab.submit(f"{name}{group}{count}", group, (group + count) % 2)


def test_figure_1_step_by_step() -> None:
    lab = Lab(*FIGURE_1A, publishers=2)
    everybody_sends(lab, "a")
    assert overlaps(lab.registry()) == {Q0, Q1}
    assert path(lab.registry(), 0) == {Q0, Q1}
    assert path(lab.registry(), 1) == {Q0}
    assert path(lab.registry(), 2) == {Q1}
    for node in (B, C, D):  # (b): G3 is redirected through Q1, which does not number it
        lab.join(node, 3)
    everybody_sends(lab, "b")
    lab.wait_ms(60)
    assert overlaps(lab.registry()) == {Q0, Q1, Q2}
    assert path(lab.registry(), 3) == {Q0, Q1, Q2}
    assert path(lab.registry(), 3, own=True) == {Q0, Q2}
    for node in (B, D):  # (c): G4 makes no new overlap
        lab.join(node, 4)
    everybody_sends(lab, "c")
    lab.wait_ms(60)
    assert overlaps(lab.registry()) == {Q0, Q1, Q2}
    assert path(lab.registry(), 4) == {Q2}
    for node in (A, B, C):  # (d): Q1 retires with G0
        lab.leave(node, 0)
    everybody_sends(lab, "d")
    lab.wait_ms(60)
    assert overlaps(lab.registry()) == {Q0, Q2}
    assert path(lab.registry(), 3) == {Q0, Q2}
    assert lab.finish() == set()
    expected = {f"{name}3{count}" for name in "cd" for count in range(3)}
    assert all(expected <= set(lab.log(node, 3)) for node in (B, C, D))


def scenario(seed: int, **changes: Any) -> Scenario:
    """Figure 1 from (a) to (d) under load: G3 and G4 come, G0 goes."""
    usual: dict[str, Any] = {
        "protocol": "atoms",
        "seed": seed,
        "membership": FIGURE_1A,
        "senders": 3,
        "network": NetworkSpec(latency=UniformSpec(50, 2000), loss=0.02),
        "workload": WorkloadSpec(messages=300, rate_per_s=1000),
        "join": (
            *(Join(at_ms=60, node=node, group=3) for node in (B, C, D)),
            *(Join(at_ms=130, node=node, group=4) for node in (B, D)),
        ),
        "leave": tuple(Leave(at_ms=200, node=node) for node in (A, B, C)),
        "settle_ms": 800,
        "liveness": True,
    }
    return Scenario(**(usual | changes))


def judged(run: Run) -> Run:
    """Both judges find nothing."""
    assert run.violations == []
    assert audit(run.description, run.table).violations == []
    return run


@pytest.mark.parametrize("seed", deep_after(1, range(6)))
def test_figure_1_under_load_keeps_all_promises(seed: int) -> None:
    run = judged(simulate(scenario(seed)))
    kinds = [(event.kind, event.node) for event in run.events() if event.kind in (Kind.JOINED, Kind.LEFT)]
    assert sorted(kinds) == sorted(
        [(Kind.JOINED, node) for node in (B, C, D, B, D)] + [(Kind.LEFT, node) for node in (A, B, C)]
    )
    assert {event.node for event in run.events() if event.kind is Kind.DELIVER} == {A, B, C, D}


@pytest.mark.parametrize("seed", deep_after(1, range(6)))
def test_senders_in_their_groups_see_causal_order(seed: int) -> None:
    """Messages are answered by those who have delivered them, on hosts that are in both groups."""
    changed = scenario(
        seed,
        membership=((A, B, C), (B, C, D), (A, C, D)),
        senders=4,
        colocated=True,
        join=(Join(at_ms=60, node=A, group=1),),
        leave=(Leave(at_ms=150, node=C, group=2),),
        options={"causal": True},
    )
    run = judged(simulate(changed))
    assert run.description.guarantees.causality.name == "CAUSAL"


def test_a_publisher_waits_with_another_group_until_its_message_has_its_place() -> None:
    lab = Lab((0, 1), (1, 2), causal=True)
    lab.lost = lambda source, to, message: True
    assert lab.submit("a", 0)
    assert not lab.submit("b", 1)
    assert lab.submit("c", 0)
    lab.lost = lambda source, to, message: False
    lab.wait_ms(100)
    assert lab.submit("b", 1)
    assert lab.finish() == set()
    assert lab.log(1) == ["a", "c", "b"]


def test_members_of_a_group_see_its_messages_in_one_order_and_at_once() -> None:
    """A message that is next everywhere is delivered when it comes, without a further round."""
    submissions = tuple(
        SubmissionSpec(at_ms=100 * count, sender=count % 2, groups=(count % 3,)) for count in range(1, 10)
    )
    chosen = scenario(
        0,
        membership=((A, B, C), (B, C), (A, B, D)),
        senders=2,
        network=NetworkSpec(),
        workload=WorkloadSpec(kind="listed", submission=submissions),
        join=(),
        leave=(),
    )
    world = build_world(chosen, chosen.plan())
    run = judged(drive(chosen, world))
    sent = {event.message: event.time_ns for event in run.events() if event.kind is Kind.SUBMIT}
    times = [
        e.time_ns - sent[e.message] for e in run.events() if e.kind is Kind.DELIVER and e.message in sent
    ]
    assert len(times) >= 3 * (3 + 2 + 3)
    hops = max(len(plan.hops) + len(plan.holders) for plan in registry_of(FIGURE_1A[:3]).plans.values())
    assert max(times) <= (hops + 1) * 51_000, "a message takes its path, and 50 us for each step of it"


def registry_of(groups: tuple[tuple[int, ...], ...]) -> Registry:
    return Registry(dict(enumerate(groups)), (6, 7, 8), 2, "shared_member", False)
