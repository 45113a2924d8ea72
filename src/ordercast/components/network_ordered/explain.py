"""What a replica waits for, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.components.network_ordered.views import RETURNING
from ordercast.core import Explanation, Wait

if TYPE_CHECKING:
    from ordercast.components.network_ordered.replica import NetworkReplica


def explain_replica(replica: NetworkReplica) -> Explanation:
    """Its view, the slots that are missing, and what its ordering waits for."""
    state: dict[str, str | int] = {
        "role": "leader" if replica.leads else "replica",
        "view": replica.view,
        "status": replica.views.status.value,
        "calls executed": replica.ledger.executor.executed,
        "entries not certain": len(replica.log.entries) - replica.log.synced,
    }
    waits = [
        Wait(f"number {slot[1]} of sequencer {slot[0]}", "a replica that has it", since, on=replica.others)
        for slot, since in replica.gaps.open.items()
    ]
    waits += replica.ordering.waits()
    if replica.views.status is RETURNING:
        blocker = "a view that a majority which remembers begins, without its vote"
        waits.append(Wait("its lost memory", blocker, replica.views.life, on=replica.others))
    behind = "" if replica.is_normal else "a view"
    return Explanation(state, tuple(sorted(waits, key=lambda wait: wait.since)), behind)
