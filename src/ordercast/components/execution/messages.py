"""Messages that clients and replicas of several protocols exchange."""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import Message, MessageId, Payload, Stamp, message_types

Name: TypeAlias = Annotated[MessageId, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Place: TypeAlias = tuple[Number, Number, Annotated[tuple[Number, ...], msgspec.Meta(max_length=4096)]]
"""A stamp: clock, issuer, numbers."""


class CallMessage(Message, frozen=True, tag=270):
    """Client to replica: a call (`call.py`)."""

    call: Payload


class Answer(Message, frozen=True, tag=271):
    """Replica to client: the results of a call, and the place where it was executed first."""

    first: Name
    results: Payload
    place: Place | None
    """None if nothing was executed before these reads."""

    @property
    def stamp(self) -> Stamp | None:
        """The place as a stamp."""
        return None if self.place is None else Stamp(*self.place)


def place_of_stamp(stamp: Stamp | None) -> Place | None:
    """A stamp as it is sent."""
    return None if stamp is None else (stamp.clock, stamp.issuer, stamp.numbers)


MESSAGES = message_types(CallMessage, Answer)
