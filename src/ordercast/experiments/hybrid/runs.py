"""One run of a protocol with tickets, as the simulations of the hybrid paper have them.

Every process sends and receives. A message's latency is the time until the last process has delivered it; a
run's latency is the mean over all messages (section 3). Sources are quasi-periodic, and each begins at a
random time within its interval: sources in step would flatter the symmetric protocol. Members send a clock
alone only after a silence that is longer than any interval, because the paper's processes always have
messages to send. Heartbeats are slow, so that they cost nothing.
"""

from collections.abc import Sequence
from random import Random
from statistics import mean
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ordercast.core import SECOND, RemoteError
from ordercast.experiments.experiment import CaseValues
from ordercast.scenario.spec import ConstantSpec, NetworkSpec, PhaseSpec, Scenario, SitesSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind

LATENCY = "latency_ms"
TOKEN_SITE, SYMMETRIC, STATIC, DYNAMIC = "token_site", "symmetric", "static_hybrid", "hybrid"
WARM_UP_S = 3.0
"""Messages of this time are not counted."""
SILENCE_NS = 3 * SECOND
"""Only at the end of a run, when nobody sends any more."""

PROBE_NS = SECOND
"""The paper measures delays every few seconds."""
STEADY_FROM = 0.6
"""From this share of a load's time on, members count as having adapted to it."""
MARGIN_S = 2.0
"""Messages at the end of a load's time may be ordered under the next one, or when nobody sends any more; they
are not counted."""

Network: TypeAlias = ConstantSpec | SitesSpec
Source: TypeAlias = Literal["periodic", "poisson"]


def flat(
    *, seed: int, system: str, delay_ms: float, processes: int, rate_per_s: float, seconds: float
) -> CaseValues:
    """Processes that are all equally far from each other and send at the same rate."""
    rates = [rate_per_s] * processes
    return _values(_run(seed, system, ConstantSpec(us=delay_ms * 1000), rates, seconds, {}), seconds)


def two_sites(
    *,
    seed: int,
    system: str,
    near_ms: float,
    far_ms: float,
    high: tuple[int, ...],
    rates_per_s: tuple[float, float],
    seconds: float,
) -> CaseValues:
    """Three processes at one place and two at another; some have a high load and the others a low one.

    With static roles, heavily loaded processes are active and the others passive (section 4.4).
    """
    rates = [rates_per_s[0] if node in high else rates_per_s[1] for node in range(5)]
    options: dict[str, object] = {"active": list(high)} if system == STATIC else {}
    return _values(_run(seed, system, places(near_ms, far_ms), rates, seconds, options), seconds)


def places(near_ms: float, far_ms: float) -> SitesSpec:
    """Three processes at one place and two at another."""
    near, far = ConstantSpec(us=near_ms * 1000), ConstantSpec(us=far_ms * 1000)
    return SitesSpec(sites=((0, 1, 2), (3, 4)), near=near, far=far)


class Wait(NamedTuple):
    """How long a message took."""

    sent_s: float
    latency_ms: float


class UnderLoad(msgspec.Struct, frozen=True):
    """What a protocol does under one of several loads."""

    latency_ms: float
    """In the steady state."""
    adapted_s: float
    """From the change of the load until the last member changed its role, before the steady state."""
    adapted_messages: int
    """How many messages were submitted in this time."""
    changes: int
    """Changes of role before the steady state."""
    late: int
    """Changes of role in the steady state, where nothing has changed."""


def changing(
    *,
    seed: int,
    system: str,
    network: SitesSpec,
    source: Source,
    rates: Sequence[Sequence[float]],
    seconds: float,
    detector: str,
) -> list[UnderLoad]:
    """Several loads, which follow each other every so many seconds."""
    phases = _beginning(seed, rates[0])
    for number, now in enumerate(rates[1:], 1):
        phases += [
            PhaseSpec(at_ms=number * seconds * 1000, rate_per_s=rate, senders=(place,))
            for place, rate in enumerate(now)
        ]
    messages = round(sum(map(sum, rates)) * seconds)
    workload = _workload(source, messages, phases)
    run = _simulate(seed, system, network, len(rates[0]), workload, {"detector": detector})
    whole, changed = waits(run), role_changes(run)
    return [
        _under_load(whole, changed, number * seconds, (number + 1) * seconds) for number in range(len(rates))
    ]


def _under_load(whole: list[Wait], changed: list[float], begin_s: float, end_s: float) -> UnderLoad:
    steady_s = begin_s + STEADY_FROM * (end_s - begin_s)
    early = [at for at in changed if begin_s <= at < steady_s]
    adapted_s = max(early, default=begin_s)
    submitted = [wait.sent_s for wait in whole]
    return UnderLoad(
        mean(between(whole, steady_s, end_s - MARGIN_S)),
        adapted_s - begin_s,
        sum(begin_s <= at < adapted_s for at in submitted),
        len(early),
        sum(steady_s <= at < end_s for at in changed),
    )


def role_changes(run: Run) -> list[float]:
    """When members changed their roles, in seconds; the first role is no change, nor is another
    sequencer."""
    roles: dict[int, str] = {}
    found = []
    for event in run.events():
        if event.kind is Kind.ROLE and event.label is not None:
            role, _, _ = event.label.partition(":")
            if roles.get(event.node, role) != role:
                found.append(event.time_ns / SECOND)
            roles[event.node] = role
    return found


def _run(
    seed: int, system: str, network: Network, rates: list[float], seconds: float, options: dict[str, object]
) -> Run:
    workload = _workload("periodic", round(sum(rates) * seconds), _beginning(seed, rates))
    return _simulate(seed, system, network, len(rates), workload, options)


def _beginning(seed: int, rates: Sequence[float]) -> list[PhaseSpec]:
    """Each source begins at a random time within its interval."""
    rng = Random(f"{seed}/phases")
    offsets = sorted((rng.random() / rate, place) for place, rate in enumerate(rates))
    begin = [PhaseSpec(rate_per_s=0.0)]
    return begin + [
        PhaseSpec(at_ms=at * 1000, rate_per_s=rates[place], senders=(place,)) for at, place in offsets
    ]


def _workload(source: Source, messages: int, phases: list[PhaseSpec]) -> WorkloadSpec:
    return WorkloadSpec(kind=source, messages=messages, phase=tuple(phases))


def _simulate(
    seed: int,
    system: str,
    network: Network,
    processes: int,
    workload: WorkloadSpec,
    options: dict[str, object],
) -> Run:
    scenario = Scenario(
        protocol=system,
        seed=seed,
        receivers=processes,
        senders=processes,
        colocated=True,
        network=NetworkSpec(latency=network),
        workload=workload,
        options={
            "silence_ns": SILENCE_NS,
            "probe_ns": PROBE_NS,
            "window": 1 << 16,
            "views": {"heartbeat_ns": SECOND, "suspect_ns": 60 * SECOND, "window": 1 << 16},
            **options,
        },
        settle_ms=10_000,
    )
    run = simulate(scenario)
    if run.violations:
        raise RemoteError(f"a promise was broken: {run.violations[0]}")
    return run


def _values(run: Run, seconds: float) -> CaseValues:
    return CaseValues(numbers={LATENCY: mean(between(waits(run), WARM_UP_S, seconds - MARGIN_S))})


def waits(run: Run) -> list[Wait]:
    """For each message that all delivered, when it was sent, and the time until the last one delivered it."""
    sent: dict[int, int] = {}
    last: dict[int, list[int]] = {}
    for event in run.events():
        if event.kind is Kind.SUBMIT and event.message is not None:
            sent[event.message] = event.time_ns
        elif event.kind is Kind.DELIVER and event.message is not None:
            last.setdefault(event.message, []).append(event.time_ns)
    everybody = len(run.description.groups[0])
    whole = [(sent[message], times) for message, times in last.items() if len(times) == everybody]
    return [Wait(at / SECOND, (max(times) - at) / 1e6) for at, times in whole]


def between(whole: list[Wait], begin_s: float, end_s: float) -> list[float]:
    """The latencies of the messages that were sent in this time."""
    return [wait.latency_ms for wait in whole if begin_s <= wait.sent_s < end_s]
