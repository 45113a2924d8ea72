"""What replicas and the failure coordinator tell each other."""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.components.cross_shard.marks import Lost, Mark
from ordercast.components.execution.messages import Name, Place
from ordercast.components.network_ordered import LogEntry
from ordercast.components.network_ordered.place import Natural
from ordercast.core import Message, Payload, message_types

MARKS_MAX = 256
Losses: TypeAlias = Annotated[tuple[Lost, ...], msgspec.Meta(max_length=MARKS_MAX)]
LateOnes: TypeAlias = Annotated[
    tuple[tuple[Name, tuple[Natural, ...]], ...], msgspec.Meta(max_length=MARKS_MAX)
]
Marks: TypeAlias = Annotated[tuple[Mark, ...], msgspec.Meta(max_length=MARKS_MAX)]


class FindMessages(Message, frozen=True, tag=220):
    """The leader of a group asks the coordinator: nobody in its group has these messages."""

    losses: Losses


class Shown(Message, frozen=True, tag=221):
    """A replica has a message that somebody asked for, or that it must not take before the coordinator has
    decided."""

    entry: LogEntry


class Promised(Message, frozen=True, tag=222):
    """A replica has no message with these marks, and takes none before the coordinator has decided. That
    binds its group if a majority of it, the leader among them, promises it in the same view, with the same
    tag."""

    view: Natural
    tag: Natural
    marks: Marks


class Certain(Message, frozen=True, tag=223):
    """What its group has up to this clock is certain, and nothing else up to it comes any more."""

    clock: Natural


class Question(Message, frozen=True, tag=224):
    """The coordinator asks all replicas of all groups who has these messages."""

    losses: Losses


class FoundMessages(Message, frozen=True, tag=225):
    """It is decided: these messages count in all of their groups."""

    entries: Annotated[tuple[LogEntry, ...], msgspec.Meta(max_length=MARKS_MAX)]


class Gone(Message, frozen=True, tag=226):
    """It is decided: nobody ever takes a message with one of these marks."""

    losses: Losses


class Late(Message, frozen=True, tag=228):
    """The leader of a group holds locks for transactions that should have been concluded long ago."""

    transactions: Annotated[
        tuple[tuple[Natural, tuple[Natural, ...]], ...], msgspec.Meta(max_length=MARKS_MAX)
    ]
    """Each with its groups."""


class LateAnswer(Message, frozen=True, tag=229):
    """To a client: the results of a call that had to wait for locks. They are certain, so that nobody needs
    to confirm them."""

    first: Name
    results: Payload
    place: Place


class Floors(Message, frozen=True, tag=227):
    """Up to which clock each group is certain."""

    clocks: Annotated[tuple[Natural, ...], msgspec.Meta(min_length=1)]
    """Those of groups without replicas are in the far future."""


MESSAGES = message_types(
    FindMessages, Shown, Promised, Certain, Question, FoundMessages, Gone, Floors, Late, LateAnswer
)
