"""The primary crashes: detection, view change by replicas (Figure 16), recovery by clients (Figure 17)."""

from statistics import median

from ordercast.core import MICROSECOND, MILLISECOND
from ordercast.experiments.experiment import Case, Evaluation, Measurement, Results
from ordercast.experiments.llft.sensitivity import MODEL, PAPER, Amount, on_testbed
from ordercast.report.figures import Axis, Curve, Figure, over_seeds

REPLICAS = (2, 3, 4, 5, 6, 7, 8)
CLIENTS = (1, 2, 4, 8, 16, 32)
TWO, THREE = 2, 3
DETECTION_CLAIM, VIEW_CLAIM, RECOVERY_CLAIM = (
    "llft.detection_ms",
    "llft.view_change_two",
    "llft.recovery_two_vs_three",
)
_FUNCTION = "ordercast.experiments.llft.failing:fail"


def cases_16(amount: Amount) -> list[Case]:
    """No client calls."""
    return [
        Case(parameters={"replicas": replicas, "clients": 0}, seed=seed, function=_FUNCTION)
        for replicas in (REPLICAS if amount.thorough else (TWO, THREE, REPLICAS[-1]))
        for seed in range(4 * amount.seeds)
    ]


def cases_17(amount: Amount) -> list[Case]:
    """Two and three replicas, under load."""
    return [
        Case(
            parameters={"replicas": replicas, "clients": clients},
            seed=seed,
            function=_FUNCTION,
            weight=clients,
        )
        for replicas in (TWO, THREE)
        for clients in (CLIENTS if amount.thorough else (CLIENTS[0], CLIENTS[-1]))
        for seed in range(amount.seeds)
    ]


def evaluate_16(results: Results) -> Evaluation:
    """When the first backup notices, and how long the view takes."""
    detections = [value / MILLISECOND for value in results.values("detection_ns")]
    by = {int(replicas): each for replicas, each in results.by("replicas").items()}
    waited = {replicas: int(max(each.values("waited_for"))) for replicas, each in by.items()}
    latency = {replicas: median(each.values("view_change_ns")) / 1e3 for replicas, each in by.items()}
    said = ", ".join(f"{waited[replicas]} with {replicas} ({latency[replicas]:.3g} us)" for replicas in by)
    figure = Figure(
        id="llft-16",
        title="Primary view change latency over the number of replicas",
        caption=f"After Figure 16 of {PAPER}: from the suspicion to a determined view; no client calls."
        f" {MODEL}",
        x=Axis(label="replicas before the crash", whole=True),
        y=Axis(label="latency (us)", low=0.0),
        curves=(
            Curve(
                label="view change",
                points=over_seeds(
                    (float(replicas), [one / 1e3 for one in each.values("view_change_ns")])
                    for replicas, each in by.items()
                ),
            ),
        ),
    )
    return Evaluation(
        measurements=(
            Measurement(
                claim=DETECTION_CLAIM,
                value=median(detections),
                note=f"{min(detections):.1f} to {max(detections):.1f} ms over {len(detections)} crashes at"
                " any time between two heartbeats",
            ),
            Measurement(
                claim=VIEW_CLAIM,
                value=float(waited[TWO]),
                note=f"acceptances waited for, and the median latency: {said}",
            ),
        ),
        figures=(figure,),
    )


def evaluate_17(results: Results) -> Evaluation:
    """Recovery with two replicas against that with three; the number of clients that is worst counts."""
    medians = {
        replicas: {
            int(clients): median(each.values("recovery_ns"))
            for clients, each in results.where(replicas=replicas).by("clients").items()
        }
        for replicas in (TWO, THREE)
    }
    ratios = {clients: medians[TWO][clients] / medians[THREE][clients] for clients in medians[TWO]}
    said = "; ".join(
        f"{clients} clients {medians[TWO][clients] / 1e3:.0f} and {medians[THREE][clients] / 1e3:.0f} us"
        f" ({ratio:.2f})"
        for clients, ratio in ratios.items()
    )
    outages = {
        replicas: median(results.where(replicas=replicas).values("outage_ns")) / MILLISECOND
        for replicas in (TWO, THREE)
    }
    figure = Figure(
        id="llft-17",
        title="Recovery latency over the number of clients",
        caption=f"After Figure 17 of {PAPER}: from the suspicion to the beginning of the view, under load."
        f" {MODEL}",
        x=Axis(label="clients", scale="log", whole=True),
        y=Axis(label="latency (us)", low=0.0),
        curves=tuple(
            Curve(
                label=f"{replicas} replicas",
                points=over_seeds(
                    (float(clients), [one / MICROSECOND for one in each.values("recovery_ns")])
                    for clients, each in _by_clients(results.where(replicas=replicas)).items()
                ),
            )
            for replicas in (TWO, THREE)
        ),
    )
    measured = Measurement(
        claim=RECOVERY_CLAIM,
        value=max(ratios.values()),
        note=f"the largest ratio: {said}; a client waits {outages[TWO]:.1f} and {outages[THREE]:.1f} ms for"
        " its next answer, most of it for the detection",
    )
    return Evaluation(measurements=(measured,), figures=(figure,))


def _by_clients(results: Results) -> dict[int, Results]:
    return {int(clients): each for clients, each in results.by("clients").items()}


EXPERIMENTS = (
    on_testbed(
        name="llft-16",
        title="Detection, and view change latency by replicas",
        source="section VI.C, Figure 16",
        claims=(DETECTION_CLAIM, VIEW_CLAIM),
        cases=cases_16,
        evaluate=evaluate_16,
    ),
    on_testbed(
        name="llft-17",
        title="Recovery latency by clients",
        source="section VI.C, Figure 17",
        claims=(RECOVERY_CLAIM,),
        cases=cases_17,
        evaluate=evaluate_17,
    ),
)
