"""Throughput over the number of concurrent clients, with and without replication (section VI.A, Figure 13).

Each client calls without think time, with requests and replies of 1 KB. The paper has words for it, and no
number: the reduction is moderate under light loads, and more prominent under heavy ones.
"""

from statistics import median

from ordercast.experiments.experiment import Case, CaseValues, Results
from ordercast.experiments.llft.calibration import Costs
from ordercast.experiments.llft.sensitivity import MODEL, PAPER, Amount
from ordercast.experiments.llft.testbed import LLFT, NAMES, TCP, counted, scenario_of
from ordercast.report.figures import Axis, Curve, Figure, over_seeds

SIZE = 1_024
RATE = "calls_per_s"


def serve(*, system: str, clients: int, packet_ns: int, link_us: float, seed: int, calls: int) -> CaseValues:
    """The throughput with so many clients."""
    scenario = scenario_of(system, replicas=3, clients=clients, size=SIZE, seed=seed)
    found = counted(scenario, Costs(packet_ns, link_us), calls)
    return CaseValues(numbers={RATE: found.messages_per_s, "seconds": found.seconds})


def cases_13(amount: Amount) -> list[Case]:
    """Both systems."""
    return [
        Case(
            parameters={"system": system, "clients": clients},
            seed=seed,
            function=f"{__name__}:serve",
            arguments={"calls": 4 * amount.calls},
            weight=1_000 * clients,
        )
        for system in NAMES
        for clients in amount.loads
        for seed in range(amount.seeds)
    ]


def figures_13(results: Results) -> tuple[Figure, ...]:
    """Throughput by clients, and in the caption what replication takes; nothing if it was not measured."""
    served = Results(result for result in results.all if "clients" in result.case.parameters)
    if not served.all:
        return ()
    kept = {
        clients: median(each.where(system=LLFT).values(RATE)) / median(each.where(system=TCP).values(RATE))
        for clients, each in served.by("clients").items()
    }
    said = ", ".join(f"{share:.2f} with {clients}" for clients, share in kept.items())
    figure = Figure(
        id="llft-13",
        title="Throughput over the number of clients, three replicas",
        caption=f"After Figure 13 of {PAPER}: requests and replies of 1 KB, each client on a host of its own."
        f" LLFT has this share of plain TCP's throughput: {said} clients. {MODEL}",
        x=Axis(label="clients", scale="log", whole=True),
        y=Axis(label="1000 calls/s", low=0.0),
        curves=tuple(
            Curve(
                label=name,
                points=over_seeds(
                    (float(str(clients)), [rate / 1e3 for rate in each.values(RATE)])
                    for clients, each in served.where(system=system).by("clients").items()
                ),
            )
            for system, name in NAMES.items()
        ),
    )
    return (figure,)
