"""What Cyclon's nodes send each other.

A protocol that embeds a sampler puts `MESSAGES` into its codec beside its own.
"""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import Message, message_types
from ordercast.core.ids import NODE_MAX

SHUFFLE_MAX = 128
"""Most entries in a message, whatever the options are."""
AGE_MAX = (1 << 31) - 1
NUMBER_MAX = (1 << 63) - 1

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
Neighbour: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=NODE_MAX)]
Age: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=AGE_MAX)]
Entry: TypeAlias = tuple[Neighbour, Age]
"""A neighbour, and for how many shuffles nobody has heard of it."""
Entries: TypeAlias = Annotated[tuple[Entry, ...], msgspec.Meta(max_length=SHUFFLE_MAX)]


class ShuffleRequest(Message, frozen=True, tag=240):
    """Some of the asker's neighbours, in exchange for some of the receiver's.

    The asker itself is the first entry, of age 0, and is not written down: who sent the message is known.
    """

    number: Number
    """The asker's own number of the shuffle."""
    entries: Entries


class ShuffleAnswer(Message, frozen=True, tag=241):
    """Some of the answerer's neighbours, none of them the asker."""

    number: Number
    """As in the request."""
    entries: Entries


MESSAGES = message_types(ShuffleRequest, ShuffleAnswer)
