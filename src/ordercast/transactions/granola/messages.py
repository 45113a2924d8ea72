"""What clients and shards tell each other."""

from enum import IntEnum
from typing import Annotated, TypeAlias

import msgspec

from ordercast.components.execution.messages import Name, Number, Place
from ordercast.components.logged_shards.entries import GROUPS_MAX, Attempt, Done, Shards
from ordercast.core import GroupId, Groups, Message, Payload, Stamp, message_types
from ordercast.transactions.granola.entries import Subject, Verdict

Group: TypeAlias = Annotated[GroupId, msgspec.Meta(ge=0)]


class State(IntEnum):
    """What a shard says of a call."""

    EXECUTED = 0
    CONFLICT = 1
    """This attempt has no effect, in no shard, and never will."""
    WAITING = 2
    """It is in the log here, and waits for votes."""


class Request(Message, frozen=True, tag=160):
    """A client to a shard, or a replica to its leader: take part in a transaction."""

    attempt: Attempt
    groups: Shards
    seen: Number
    """The highest timestamp that the client was told."""
    call: Payload
    done: Done


class Told(Message, frozen=True, tag=161):
    """A replica to a client: what has become of a call in its shard."""

    first: Name
    attempt: Attempt
    state: State
    results: Payload
    place: Place | None
    """Where it was executed: its timestamp, and the shard that proposed it."""
    lacks: Annotated[Groups, msgspec.Meta(max_length=GROUPS_MAX)] = ()
    """The shards for whose votes it waits here."""

    @property
    def stamp(self) -> Stamp | None:
        """Where the call was executed."""
        return None if self.place is None else Stamp(*self.place)


class Vote(Message, frozen=True, tag=162):
    """A shard to another one: what its log says of a transaction."""

    subject: Subject
    attempt: Attempt
    group: Group
    """The shard that votes."""
    verdict: Verdict
    timestamp: Number
    settled: bool
    """Whether it knows all votes: then this is the outcome."""


class Ask(Message, frozen=True, tag=163):
    """A shard to another one: vote. Here is the request, in case that you lack it."""

    subject: Subject
    attempt: Attempt
    groups: Shards
    call: Payload
    settled: bool
    """Whether the shard that asks knows all votes, and only wants to know whether this one does."""


class Enquiry(Message, frozen=True, tag=164):
    """A client that has forgotten which timestamps it was told, to the replicas of a shard."""


class Reading(Message, frozen=True, tag=165):
    """A replica to such a client: its shard has told nobody a higher timestamp."""

    timestamp: Number


MESSAGES = message_types(Request, Told, Vote, Ask, Enquiry, Reading)
