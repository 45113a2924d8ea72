"""The one rule for loads: clients double until throughput gains little, in all experiments alike.

The first load is one client for each group, and its latency is *the* latency of a system: nothing waits for
anything else. Then the number of clients doubles. When twice the clients bring less than 5% more messages a
second, the system is saturated, and its *maximum throughput* is the highest that any load had. There is no
other end: a system that still gains gets more clients.
"""

from collections.abc import Callable, Iterator

import msgspec

from ordercast.experiments.experiment import CaseValues
from ordercast.experiments.hydra.bench import Counted, count, ready_world
from ordercast.experiments.hydra.calibration import Hardware
from ordercast.experiments.hydra.testbed import HYDRA, hydra_options, microbenchmark

GAIN_LEAST = 0.05
"""What twice the load must bring, or the system is saturated."""
DOUBLINGS_MAX = 16
"""A system that still gains then would be a defect of the model."""
PEAK, LATENCY, MEAN, CLIENTS = "max_messages_per_s", "p50_ns", "mean_ns", "clients_at_saturation"


def saturated(rates: list[float]) -> bool:
    """Whether the last doubling of the load has brought too little."""
    return len(rates) > 1 and rates[-1] < (1 + GAIN_LEAST) * rates[-2]


def doubled(first: int, measure: Callable[[int], Counted]) -> Iterator[Counted]:
    """Measure load after load until the system is saturated."""
    rates: list[float] = []
    for doubling in range(DOUBLINGS_MAX):
        counted = measure(first << doubling)
        rates.append(counted.messages_per_s)
        yield counted
        if saturated(rates):
            return


def closed_loop(
    *,
    system: str,
    packet_ns: int,
    link_us: float,
    seed: int,
    messages: int,
    groups: int = 1,
    receivers: int = 3,
    sequencers: int = 2,
    flush: str = "",
    flush_ns: int = -1,
    skew_us: float = 0.0,
    least_us: float = 0.0,
) -> CaseValues:
    """The maximum throughput of a system, its latency with one client for each group, and all loads.

    Without a flush policy Hydra has its own default; for the baselines it means nothing.
    """
    hardware = Hardware(packet_ns, link_us)
    options = hydra_options(sequencers=sequencers, flush=flush, flush_ns=flush_ns) if system == HYDRA else {}

    def measure(clients: int) -> Counted:
        scenario = microbenchmark(
            system,
            clients=clients,
            seed=seed,
            groups=groups,
            receivers=receivers,
            options=options,
            hardware=hardware,
        )
        world = ready_world(scenario, order_ns=hardware.order_ns(system), skew_us=skew_us)
        return count(scenario, world, clients=clients, messages=messages, least_us=least_us)

    return summary(list(doubled(groups, measure)))


def summary(loads: list[Counted]) -> CaseValues:
    """The numbers of a case, and its loads as records."""
    light = loads[0]
    numbers = {
        PEAK: max(load.messages_per_s for load in loads),
        LATENCY: light.p50_ns,
        MEAN: light.mean_ns,
        CLIENTS: float(loads[-1].clients),
        "seconds": sum(load.seconds for load in loads),
    }
    return CaseValues(numbers=numbers, records=[msgspec.to_builtins(load) for load in loads])
