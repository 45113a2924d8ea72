"""What no correct process says is refused, and changes nothing; a leader keeps no more than its limits."""

import pytest

from ordercast.core import Message, MessageId, RemoteError, message_id
from ordercast.transactions.granola.entries import Subject, Verdict
from ordercast.transactions.granola.messages import Ask, Enquiry, Reading, Request, State, Told, Vote
from tests.granola.lab import GranolaWorld
from tests.logged_shards.lab import FAR, call_of, transfer

DAY_NS = 86_400 * 10**9
FAR_FUTURE = 2 * DAY_NS
CLIENT, STRANGER = 6, 7
FIRST = message_id(CLIENT, 1)
SUBJECT = Subject(FIRST)


def packed(world: GranolaWorld) -> bytes:
    """The call that a client makes first."""
    world.call(transfer(*FAR, 5))
    world.run_until(lambda: world.kinds(Request))
    return next(message.call for _, _, message in world.sent if isinstance(message, Request))


def shape(world: GranolaWorld, node: int) -> tuple[object, ...]:
    """All of a replica that a message could change."""
    server = world.server(node)
    voting = server.voting
    return server.schedule.snapshot(), str(voting._votes), dict(voting._leaders), len(server._proposer)


def refuse(node: int, source: int, message: Message, match: str) -> None:
    world = GranolaWorld()
    world.call(transfer(*FAR, 5))
    world.run_ms(20)
    before, sent = shape(world, node), len(world.sent)
    with pytest.raises(RemoteError, match=match):
        world.server(node).on_message(source, message)
    assert shape(world, node) == before
    assert len(world.sent) == sent
    world.finish()


CALL = call_of(1, transfer(*FAR, 5))
VOTES = [
    ("too far ahead", 3, Vote(SUBJECT, 0, 1, Verdict.COMMIT, FAR_FUTURE + 1, False)),
    ("too far ahead", 3, Vote(SUBJECT, 0, 1, Verdict.COMMIT, FAR_FUTURE + 1, True)),
    ("may not propose", 3, Vote(SUBJECT, 0, 1, Verdict.COMMIT, 1000, False)),
    ("sent a vote of shard 0", 3, Vote(SUBJECT, 0, 0, Verdict.COMMIT, 1000, False)),
    ("sent a vote of shard 0", 1, Vote(SUBJECT, 0, 0, Verdict.COMMIT, 1000, False)),
    ("sent a Vote", CLIENT, Vote(SUBJECT, 0, 1, Verdict.COMMIT, 1001, False)),
    ("too far ahead", 9, Request(0, (0, 1), FAR_FUTURE, CALL, ())),
    ("was sent a transaction of shards", 9, Request(0, (1,), 0, CALL, ())),
    ("was sent a transaction of shards", 9, Request(0, (0, 5), 0, CALL, ())),
    ("was sent a transaction of shards", 9, Request(0, (1, 0), 0, CALL, ())),
    ("in the name of node 9", STRANGER, Request(0, (0, 1), 0, CALL, ())),
    ("asked about a call with another name", 3, Ask(SUBJECT, 0, (0, 1), CALL, False)),
    ("sent an Ask", CLIENT, Ask(SUBJECT, 0, (0, 1), CALL, False)),
    ("sent an Ask", 1, Ask(SUBJECT, 0, (0, 1), CALL, False)),
    ("sent an Enquiry", 3, Enquiry()),
    ("sent a Told", CLIENT, Told(FIRST, 0, State.EXECUTED, b"", None)),
    ("sent a Reading", 3, Reading(5)),
]


@pytest.mark.parametrize(("match", "source", "message"), VOTES)
def test_a_replica_refuses_what_cannot_be_true(match: str, source: int, message: Message) -> None:
    refuse(0, source, message, match)


def test_a_timestamp_as_far_ahead_as_allowed_counts() -> None:
    """It may be true: from then on, this shard proposes higher ones."""
    world = GranolaWorld()
    call = packed(world)
    world.server(0).on_message(CLIENT, Request(0, (0, 1), DAY_NS - 1, call, ()))
    world.run_ms(20)
    assert world.server(0).schedule.high > DAY_NS - 2
    world.finish()


@pytest.mark.parametrize(
    "message",
    [Reading(FAR_FUTURE), Told(FIRST, 0, State.EXECUTED, b"", (FAR_FUTURE, 0, ()))],
    ids=["reading", "told"],
)
def test_a_client_believes_no_far_future(message: Message) -> None:
    world = GranolaWorld()
    first: MessageId = world.call(transfer(*FAR, 5))
    with pytest.raises(RemoteError, match="too far ahead"):
        world.client(0).on_message(0, message)
    assert world.client(0)._seen == 0
    world.finish(first)


def test_votes_on_what_never_comes_are_forgotten() -> None:
    world = GranolaWorld(options={"queue": 8})
    for number in range(100):
        vote = Vote(Subject(message_id(CLIENT, 1000 + number)), 0, 1, Verdict.COMMIT, 1001, False)
        world.server(0).on_message(3, vote)
    assert len(world.server(0).voting._votes) == 16
    world.finish()


def test_a_leader_takes_no_more_than_it_can_keep() -> None:
    """While shard 1 cannot be reached, what needs its vote stays on record, up to the limit."""
    world = GranolaWorld(options={"queue": 8, "calls": {"window": 64}})
    world.lose(Vote, Ask)
    messages = [world.call(transfer(*FAR, 1), number % 3) for number in range(30)]
    world.run_ms(50)
    assert len(world.records(0)) == 8
    world.finish(*messages, within_ms=4000)


def test_what_other_shards_have_taken_is_taken_too() -> None:
    """Shard 0 is full of its own; shard 1 is full of others, which only it was sent. Both go on."""
    world = GranolaWorld(options={"queue": 4, "calls": {"window": 64}})
    world.lose(Vote, Ask)
    world.block(*((6, node) for node in (3, 4, 5)), *((7, node) for node in (0, 1, 2)))
    messages = [world.call(transfer(*FAR, 1), number % 2) for number in range(8)]
    world.run_ms(10)
    assert len(world.records(0)) == len(world.records(3)) == 4
    world.lost = lambda source, to, message: source in (6, 7)
    world.run_ms(100)
    assert all(world.deliverers(message) for message in messages)
    world.finish(*messages, within_ms=4000)
