"""Transactions under loss of packets (NSDI 2023, appendix A.2, Figure 12).

Single keys, as in Figure 6. Loss strikes each packet between two hosts, those of clients too; a second run of
the sequenced systems has losses only on the ways from sequencers to replicas.

A load is counted for less time than a client waits before it calls again. So at the lighter loads clients
that wait take part in nothing; at the heaviest, which are the maximum, others keep the replicas busy.
"""

from statistics import median

from ordercast.experiments.experiment import Case, Evaluation, Results
from ordercast.experiments.hydra.losing import (
    EVERYWHERE,
    FROM_SEQUENCERS,
    LOSSES,
    kept_under_loss,
    loss_figure,
)
from ordercast.experiments.hydra.results import PAPER, compared, typical_ratio
from ordercast.experiments.hydra.sensitivity import Effort, on_testbed
from ordercast.experiments.hydra.transaction_figures import MODEL
from ordercast.experiments.hydra.transaction_runs import (
    ERIS,
    FUNCTION,
    HYDRA_TXN,
    PART,
    SEQUENCED,
    SYSTEMS,
)

CLAIM, CLAIMED_LOSS = "hydra.txn.drop_1pct", 0.01


def cases_12(effort: Effort) -> list[Case]:
    """All systems under loss; those that no claim needs with one seed."""
    thorough = effort.thorough
    found = [(system, EVERYWHERE) for system in (SYSTEMS if thorough else SEQUENCED)]
    found += [(system, FROM_SEQUENCERS) for system in (SEQUENCED if thorough else (HYDRA_TXN,))]
    return [
        Case(
            parameters={"system": system, "loss": loss, "where": where},
            seed=seed,
            function=FUNCTION,
            arguments={"messages": effort.messages if system == HYDRA_TXN else PART},
        )
        for system, where in found
        for loss in (LOSSES if thorough else (0.0, CLAIMED_LOSS))
        for seed in range(effort.seeds if system == HYDRA_TXN else 1)
    ]


def evaluate_12(results: Results) -> Evaluation:
    """Maximum throughput under loss, as a share of that without."""
    everywhere, narrow = (results.where(where=where) for where in (EVERYWHERE, FROM_SEQUENCERS))
    hydra, eris = (everywhere.where(system=system) for system in (HYDRA_TXN, ERIS))
    figure = loss_figure(
        "hydra-12",
        "Transactions over shards under packet loss",
        f"After Figure 12 of {PAPER}. One key is read or written. {MODEL}",
        SYSTEMS,
        results,
    )
    spared = median(kept_under_loss(narrow.where(system=HYDRA_TXN), CLAIMED_LOSS).values())
    lossy = hydra.where(loss=CLAIMED_LOSS)
    beside = [typical_ratio(lossy, eris.where(loss=loss)) for loss in (CLAIMED_LOSS, 0.0)]
    measured = compared(
        CLAIM,
        kept_under_loss(hydra, CLAIMED_LOSS),
        f"{beside[0]:.3g} times Eris with the same losses, and {beside[1]:.3g} times Eris without any",
        f"losses only from sequencers to replicas: {spared:.3g}",
    )
    return Evaluation(measurements=(measured,), figures=(figure,))


EXPERIMENTS = (
    on_testbed(
        name="hydra-12",
        title="Transactions over shards under loss",
        source=f"{PAPER}, appendix A.2, Figure 12",
        claims=(CLAIM,),
        cases=cases_12,
        evaluate=evaluate_12,
    ),
)
