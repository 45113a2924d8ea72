"""Where a node stands towards its group, and what changes that.

- *out*: it sits in no view and does not ask to.
- *joining*: it asks to come in.
- *admitted*: a view names it, and it gets the state in which the view begins.
- *member*: it sends and delivers in its view.
- *changing*: it has promised to take part in a change. Until the next view it neither sends nor delivers.
"""

from enum import Enum

from ordercast.core import LifeCycle


class Standing(Enum):
    """Where a node stands towards its group."""

    OUT = "out"
    JOINING = "joining"
    ADMITTED = "admitted"
    MEMBER = "member"
    CHANGING = "changing"


class StandingEvent(Enum):
    """What happens to the standing of a node."""

    ASK = "ask"
    ADMIT = "admit"
    INFORM = "inform"
    STOP = "stop"
    INSTALL = "install"
    EXCLUDE = "exclude"


OUT, JOINING, ADMITTED, MEMBER, CHANGING = Standing

STANDINGS = LifeCycle(
    "member of views",
    (OUT, JOINING, MEMBER),
    {
        (OUT, StandingEvent.ASK): JOINING,
        (JOINING, StandingEvent.ADMIT): ADMITTED,
        (ADMITTED, StandingEvent.INFORM): MEMBER,
        (ADMITTED, StandingEvent.EXCLUDE): OUT,  # a change begins before it has the state
        (MEMBER, StandingEvent.STOP): CHANGING,
        (CHANGING, StandingEvent.INSTALL): MEMBER,
        (MEMBER, StandingEvent.EXCLUDE): OUT,
        (CHANGING, StandingEvent.EXCLUDE): OUT,
        (JOINING, StandingEvent.EXCLUDE): OUT,  # it does not want to come in any more
    },
)
