"""The parts of a replica by themselves: names, lineages, connections, ranks, and the limits of messages."""

from typing import Any

import pytest

from ordercast.core import MILLISECOND, Codec, LocalError, Message, RemoteError
from ordercast.replication.llft.checkpoint import read
from ordercast.replication.llft.connection import Connection, Incoming, Kept, Outgoing
from ordercast.replication.llft.lineage import LINEAGE_MAX, Begun, Meeting, begin, extended, part
from ordercast.replication.llft.membership import Membership
from ordercast.replication.llft.messages import (
    ASKED_MAX,
    MESSAGES,
    MISSING_MAX,
    PART_BYTES,
    FirstAck,
    Head,
    Nack,
    Request,
    State,
    StateAsk,
)
from ordercast.replication.llft.names import Link, ViewId, next_precedence
from ordercast.replication.llft.options import LlftOptions
from ordercast.replication.llft.orders import ENTRIES_MAX, ROUND_MAX, RUN_MAX, MessageOrder, RoundOrder, Slice

LINK = Link(4, 0, 1)
VIEW = ViewId(0, 0)
CODEC = Codec(MESSAGES)


def kept(timestamp: int, text: str = "x", *, more: bool = False) -> Kept:
    return Kept(timestamp, more, text.encode())


def head(**changes: Any) -> Head:
    values: dict[str, Any] = {
        "link": LINK, "role": 0, "view": VIEW, "base": 0, "last": 1, "ack_view": None, "ack": 0, "room": 1,
        "back": 0, "timestamp": 1,
    }  # fmt: skip
    return Head(**(values | changes))


# Names


@pytest.mark.parametrize(
    ("node", "nodes", "highest", "expected"),
    [(0, 3, 2, 3), (1, 3, 2, 4), (2, 3, 2, 5), (2, 3, 3, 5), (0, 3, 3, 6), (0, 1, 7, 8), (4, 6, 10, 16)],
)
def test_a_precedence_tells_the_node_of_its_member(
    node: int, nodes: int, highest: int, expected: int
) -> None:
    assert next_precedence(node, nodes, highest) == expected


def test_precedences_of_two_nodes_are_never_the_same() -> None:
    """Two primaries that have never heard of each other give newcomers different precedences."""
    for highest in range(10):
        for other in range(10):
            assert next_precedence(1, 4, highest) != next_precedence(2, 4, other)
        assert highest < next_precedence(1, 4, highest) <= highest + 4


def test_views_compare_by_the_precedence_of_their_primary() -> None:
    """Section IV.B: the proposer of higher precedence goes on."""
    assert ViewId(1, 5) < ViewId(2, 1) < ViewId(2, 2)


# Ranks


def test_timeouts_grow_with_the_rank() -> None:
    """Section IV: 10 ms for the backup of rank 2, 30 ms for that of rank 3."""
    members = Membership((3, 4, 9))
    assert [members.rank(one) for one in (3, 4, 9)] == [1, 2, 3]
    assert [members.patience(one, 10) for one in (3, 4, 9)] == [10, 10, 30]


def test_ranks_move_up_when_a_member_leaves_and_precedences_stay() -> None:
    members = Membership((3, 4, 9))
    members.adopt((3, 9), 1)
    assert members.rank(9) == 2 and members.patience(9, 10) == 10
    assert members.highest == 9


def test_a_precedence_that_was_given_is_not_given_again() -> None:
    members = Membership((3, 4, 9))
    members.adopt((3,), 1)
    members.note(12)
    members.note(5)
    assert members.highest == 12


# Lineages


def views(*begun: tuple[int, int, int]) -> tuple[Begun, ...]:
    """Views by precedence, number and place."""
    return tuple(Begun(ViewId(precedence, number), place) for precedence, number, place in begun)


ROOT = (0, 0, 0)


@pytest.mark.parametrize(
    ("mine", "theirs", "meeting"),
    [
        (views(ROOT), views(ROOT), None),
        (views(ROOT), views(ROOT, (1, 1, 5)), Meeting(4, ViewId(0, 0))),
        (views(ROOT, (1, 1, 5)), views(ROOT), Meeting(4, ViewId(0, 0))),
        (views(ROOT, (1, 1, 5)), views(ROOT, (2, 1, 3)), Meeting(2, ViewId(0, 0))),
        (views(ROOT, (1, 1, 3)), views(ROOT, (2, 1, 5)), Meeting(2, ViewId(0, 0))),
        (views(ROOT, (1, 1, 5), (2, 2, 8)), views(ROOT, (1, 1, 5), (4, 2, 9)), Meeting(7, ViewId(1, 1))),
        (views(ROOT, (1, 1, 5), (2, 2, 8)), views(ROOT, (1, 1, 5), (2, 2, 8)), None),
        (views((1, 1, 5)), views((2, 2, 8), (3, 3, 9)), Meeting(5, ViewId(2, 2))),
    ],
    ids=[
        "the same",
        "theirs goes on",
        "mine goes on",
        "mine longer",
        "theirs longer",
        "one view later",
        "the same with views",
        "nothing in common is remembered",
    ],
)
def test_where_lineages_part(
    mine: tuple[Begun, ...], theirs: tuple[Begun, ...], meeting: Meeting | None
) -> None:
    assert part(mine, theirs) == meeting


def test_a_lineage_forgets_its_oldest_views() -> None:
    lineage = begin(0)
    for number in range(1, LINEAGE_MAX + 5):
        lineage = extended(lineage, ViewId(number, number), 10 * number)
    assert len(lineage) == LINEAGE_MAX and lineage[-1].view.number == LINEAGE_MAX + 4


# Connections


def test_a_gap_is_a_missing_message_until_it_is_filled() -> None:
    """Figure 6, lines 22 to 32."""
    incoming = Incoming()
    for index in (1, 3, 6):
        assert incoming.take(index, kept(10 * index), 100)
    assert incoming.missing() == ((2, 2), (4, 5))
    assert (incoming.upto, incoming.watermark) == (1, 10)
    assert incoming.take(2, kept(20), 100)
    assert incoming.missing() == ((4, 5),)
    assert (incoming.upto, incoming.watermark) == (3, 30)


def test_a_message_that_was_received_is_discarded() -> None:
    """Figure 6, line 30."""
    incoming = Incoming()
    assert incoming.take(1, kept(10, "a"), 100) and incoming.take(3, kept(30, "c"), 100)
    assert not incoming.take(1, kept(10, "b"), 100) and not incoming.take(3, kept(30, "d"), 100)
    assert [one.payload for one in incoming.kept.values()] == [b"a", b"c"]


def test_a_message_too_far_ahead_is_not_taken() -> None:
    incoming = Incoming()
    assert not incoming.take(6, kept(60), 5)
    assert incoming.take(5, kept(50), 5)


def test_a_message_that_somebody_names_is_missing() -> None:
    """Section III.B: a `SecondAck`, or ordering information, that names a message not received."""
    incoming = Incoming()
    incoming.known = 3
    assert incoming.missing() == ((1, 3),)
    incoming.take(2, kept(20), 100)
    assert incoming.missing() == ((1, 1), (3, 3))


def test_the_list_of_missing_messages_is_limited() -> None:
    incoming = Incoming()
    for index in range(2, 4 * MISSING_MAX, 2):
        incoming.take(index, kept(index), 10 * MISSING_MAX)
    assert len(incoming.missing()) == MISSING_MAX


def test_a_fragmented_message_is_delivered_as_a_whole() -> None:
    incoming = Incoming()
    incoming.take(1, kept(1, more=True), 100)
    incoming.take(3, kept(3), 100)
    assert incoming.deliverable() == 0
    incoming.take(2, kept(2, more=True), 100)
    assert incoming.deliverable() == 3
    incoming.delivered = 3
    assert incoming.deliverable() == 0


def test_there_is_room_for_the_rest_of_a_message() -> None:
    incoming = Incoming()
    for index in (1, 2):
        incoming.take(index, kept(index, more=True), 100)
    assert incoming.room(2) == 1
    incoming.take(3, kept(3), 100)
    assert incoming.room(2) == 0 and incoming.room(4) == 1


def test_a_received_message_is_kept_until_it_is_delivered_and_all_have_it() -> None:
    """Figure 6, lines 82 to 84."""
    incoming = Incoming()
    for index in (1, 2, 3):
        incoming.take(index, kept(10 * index), 100)
    incoming.released = 20
    incoming.forget()
    assert set(incoming.kept) == {1, 2, 3}
    incoming.delivered = 3
    incoming.forget()
    assert set(incoming.kept) == {3}


def test_a_sent_message_is_kept_until_the_watermark_of_the_remote_group_reaches_it() -> None:
    """Figure 6, lines 79 to 81."""
    outgoing = Outgoing()
    for timestamp in (5, 6, 9):
        outgoing.produce(kept(timestamp))
    outgoing.release(6)
    assert set(outgoing.sent) == {1, 2, 3}, "no member has acknowledged them"
    assert outgoing.acknowledge(3, 10)
    outgoing.release(0)
    assert set(outgoing.sent) == {3}, "the watermark does not go back"


def test_an_older_acknowledgement_changes_nothing() -> None:
    outgoing = Outgoing()
    for timestamp in (5, 6):
        outgoing.produce(kept(timestamp))
    assert outgoing.acknowledge(2, 7)
    assert not outgoing.acknowledge(1, 3)
    assert (outgoing.acked, outgoing.room) == (2, 7)
    assert not outgoing.acknowledge(2, 4)
    assert outgoing.room == 4


def test_a_new_remote_primary_discards_what_came_after_a_gap() -> None:
    """Figure 9, line 38."""
    incoming = Incoming()
    for index in (1, 2, 4, 5):
        incoming.take(index, kept(10 * index), 100)
    incoming.discard_after(2)
    assert set(incoming.kept) == {1, 2} and incoming.upto == 2
    incoming.discard_after(1)
    assert set(incoming.kept) == {1} and (incoming.upto, incoming.watermark) == (1, 10)


def test_what_was_delivered_is_not_discarded() -> None:
    incoming = Incoming()
    for index in (1, 2, 3):
        incoming.take(index, kept(10 * index), 100)
    incoming.delivered = 2
    incoming.discard_after(1)
    assert incoming.upto == 2


def test_a_state_goes_on_with_the_messages_that_were_logged() -> None:
    """Figure 10, line 21: the messages of the log are replayed, obsolete ones are deleted."""
    incoming = Incoming()
    for index in (1, 3, 4, 6):
        incoming.take(index, kept(10 * index), 100)
    incoming.restart(2, 20)
    assert set(incoming.kept) == {3, 4, 6}
    assert (incoming.delivered, incoming.upto, incoming.watermark) == (2, 4, 40)


def test_a_watermark_does_not_pass_what_is_not_delivered() -> None:
    """A newcomer that takes over a state has received nothing beyond what is delivered there."""
    incoming = Incoming()
    assert incoming.delivered_watermark() == 0
    for index in (1, 2, 3, 4):
        incoming.take(index, kept(10 * index), 100)
    incoming.released = 30  # all members have received three of them
    assert incoming.delivered_watermark() < 10
    incoming.delivered = 1
    incoming.forget()
    assert set(incoming.kept) == {2, 3, 4}
    assert 10 <= incoming.delivered_watermark() < 20
    incoming.delivered = 4
    assert incoming.delivered_watermark() == 40


def test_the_ends_of_a_connection() -> None:
    client, server = Connection(LINK, 0, 0), Connection(LINK, 1, 0)
    assert (client.party, client.remote) == (4, 0) == (server.remote, server.party)


# Limits


@pytest.mark.parametrize(
    "message",
    [
        Request(head(orders=Slice(VIEW, 0, 0, (MessageOrder(LINK, 1, 1),), 0, 0)), 1, 1, False, b"x"),
        FirstAck(head(reflected=Slice(VIEW, 0, 0, (), 0, 0))),
        FirstAck(head(orders=Slice(VIEW, 0, 0, (MessageOrder(4, 1, 2), RoundOrder((4, ~1))), 0, 0))),
        Nack(LINK, 1, ((1, 2),) * MISSING_MAX),
        State(VIEW, 0, 0, b"x" * PART_BYTES),
        StateAsk(VIEW, 0, tuple(range(ASKED_MAX))),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_travel_as_they_are(message: Message) -> None:
    assert CODEC.decode(CODEC.encode(message)) == message


@pytest.mark.parametrize(
    "message",
    [
        Nack(LINK, 1, ((1, 2),) * (MISSING_MAX + 1)),
        State(VIEW, 0, 0, b"x" * (PART_BYTES + 1)),
        StateAsk(VIEW, 0, tuple(range(ASKED_MAX + 1))),
        Request(head(), 0, 1, False, b"x"),
        FirstAck(head(role=2)),
        FirstAck(head(ack=-1)),
        FirstAck(head(orders=Slice(VIEW, 0, 0, (MessageOrder(LINK, 1, RUN_MAX + 1),), 0, 0))),
        FirstAck(head(orders=Slice(VIEW, 0, 0, (MessageOrder(LINK, 1, 1),) * (ENTRIES_MAX + 1), 0, 0))),
        FirstAck(head(orders=Slice(VIEW, 0, 0, (RoundOrder((4,) * (ROUND_MAX + 1)),), 0, 0))),
        FirstAck(head(orders=Slice(VIEW, 0, 0, (RoundOrder(()),), 0, 0))),
    ],
    ids=[
        "too many ranges",
        "too large a part",
        "too many parts",
        "index 0",
        "no such role",
        "below zero",
        "too long a run",
        "too many entries",
        "too long a round",
        "an empty round",
    ],
)
def test_messages_beyond_the_limits_are_refused(message: Message) -> None:
    packed = CODEC.encode(message)
    with pytest.raises(RemoteError):
        CODEC.decode(packed)


def test_a_checkpoint_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(RemoteError, match="a checkpoint cannot be read"):
        read(b"\xff\xff")


def test_a_primary_is_heard_twice_before_it_is_suspected() -> None:
    with pytest.raises(LocalError, match="detect_ns must be at least twice heartbeat_ns"):
        LlftOptions(heartbeat_ns=10 * MILLISECOND, detect_ns=19 * MILLISECOND)
