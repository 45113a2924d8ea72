"""What replicas of Fast Paxos send each other besides the messages of consensus."""

from typing import Annotated

import msgspec

from ordercast.components.consensus.messages import Digest, Lives, Natural, Promise
from ordercast.core import Message, message_types


class Open(Message, frozen=True, tag=310):
    """Leader to all: nothing was chosen from slot `start` on, so replicas may vote there by themselves."""

    ballot: Natural
    start: Natural


class FastVote(Message, frozen=True, tag=311):
    """Replica to leader: a vote for a call that came from its client, in the next slot of this replica."""

    ballot: Natural
    slot: Natural
    digest: Digest
    """That of the value, which the leader has from the client, too."""
    life: Natural
    """The votes of a life whose memory is lost do not count."""


class FastCommit(Message, frozen=True, tag=312):
    """Leader to all: a commit notice that says which values were chosen, from slot `start` on."""

    ballot: Natural
    start: Natural
    digests: Annotated[tuple[Digest, ...], msgspec.Meta(max_length=65_536)]
    committed: Natural


class FastPromise(Promise, frozen=True, tag=313):
    """Phase 1b: a promise that tells which of its records are votes of the replica's own making."""

    lives: Lives
    fast: tuple[Natural, ...]
    """Their slots."""

    def known_lives(self) -> Lives:
        """The lives that the voter knows of."""
        return self.lives


MESSAGES = message_types(Open, FastVote, FastCommit, FastPromise)
