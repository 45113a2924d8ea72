"""How long receivers were silent around each crash.

For a host that was killed at time t, this is at each receiver the longest time without a delivery that begins
at t, or at a delivery between t and the next crash. The time after a receiver's last delivery is the end of
the run and not a silence.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.core import HostId, Nanos, NodeId, Plan
from ordercast.lab.trial.stage import CrashTime
from ordercast.trace import CARRYING


class Silence(msgspec.Struct, frozen=True):
    """The longest silence at each receiver after a crash; None where nothing was delivered any more."""

    host: HostId
    time_ns: Nanos
    """Time of the crash since the start of the workload."""
    receivers: dict[NodeId, Nanos | None]

    @property
    def longest_ns(self) -> Nanos | None:
        """The longest silence at any receiver that went on."""
        return max((found for found in self.receivers.values() if found is not None), default=None)


def silences(
    table: pa.Table, plan: Plan, crashes: Sequence[CrashTime], start_ns: Nanos, ahead: dict[HostId, Nanos]
) -> list[Silence]:
    """The silences after each crash; `ahead` says by how much the clock of a host is wrong."""
    kinds = table["kind"].cast(pa.string())
    delivered = table.filter(pc.is_in(kinds, pa.array(CARRYING, pa.string())))
    nodes, times = delivered["node"].to_numpy(), delivered["time_ns"].to_numpy()
    receivers = sorted({node for members in plan.groups.values() for node in members})
    own = {node: np.sort(times[nodes == node]) - ahead.get(plan.nodes[node].host, 0) for node in receivers}
    found = []
    for place, crash in enumerate(crashes):
        until = crashes[place + 1].time_ns if place + 1 < len(crashes) else None
        longest = {}
        for node in receivers:
            # What the host itself delivers between the order to kill it and its end is no sign of life.
            gone = crash.gone_ns if plan.nodes[node].host == crash.host else crash.time_ns
            longest[node] = _longest(own[node][own[node] >= gone], crash.time_ns, until)
        found.append(Silence(crash.host, crash.time_ns - start_ns, longest))
    return found


def _longest(times: np.ndarray, start: Nanos, until: Nanos | None) -> Nanos | None:
    """Of deliveries at or after the start, the longest time without one that begins before another crash."""
    if not len(times):
        return None
    begins = np.concatenate([[start], times[:-1]])
    gaps = times - begins
    within = gaps if until is None else gaps[begins < until]
    return int(within.max(initial=0))
