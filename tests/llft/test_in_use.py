"""The connections in use: which of them a short name means at a place of the order."""

import pytest

from ordercast.core import RemoteError
from ordercast.replication.llft.connection import Connection, Kept
from ordercast.replication.llft.in_use import InUse
from ordercast.replication.llft.messages import SERVER
from ordercast.replication.llft.names import Link
from ordercast.replication.llft.orders import CloseOrder, MessageOrder, OrderLog, RoundOrder

GROUP = 0
ONE, NEXT, OTHER = Link(4, GROUP, 1), Link(4, GROUP, 2), Link(5, GROUP, 1)
OUT = Link(GROUP, 1, 1)
"""On this one the group is the client."""


def in_use(*links: Link) -> InUse:
    found = InUse(GROUP)
    for link in links:
        found.begin(link)
    return found


def connections(**received: int) -> dict[Link, Connection]:
    """Connections on which so many messages were received and delivered."""
    found: dict[Link, Connection] = {}
    for name, count in received.items():
        link = {"one": ONE, "next": NEXT, "other": OTHER}[name]
        connection = found[link] = Connection(link, SERVER, 0)
        for index in range(1, count + 1):
            connection.incoming.take(index, Kept(index, False, b""), count)
        connection.incoming.delivered = count
    return found


def log_of(*entries: MessageOrder | RoundOrder | CloseOrder) -> OrderLog:
    log = OrderLog()
    for entry in entries:
        log.append(entry)
    return log


def test_a_connection_is_named_in_full_until_it_is_in_use() -> None:
    assert InUse(GROUP).name_of(ONE) == ONE
    assert in_use(ONE).name_of(ONE) == 4


def test_a_connection_of_which_the_group_is_the_client_has_another_name() -> None:
    """Two groups may have a connection in each direction."""
    back = Link(1, GROUP, 1)
    found = in_use(OUT, back)
    assert (found.name_of(OUT), found.name_of(back)) == (~1, 1)
    assert found.link_of(1, RoundOrder((~1,))) == OUT and found.link_of(1, RoundOrder((1,))) == back


def test_a_name_means_the_connection_that_was_used_last() -> None:
    found = in_use(ONE, OTHER)
    assert found.name_of(NEXT) == NEXT
    found.begin(NEXT)
    found.end(ONE)
    assert found.link_of(9, RoundOrder((4,))) == found.link_of(9, MessageOrder(4, 1, 1)) == NEXT
    assert found.name_of(ONE) == ONE
    assert found.without([OTHER]) == (NEXT,)


def test_a_name_that_is_not_in_use_is_refused() -> None:
    found = in_use(ONE)
    found.end(ONE)
    with pytest.raises(RemoteError, match="place 7 names connection 4, which is not in use"):
        found.link_of(7, RoundOrder((4,)))


def test_an_entry_without_a_message_names_no_connection() -> None:
    assert in_use(ONE).link_of(1, CloseOrder(ONE)) is None


def test_a_checkpoint_goes_on_with_the_latest_connections_that_were_used() -> None:
    found = in_use(OTHER)
    found.restore(connections(next=1, one=2, other=0))
    assert found.link_of(1, RoundOrder((4,))) == NEXT
    assert found.name_of(OTHER) == OTHER, "nothing was delivered on it"


def test_all_messages_since_a_place_are_here() -> None:
    log = log_of(MessageOrder(ONE, 1, 1), MessageOrder(OTHER, 1, 1), RoundOrder((4, 5, 4)), CloseOrder(OUT))
    known = connections(one=3, other=2)
    found = in_use(ONE, OTHER)
    assert found.has_messages(log, 0, 6, known)
    del known[ONE].incoming.kept[2]
    assert not found.has_messages(log, 2, 6, known), "place 3 has message 2 of the connection"
    assert found.has_messages(log, 3, 6, known)


def test_messages_of_a_replaced_connection_are_not_here() -> None:
    log = log_of(MessageOrder(ONE, 1, 1), RoundOrder((4,)), MessageOrder(NEXT, 1, 1), RoundOrder((4,)))
    found, known = in_use(NEXT), connections(next=2)
    assert found.has_messages(log, 2, 4, known)
    assert not found.has_messages(log, 1, 4, known), "the name was that of an earlier connection"
    assert not found.has_messages(log, 0, 4, known | connections(one=1))
