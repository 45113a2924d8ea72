"""In which mode a member works, and what changes that (hybrid paper, section 5 and Figure 4).

An *active* member orders messages by tickets of its own. A *passive* member has a sequencer: an active member
that issues tickets for it. In the three modes in between, the member sends no data; what is submitted waits.
A member outside has no view.
"""

from enum import Enum

from ordercast.core import LifeCycle


class Mode(Enum):
    """How a member takes part in the order."""

    OUTSIDE = "outside"
    ACTIVE = "active"
    TO_PASSIVE = "to passive"
    PASSIVE = "passive"
    TO_ACTIVE = "to active"
    CHANGING = "changing sequencer"


class ModeEvent(Enum):
    """What happens to the mode of a member."""

    ENTER_ACTIVE = "enter as active"
    ENTER_PASSIVE = "enter as passive"
    WANT_PASSIVE = "want to be passive"
    WANT_ACTIVE = "want to be active"
    WANT_SEQUENCER = "want another sequencer"
    SWITCHED = "switch ordered"
    ABORTED = "switch aborted"
    SETTLED = "all own messages ordered"
    SEQUENCER_GONE = "sequencer gone"
    TAKE_OVER = "take over"
    RELIEVED = "relieved"
    EXCLUDED = "excluded"


MODES = LifeCycle(
    "member",
    (Mode.OUTSIDE,),
    {
        (Mode.OUTSIDE, ModeEvent.ENTER_ACTIVE): Mode.ACTIVE,
        (Mode.OUTSIDE, ModeEvent.ENTER_PASSIVE): Mode.PASSIVE,
        (Mode.ACTIVE, ModeEvent.WANT_PASSIVE): Mode.TO_PASSIVE,
        (Mode.TO_PASSIVE, ModeEvent.SWITCHED): Mode.PASSIVE,
        (Mode.TO_PASSIVE, ModeEvent.ABORTED): Mode.ACTIVE,  # nobody else is active
        (Mode.PASSIVE, ModeEvent.WANT_ACTIVE): Mode.TO_ACTIVE,
        (Mode.TO_ACTIVE, ModeEvent.SWITCHED): Mode.ACTIVE,
        (Mode.PASSIVE, ModeEvent.WANT_SEQUENCER): Mode.CHANGING,
        (Mode.CHANGING, ModeEvent.SETTLED): Mode.PASSIVE,
        # What is not ordered yet goes to another sequencer.
        (Mode.PASSIVE, ModeEvent.SEQUENCER_GONE): Mode.PASSIVE,
        (Mode.TO_ACTIVE, ModeEvent.SEQUENCER_GONE): Mode.TO_ACTIVE,
        (Mode.CHANGING, ModeEvent.SEQUENCER_GONE): Mode.PASSIVE,
        # All active members are gone, and this one has the highest number.
        (Mode.PASSIVE, ModeEvent.TAKE_OVER): Mode.ACTIVE,
        (Mode.TO_ACTIVE, ModeEvent.TAKE_OVER): Mode.ACTIVE,
        (Mode.CHANGING, ModeEvent.TAKE_OVER): Mode.ACTIVE,
        # It stood in for an active member that is back.
        (Mode.ACTIVE, ModeEvent.RELIEVED): Mode.PASSIVE,
        (Mode.TO_PASSIVE, ModeEvent.RELIEVED): Mode.PASSIVE,
        (Mode.ACTIVE, ModeEvent.EXCLUDED): Mode.OUTSIDE,
        (Mode.TO_PASSIVE, ModeEvent.EXCLUDED): Mode.OUTSIDE,
        (Mode.PASSIVE, ModeEvent.EXCLUDED): Mode.OUTSIDE,
        (Mode.TO_ACTIVE, ModeEvent.EXCLUDED): Mode.OUTSIDE,
        (Mode.CHANGING, ModeEvent.EXCLUDED): Mode.OUTSIDE,
    },
)

# Tuples: a lookup in a set would compute the hash of the mode, which takes longer than to compare it.
SENDING = (Mode.ACTIVE, Mode.PASSIVE)
"""The modes in which a member sends data."""
ISSUING = (Mode.ACTIVE, Mode.TO_PASSIVE)
"""The modes in which a member is active for the others."""
SERVED = (Mode.PASSIVE, Mode.TO_ACTIVE, Mode.CHANGING)
"""The modes in which a member has a sequencer."""
