"""How Cyclon keeps the views of peers: in our sizes, or as in the simulator of EpTO's authors.

The paper does not print the sizes of its Cyclon (section 6, Figure 9). The authors' program has views of 30
and exchanges 5 entries once a round. A process starts with 30 others, drawn from all that are there. Where a
view is full, what comes in replaces its oldest entries.
"""

from collections.abc import Sequence
from typing import Literal

from ordercast.components.sampling import CONTACTS, CyclonOptions, choose, stream
from ordercast.components.sampling.cyclon import VIEW_MAX
from ordercast.core import Nanos, NodeId

Sampling = Literal["uniform", "cyclon", "cyclon-authors"]

SPARE, SHUFFLE, PATIENCE = 6, 8, 8
"""How many more peers a view has than a ball goes to, how many entries a shuffle exchanges, and how many
rounds an answer may take."""
AUTHORS_VIEW, AUTHORS_SHUFFLE, AUTHORS_PATIENCE = 30, 5, 16
"""The same for the authors' Cyclon; no answer over the authors' latencies takes more than 16 rounds."""


def cyclon_options(sampling: Sampling, fanout: int, round_ns: Nanos, jitter_ns: Nanos) -> CyclonOptions:
    """Views for a fan-out, shuffled once a round.

    Ours are little larger than the fan-out, for a larger view has older entries, more of them dead.
    """
    if sampling == "cyclon-authors":
        view, length, patience = AUTHORS_VIEW, AUTHORS_SHUFFLE, AUTHORS_PATIENCE
    else:
        view, patience = min(fanout + SPARE, VIEW_MAX), PATIENCE
        length = min(SHUFFLE, view)
    return CyclonOptions(
        view=view,
        length=length,
        period_ns=round_ns,
        jitter_ns=jitter_ns,
        patience=patience,
        replaces="oldest" if sampling == "cyclon-authors" else "sent",
    )


def any_peers(seed: int, me: NodeId, count: int, peers: int) -> Sequence[NodeId]:
    """Some of all peers other than this one, each equally likely: whom a peer knows when it starts."""
    others = choose(stream(seed, CONTACTS), 0, count, peers - 1)
    return [place + (place >= me) for place in others]
