"""The life of a lane (section 4.4), as the configuration service goes on.

- *joining*: the sequencer is being added. The lane has no packets, and only holds delivery back at the flush
  that was reported, until the start is agreed.
- *active*: it is in the configuration; everything of it counts.
- *frozen*: its removal is planned. What was reported of it stands, so nothing more is accepted.
- *ending*: it is removed. Its last numbers are agreed, and only packets within them count. It is waited for
  no more, and leaves the merge when this receiver passes into the next configuration.

- *blind*: this receiver lost its state, and with it what an earlier life had of the sequencer. It waits for a
  fresh flush, and nothing is delivered meanwhile.

A receiver that was not asked, or did not hear, goes from active to ending without having reported. One that
is asked again stays frozen. A lane whose addition is given up is discarded while it is joining, and one whose
sequencer is removed while it is blind.
"""

from enum import Enum

import msgspec

from ordercast.core import LifeCycle, RemoteError


class LaneState(Enum):
    """The stage of a lane in its life."""

    JOINING = "joining"
    ACTIVE = "active"
    FROZEN = "frozen"
    ENDING = "ending"
    BLIND = "blind"


class LaneEvent(Enum):
    """What happens to a lane."""

    START = "start"
    FREEZE = "freeze"
    FINISH = "finish"


JOINING, ACTIVE, FROZEN, ENDING, BLIND = LaneState
NOT_BEGUN = (JOINING, BLIND)
"""A lane in one of these holds delivery back, and takes no packets."""

LANE_LIFE = LifeCycle(
    "lane",
    (JOINING, BLIND),
    {
        (JOINING, LaneEvent.START): ACTIVE,
        (BLIND, LaneEvent.START): ACTIVE,
        (ACTIVE, LaneEvent.FREEZE): FROZEN,
        (FROZEN, LaneEvent.FREEZE): FROZEN,
        (ACTIVE, LaneEvent.FINISH): ENDING,
        (FROZEN, LaneEvent.FINISH): ENDING,
    },
    blame=RemoteError,  # all events come from the configuration service
)


class LanePlace(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a lane over a restart: all but its packets."""

    sequencer: int
    node: int
    state: LaneState
    settled: int
    high: int
    clock: int
    safe: int
    seen: list[int]
    final: tuple[int, ...] | None
    begun: int = 0
