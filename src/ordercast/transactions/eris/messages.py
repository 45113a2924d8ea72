"""What replicas of Eris tell the failure coordinator beyond what those of any shards do.

The rest of an epoch change are messages that Hydra's network has for its steps: the coordinator asks with
`Announce`, replicas answer with `Report`, and `Steps` begin an epoch.
"""

from ordercast.components.network_ordered.place import Natural
from ordercast.core import Message, message_types


class EpochRequest(Message, frozen=True, tag=160):
    """A replica has learned that there is a later epoch (Eris section 6.5)."""

    epoch: Natural
    node: Natural
    """Its sequencer."""
    steps: Natural
    """How many steps the controllers have taken. Every epoch but the first began with one."""


MESSAGES = message_types(EpochRequest)
