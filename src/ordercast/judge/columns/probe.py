"""Probe: what is submitted after all faults are over is delivered by everybody who is up.

A probe is a submission with the label `probe`. There are few of them, and they come last.
"""

import numpy as np

from ordercast.judge.columns.case import Case
from ordercast.judge.columns.findings import Findings
from ordercast.judge.finding import message_at, nodes_named
from ordercast.trace import PROBE


def probe(case: Case, findings: Findings) -> None:
    """Find the receivers that are up and did not deliver a probe in order."""
    account, population = case.account, case.ledger.population
    trace, rows = account.trace, account.submit_row
    labels = trace.label(rows)
    delivered, nodes = account.place, account.node
    if account.ordered is not None:
        delivered, nodes = delivered[account.ordered], nodes[account.ordered]
    for place in [place for place, label in enumerate(labels) if label == PROBE]:
        groups = account.destinations[account.destination[place]]
        came = set(nodes[np.flatnonzero(delivered == place)].tolist())
        receivers = sorted(trace.members.at_end(groups))
        missing = [
            node
            for node in receivers
            if node not in came
            and population.standing(node) != "down"
            and not case.ledger.has_state_of(node, place)
        ]
        if missing:
            sender, time_ns = int(trace.node[rows[place]]), int(trace.time[rows[place]])
            findings.add(
                (sender, *missing),
                (account.message(place),),
                (time_ns,),
                f"node {sender} submitted the probe {message_at(account.message(place), time_ns)} after all"
                f" faults were over, but {nodes_named(missing)} never delivered it",
            )
