"""What members send each other about the states of their applications."""

from enum import IntEnum
from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import Message, Payload, message_types

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]

STATE_BYTES_MAX = 64 << 20
"""The largest state that an application may give."""


class Possession(IntEnum):
    """What a node has of the state of a group."""

    HAS = 0
    """It has the state, and will take a copy at the beginning of the next view."""
    WAITS = 1
    """It does not have it now, but has found somebody who has."""
    LACKS = 2
    """It does not have it, and knows nobody who has."""


class StateQuestion(Message, frozen=True, tag=260):
    """A newcomer asks: do you have the state of this group? Then keep it for me as the next view finds it."""

    group: Natural
    view: Natural
    """The view in which it asks."""


class StateAnswer(Message, frozen=True, tag=261):
    """What the sender of this has of a group's state, in this view; or of that of this view, if a piece was
    asked for."""

    group: Natural
    view: Natural
    possession: Possession


class PieceRequest(Message, frozen=True, tag=262):
    """Asks for the state with which a group began a view, from this byte on."""

    group: Natural
    view: Natural
    offset: Natural


class StatePiece(Message, frozen=True, tag=263):
    """A piece of the state with which a group began a view."""

    group: Natural
    view: Natural
    offset: Natural
    size: Natural
    """The size of the whole state."""
    data: Payload


class StateTaken(Message, frozen=True, tag=264):
    """The newcomer has the whole state; its donor need not keep it."""

    group: Natural
    view: Natural


MESSAGES = message_types(StateQuestion, StateAnswer, PieceRequest, StatePiece, StateTaken)
