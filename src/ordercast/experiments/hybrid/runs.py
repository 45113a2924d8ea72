"""One run of a protocol with tickets, as the simulations of the hybrid paper have them.

Every process sends and receives. A message's latency is the time until the last process has delivered it; a
run's latency is the mean over all messages (section 3). Sources are quasi-periodic, and each begins at a
random time within its interval: sources in step would flatter the symmetric protocol. Members send a clock
alone only after a silence that is longer than any interval, because the paper's processes always have
messages to send. Heartbeats are slow, so that they cost nothing.
"""

from random import Random
from statistics import mean

from ordercast.core import SECOND, RemoteError
from ordercast.experiments.experiment import CaseValues
from ordercast.scenario.spec import ConstantSpec, NetworkSpec, PhaseSpec, Scenario, SitesSpec, WorkloadSpec
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind

LATENCY = "latency_ms"
TOKEN_SITE, SYMMETRIC, STATIC = "token_site", "symmetric", "static_hybrid"
WARM_UP_S = 3.0
"""Messages of this time are not counted."""
SILENCE_NS = 3 * SECOND
"""Only at the end of a run, when nobody sends any more."""

Network = ConstantSpec | SitesSpec


def flat(
    *, seed: int, system: str, delay_ms: float, processes: int, rate_per_s: float, seconds: float
) -> CaseValues:
    """Processes that are all equally far from each other and send at the same rate."""
    rates = [rate_per_s] * processes
    return _values(_run(seed, system, ConstantSpec(us=delay_ms * 1000), rates, seconds, {}))


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
    network = SitesSpec(
        sites=((0, 1, 2), (3, 4)), near=ConstantSpec(us=near_ms * 1000), far=ConstantSpec(us=far_ms * 1000)
    )
    options: dict[str, object] = {"active": list(high)} if system == STATIC else {}
    return _values(_run(seed, system, network, rates, seconds, options))


def _run(
    seed: int, system: str, network: Network, rates: list[float], seconds: float, options: dict[str, object]
) -> Run:
    rng = Random(f"{seed}/phases")
    begin = [PhaseSpec(rate_per_s=0.0)]
    offsets = sorted((rng.random() / rate, place) for place, rate in enumerate(rates))
    begin += [PhaseSpec(at_ms=at * 1000, rate_per_s=rates[place], senders=(place,)) for at, place in offsets]
    scenario = Scenario(
        protocol=system,
        seed=seed,
        receivers=len(rates),
        senders=len(rates),
        colocated=True,
        network=NetworkSpec(latency=network),
        workload=WorkloadSpec(
            kind="periodic", messages=round(sum(rates) * seconds), rate_per_s=max(rates), phase=tuple(begin)
        ),
        options={
            "silence_ns": SILENCE_NS,
            "window": 1 << 16,
            "views": {"heartbeat_ns": SECOND, "suspect_ns": 60 * SECOND, "window": 1 << 16},
            **options,
        },
        settle_ms=10_000,
    )
    return simulate(scenario)


def _values(run: Run) -> CaseValues:
    if run.violations:
        raise RemoteError(f"a promise was broken: {run.violations[0]}")
    return CaseValues(numbers={LATENCY: mean(_latencies(run))})


def _latencies(run: Run) -> list[float]:
    """For each message after the warm-up that all delivered, the time until the last one did."""
    sent: dict[int, int] = {}
    last: dict[int, list[int]] = {}
    for event in run.events():
        if event.kind is Kind.SUBMIT and event.message is not None:
            sent[event.message] = event.time_ns
        elif event.kind is Kind.DELIVER and event.message is not None:
            last.setdefault(event.message, []).append(event.time_ns)
    everybody = len(run.description.groups[0])
    whole = [(sent[message], times) for message, times in last.items() if len(times) == everybody]
    return [(max(times) - at) / 1e6 for at, times in whole if at >= WARM_UP_S * SECOND]
