"""A host whose disk is wiped again and again, and what its node delivered in each of its lives."""

from ordercast.core import HostId, MessageId, NodeId
from ordercast.scenario.faults import Crash, Disk, FaultSpec, Restart
from ordercast.sim.run import Run
from ordercast.trace import CARRYING, Kind


def wiped_again_and_again(host: HostId) -> tuple[FaultSpec, ...]:
    """Ten crashes while messages flow; each time the host is soon back with an empty disk."""
    crashes = [50 + 40 * number for number in range(10)]
    return tuple(
        fault
        for place, at in enumerate(crashes)
        for fault in (
            Disk(at_ms=at, host=host, what="wiped"),
            Crash(at_ms=at, host=host),
            Restart(at_ms=at + place % 4, host=host),
        )
    )


def lives(run: Run, node: NodeId) -> list[list[MessageId]]:
    """What a node delivered in each of its lives."""
    found: list[list[MessageId]] = [[]]
    for row in run.events():
        if row.node == node and row.kind is Kind.RECOVER:
            found.append([])
        elif row.node == node and row.kind in CARRYING and row.message is not None:
            found[-1].append(row.message)
    return found


def again(run: Run, node: NodeId) -> int:
    """How many messages a later life of a node delivered again."""
    seen: set[MessageId] = set()
    count = 0
    for delivered in lives(run, node):
        count += len(seen.intersection(delivered))
        seen.update(delivered)
    assert len(seen) > 50
    return count
