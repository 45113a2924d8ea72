"""What a replica is in its group, and what changes that (section IV)."""

from enum import Enum

from ordercast.core import LifeCycle


class Standing(Enum):
    """What a replica is in its group."""

    PRIMARY = "primary"
    BACKUP = "backup"
    PROPOSER = "proposer"
    """It has denounced the primary and appointed itself."""
    RECOVERING = "recovering"
    """It is elected, and advances to the state of the old primary."""
    OUTSIDE = "outside"
    """It is no member, and asks to become one. It may have the state of an earlier membership."""
    ADMITTED = "admitted"
    """It is a member, and waits for the state."""


class Turn(Enum):
    """What happens to the standing of a replica."""

    SUSPECT = "suspect the primary"
    APPOINT = "appoint itself"
    YIELD = "accept another proposal"
    ELECT = "be elected"
    RENEW = "learn that the number of its view is taken"
    BEGIN = "begin its view"
    EXCLUDE = "be excluded"
    ADMIT = "be admitted"
    RESTORE = "take over a state"


STANDINGS = LifeCycle(
    "replica",
    (Standing.PRIMARY, Standing.BACKUP, Standing.OUTSIDE),
    {
        (Standing.BACKUP, Turn.SUSPECT): Standing.PROPOSER,
        (Standing.OUTSIDE, Turn.APPOINT): Standing.PROPOSER,
        (Standing.PROPOSER, Turn.YIELD): Standing.BACKUP,
        (Standing.BACKUP, Turn.YIELD): Standing.BACKUP,
        (Standing.PROPOSER, Turn.ELECT): Standing.RECOVERING,
        (Standing.RECOVERING, Turn.RENEW): Standing.PROPOSER,
        (Standing.RECOVERING, Turn.BEGIN): Standing.PRIMARY,
        (Standing.PRIMARY, Turn.EXCLUDE): Standing.OUTSIDE,
        (Standing.BACKUP, Turn.EXCLUDE): Standing.OUTSIDE,
        (Standing.PROPOSER, Turn.EXCLUDE): Standing.OUTSIDE,
        (Standing.RECOVERING, Turn.EXCLUDE): Standing.OUTSIDE,
        (Standing.ADMITTED, Turn.EXCLUDE): Standing.OUTSIDE,
        (Standing.OUTSIDE, Turn.ADMIT): Standing.ADMITTED,
        (Standing.ADMITTED, Turn.ADMIT): Standing.ADMITTED,
        (Standing.ADMITTED, Turn.RESTORE): Standing.BACKUP,
    },
)
