"""The life of a sequencer.

- *asking*: it has a life and asks for a number, again and again.
- *serving*: it has a number, and stamps, flushes and nudges under it.
- *retired*: it was removed. It begins another life after a while, once its clock shows a time that no life of
  it has had; the number that it had is never taken again.
"""

from enum import Enum

from ordercast.core import LifeCycle


class SequencerState(Enum):
    """The stage of a sequencer in its life."""

    ASKING = "asking"
    SERVING = "serving"
    RETIRED = "retired"


class SequencerEvent(Enum):
    """What happens to a sequencer."""

    WELCOME = "welcome"
    RETIRE = "retire"
    RENEW = "renew"


ASKING, SERVING, RETIRED = SequencerState

SEQUENCER_LIFE = LifeCycle(
    "sequencer",
    (ASKING,),
    {
        (ASKING, SequencerEvent.WELCOME): SERVING,
        (SERVING, SequencerEvent.RETIRE): RETIRED,
        (RETIRED, SequencerEvent.RENEW): ASKING,
    },
)
