"""What a replica does for its group, and what changes that."""

from enum import Enum

from ordercast.core import LifeCycle


class Role(Enum):
    """What a replica does for its group."""

    FOLLOWER = "follower"
    CANVASSER = "canvasser"
    CANDIDATE = "candidate"
    LEADER = "leader"
    LOST = "lost"
    """It has lost its memory, and takes no part until it has recovered."""


class RoleEvent(Enum):
    """What happens to the role of a replica."""

    CANVASS = "canvass"
    STAND = "stand"
    LEAD = "lead"
    STEP_DOWN = "step down"
    FORGET = "forget"
    RETURN = "return"


ROLES = LifeCycle(
    "replica",
    (Role.FOLLOWER,),
    {
        (Role.FOLLOWER, RoleEvent.CANVASS): Role.CANVASSER,
        (Role.CANVASSER, RoleEvent.STAND): Role.CANDIDATE,
        (Role.CANDIDATE, RoleEvent.LEAD): Role.LEADER,
        (Role.FOLLOWER, RoleEvent.LEAD): Role.LEADER,  # only replica 0 in ballot 0, at its first boot
        (Role.CANVASSER, RoleEvent.STEP_DOWN): Role.FOLLOWER,
        (Role.CANDIDATE, RoleEvent.STEP_DOWN): Role.FOLLOWER,
        (Role.LEADER, RoleEvent.STEP_DOWN): Role.FOLLOWER,
        (Role.FOLLOWER, RoleEvent.FORGET): Role.LOST,  # at the start of a life
        (Role.LOST, RoleEvent.RETURN): Role.FOLLOWER,
    },
)
