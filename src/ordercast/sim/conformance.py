"""The conformance suite: tests whether a protocol keeps all its guarantees.

It takes a function that makes plans, not a name, so that it can test a protocol under construction or a
broken variant. Each clause names what it tests. A failure names the clause, the seed and the finding.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from random import Random

import msgspec

from ordercast.core import (
    FAILED,
    Deployment,
    Explanation,
    Fault,
    LocalError,
    Plan,
    ProtocolFailed,
    exception_text,
)
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.scenario.swarm import MakePlan, draw_service, swarm_scenario
from ordercast.sim.run import Run, simulate
from ordercast.sim.world import World
from ordercast.trace import READ, Kind


class Failure(msgspec.Struct, frozen=True):
    """One promise that was not kept."""

    clause: str
    seed: int
    property: str
    message: str


def conformance(
    make_plan: MakePlan, seeds: Iterable[int] = range(20), progress: Callable[[], None] = lambda: None
) -> list[Failure]:
    """Test every promise of the plans that `make_plan` makes, with these seeds.

    `progress` is called after each clause of each seed.
    """
    failures: list[Failure] = []
    for seed in seeds:
        for clause in _CLAUSES:
            failures += _held(clause, make_plan, seed)
            progress()
    return failures


def clauses() -> dict[str, str]:
    """The clauses of the suite by name, each with what it tests."""
    return {_name(clause): (clause.__doc__ or "").strip() for clause in _CLAUSES}


def _held(
    clause: Callable[[MakePlan, int], Iterator[Failure]], make_plan: MakePlan, seed: int
) -> list[Failure]:
    """The failures of one clause; an exception of the protocol is a failure."""
    try:
        return list(clause(make_plan, seed))
    except ProtocolFailed as failed:
        return [Failure(_name(clause), seed, FAILED, str(failed.failure))]
    except Exception as error:
        return [Failure(_name(clause), seed, "exception", exception_text(error))]


def _name(clause: Callable[[MakePlan, int], Iterator[Failure]]) -> str:
    return clause.__name__.strip("_").replace("_", " ")


def _judged(clause: str, run: Run) -> Iterator[Failure]:
    for violation in run.violations:
        yield Failure(clause, run.scenario.seed, violation.property, violation.detail)


def _served(make_plan: MakePlan, scenario: Scenario) -> Scenario:
    """The scenario with a service in most seeds, if the protocol replicates services."""
    return draw_service(scenario, make_plan(scenario.deployment()), Random(f"{scenario.seed}/service"))


def _swarm(make_plan: MakePlan, seed: int, only: Fault | None = None) -> tuple[Scenario, Plan]:
    scenario = swarm_scenario("", seed, make_plan, only)
    return scenario, make_plan(scenario.deployment())


def _calm(make_plan: MakePlan, seed: int) -> Iterator[Failure]:
    """On a good network without faults, every message reaches all of its receivers; reads are answered."""
    groups_max = make_plan(Deployment.disjoint(1 + seed % 3, 1 + seed % 4, 2)).groups_max
    scenario = Scenario(
        protocol="",
        seed=seed,
        receivers=1 + seed % 4,
        groups=1 + seed % 3,
        senders=2,
        workload=WorkloadSpec(spread=(0.7, 0.3)[:groups_max]),
    )
    scenario = _served(make_plan, scenario)
    run = simulate(scenario, make_plan(scenario.deployment()))
    yield from _judged("calm", run)
    summary = run.summary()
    wanted = sum(
        len({node for group in event.groups or () for node in run.description.groups[group]})
        for event in run.events()
        if event.kind is Kind.SUBMIT and event.label != READ
    )
    if summary.delivered != wanted:
        found = f"{summary.delivered} of {wanted} deliveries on a network without faults"
        yield Failure("calm", seed, "delivery", found)


def _each_fault(make_plan: MakePlan, seed: int) -> Iterator[Failure]:
    """Each fault that the protocol tolerates, alone; the seeds take them in turn."""
    faults = make_plan(Deployment.disjoint(1, 1, 1)).guarantees.tolerates
    if faults:
        fault = faults[seed % len(faults)]
        yield from _judged(f"fault: {fault}", simulate(*_swarm(make_plan, seed, fault)))


def _everything(make_plan: MakePlan, seed: int) -> Iterator[Failure]:
    """Faults of all kinds together."""
    yield from _judged("swarm", simulate(*_swarm(make_plan, seed)))


def _determinism(make_plan: MakePlan, seed: int) -> Iterator[Failure]:
    """The same seed gives the same trace."""
    hashes = [simulate(*_swarm(make_plan, seed)).description.trace_hash for _ in range(2)]
    if hashes[0] != hashes[1]:
        yield Failure("determinism", seed, "determinism", "two runs with the same seed differ")


def _codec(make_plan: MakePlan, seed: int) -> Iterator[Failure]:
    """A run is the same if packets pass through the codec: messages are immutable and serialisable."""
    scenario, _ = _swarm(make_plan, seed)
    runs = [
        simulate(msgspec.structs.replace(scenario, codec=codec), make_plan(scenario.deployment()))
        for codec in (False, True)
    ]
    if runs[0].description.trace_hash != runs[1].description.trace_hash:
        yield Failure("codec", seed, "codec", "the run differs when packets pass through the codec")


def _explanations(make_plan: MakePlan, seed: int) -> Iterator[Failure]:
    """Asking every process to explain itself at any time changes nothing."""
    scenario = Scenario(
        protocol="", seed=seed, senders=2, workload=WorkloadSpec(messages=20, rate_per_s=5000)
    )
    scenario = _served(make_plan, scenario)
    plain, asked = (simulate(scenario, _asking(make_plan(scenario.deployment()), ask)) for ask in (0, 1))
    if plain.description.trace_hash != asked.description.trace_hash:
        yield Failure("explain", seed, "explain", "explain() changes the run")


def _asking(plan: Plan, ask: int) -> Plan:
    """The same plan, but every process is asked to explain itself after each message."""
    if not ask:
        return plan
    nodes = []
    for node in plan.nodes:

        def factory(env, make=node.factory):  # type: ignore[no-untyped-def]
            process = make(env)
            handler = process.on_message

            def on_message(source, message):  # type: ignore[no-untyped-def]
                handler(source, message)
                if not isinstance(process.explain(), Explanation):
                    raise LocalError(f"explain() of {type(process).__name__} does not return an Explanation")

            process.on_message = on_message
            return process

        nodes.append(replace(node, factory=factory))
    return replace(plan, nodes=tuple(nodes))


def _bad_input(make_plan: MakePlan, seed: int) -> Iterator[Failure]:
    """A message to an unknown group is refused with `LocalError`."""
    world = World(make_plan(Deployment.disjoint(1, 3, 1)), seed)
    world.run(0)
    member = world.plan.member(world.envs[world.plan.senders[0]].process)
    for groups in ((99,), ()):
        try:
            member.submit(groups, b"nobody")
        except LocalError:
            continue
        yield Failure("bad input", seed, "bad input", f"a message to groups {groups} was accepted")


_CLAUSES = (_calm, _each_fault, _everything, _determinism, _codec, _explanations, _bad_input)
