"""Claims that no correct node makes are refused before they change anything."""

from typing import Any

import msgspec
import pytest

from ordercast.core import Message, RemoteError
from ordercast.replication.llft.limits import COUNT_AHEAD_MAX, TIME_AHEAD_MAX, check_claims
from ordercast.replication.llft.messages import (
    CLIENT,
    Head,
    Heartbeat,
    KeepAlive,
    Nack,
    ProposeBackup,
    Request,
    StateOffer,
    Superseded,
)
from ordercast.replication.llft.names import Link, ViewId
from ordercast.replication.llft.orders import Slice

FAR = COUNT_AHEAD_MAX + 101
VIEW, FAR_VIEW = ViewId(1, 1), ViewId(1, FAR)
LINK, FAR_LINK = Link(4, 0, 1), Link(4, 0, TIME_AHEAD_MAX + 11)
PART = Slice(VIEW, 0, 0, (), 0, 0)
HEAD = Head(LINK, CLIENT, VIEW, 0, 0, VIEW, 0, 0, 0, 0)


def head(**changes: Any) -> Head:
    return msgspec.structs.replace(HEAD, **changes)


@pytest.mark.parametrize(
    "message",
    [
        Request(HEAD, FAR, 1, False, b""),
        Request(HEAD, 1, FAR, False, b""),
        *(KeepAlive(head(**{name: FAR})) for name in ("base", "last", "ack", "room", "back", "timestamp")),
        KeepAlive(head(view=FAR_VIEW)),
        KeepAlive(head(ack_view=FAR_VIEW)),
        KeepAlive(head(orders=Slice(VIEW, 0, FAR, (), 0, 0))),
        KeepAlive(head(reflected=Slice(FAR_VIEW, 0, 0, (), 0, 0))),
        Heartbeat(VIEW, FAR, (1,), PART, ()),
        Heartbeat(VIEW, 0, (FAR,), PART, ()),
        Heartbeat(VIEW, 0, (1,), Slice(VIEW, 0, 0, (), 0, FAR), ()),
        Heartbeat(VIEW, 0, (1,), PART, ((LINK, CLIENT, FAR),)),
        Nack(FAR_LINK, CLIENT, ()),
        Nack(LINK, CLIENT, ((1, FAR),)),
        Superseded(FAR_VIEW),
        ProposeBackup(TIME_AHEAD_MAX + FAR + 11, VIEW),
        StateOffer(VIEW, 1, 1 << 50, 0),
        StateOffer(VIEW, FAR, 1, 0),
    ],
    ids=repr,
)
def test_what_is_too_far_ahead_is_refused(message: Message) -> None:
    with pytest.raises(RemoteError, match="node 3"):
        check_claims(3, message, known=100, now=10)


def test_what_is_near_is_taken() -> None:
    for message in (Request(HEAD, 101, 50, False, b""), KeepAlive(head(orders=PART)), Superseded(VIEW)):
        check_claims(3, message, known=100, now=10)
