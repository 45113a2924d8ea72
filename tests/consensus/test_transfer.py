"""Snapshots go to replicas that lag behind a log which a majority has truncated."""

import pytest

from ordercast.components.consensus import ConsensusOptions
from ordercast.components.consensus.messages import Chunk, Commit, Fetch, Learn, Want
from ordercast.components.consensus.transfer import digest_of
from ordercast.core import Message, RemoteError
from tests.consensus.harness import LogWorld
from tests.consensus.test_recovery import cut

OPTIONS = ConsensusOptions(window=8, log_limit=40, checkpoint=10, chunk_bytes=100)


def transferring(replicas: int = 3, seed: int = 0) -> LogWorld:
    return LogWorld(replicas, seed, OPTIONS, transfers=True)


def work(world: LogWorld, count: int) -> None:
    for number in range(count):
        while not world.propose(b"value %d" % number):
            world.run_ms(1)
        world.run_ms(0.5)


def absent_replica() -> None:
    """A replica that stays away does not stop the log, which stays bounded."""
    world = transferring()
    world.crash(2)
    for number in range(300):
        assert world.propose(b"%d" % number), "the log is full"
        world.run_ms(2)
    for index in (0, 1):
        assert len(world.saved_slots(index)) <= OPTIONS.log_limit
    assert len(world.values(0)) == 300


def test_an_absent_minority_does_not_stop_the_log() -> None:
    absent_replica()


def lagging_replica() -> None:
    """A replica that comes back late has what all have, in its place."""
    world = transferring()
    world.crash(2)
    work(world, 150)
    world.restart(2)
    world.run_ms(100)
    assert world.node(2).restored == 1
    assert world.node(2).applied == world.node(0).applied
    work(world, 15)
    world.run_ms(20)
    assert world.node(2).applied == world.node(0).applied
    assert len(world.values(2)) == 165


def test_a_replica_behind_the_log_gets_a_snapshot() -> None:
    lagging_replica()


def test_a_replica_that_lags_a_little_gets_slots() -> None:
    world = transferring()
    work(world, 25)
    world.crash(2)
    work(world, 15)
    world.restart(2)
    world.run_ms(100)
    restored = world.node(2).restored  # once: its own snapshot
    assert (restored, world.node(2).applied) == (1, world.node(0).applied)
    assert not any(isinstance(message, Chunk) for message in world.arrived)


def test_chunks_are_bounded_and_asked_for_one_by_one() -> None:
    world = transferring()
    world.crash(2)
    work(world, 150)
    world.restart(2)
    world.arrived.clear()
    world.run_ms(100)
    chunks = [message for message in world.arrived if isinstance(message, Chunk)]
    wants = [message for message in world.arrived if isinstance(message, Want)]
    assert len(chunks) > 10
    assert len(wants) >= len(chunks) - 3
    assert all(len(chunk.data) <= OPTIONS.chunk_bytes for chunk in chunks)


def test_a_transfer_survives_its_donor() -> None:
    world = transferring(5)
    world.crash(4)
    world.crash(3)
    work(world, 150)
    world.restart(4)
    while not world.replica(4)._catchup.download.active:
        world.run_ms(0.05)
    world.run_ms(2)
    assert world.replica(4)._catchup.download.active, "it takes a while"
    world.crash(0)
    world.restart(3)
    world.run_ms(300)
    work(world, 30)
    world.run_ms(100)
    assert world.node(4).applied == world.node(1).applied
    assert len(world.values(4)) == 180


def test_another_donor_goes_on_where_the_first_stopped() -> None:
    world = transferring(5)
    world.crash(4)
    work(world, 150)
    world.restart(4)
    while not world.replica(4)._catchup.download.active:
        world.run_ms(0.05)
    world.run_ms(2)
    download = world.replica(4)._catchup.download
    cut(world, (0, 4))
    world.arrived.clear()
    world.run_ms(30)
    assert not download.active
    assert world.node(4).restored == 1
    chunks = [message for message in world.arrived if isinstance(message, Chunk)]
    assert chunks and all(chunk.offset > 0 for chunk in chunks), "nothing was sent twice"


@pytest.mark.parametrize("durable", [True, False])
def test_a_transfer_goes_on_after_pauses(durable: bool) -> None:
    """Whoever is silent for a while has its processor taken away; newer snapshots are made meanwhile."""
    options = ConsensusOptions(window=8, log_limit=400, checkpoint=10, chunk_bytes=10)
    world = LogWorld(3, 0, options, transfers=True, durable=durable)
    world.crash(2)
    work(world, 400)
    world.restart(2)
    download = world.replica(2)._catchup.download
    while not download.active:
        world.run_ms(0.05)
    parts = len(world.node(0)._snapshot()) // options.chunk_bytes
    for _ in range(20):
        world.run_ms(40)
        cut(world, (0, 2), (1, 2))
        work(world, 15)
        world.run_ms(60)
        cut(world)
        if world.node(2).restored:
            break
    assert world.node(2).restored == 1
    chunks = [message for message in world.arrived if isinstance(message, Chunk)]
    assert parts < len(chunks) < 2 * parts
    world.run_ms(100)
    assert world.node(2).applied == world.node(0).applied


def test_the_snapshot_that_is_being_sent_is_kept_while_newer_ones_are_made() -> None:
    world = transferring()
    world.crash(2)
    work(world, 150)
    world.restart(2)
    while not world.replica(2)._catchup.download.active:
        world.run_ms(0.05)
    first = world.replica(2)._catchup.download._name
    assert first is not None
    for number in range(12):
        world.act(0, b"more %d" % number)
        world.run_ms(0.3)
    assert world.replica(0)._journal.stable > first.slot
    world.run_ms(100)
    taken = {message.index for message in world.arrived if isinstance(message, Chunk)}
    assert taken == {first.slot}
    assert world.node(2).applied == world.node(0).applied


def lone_snapshot(state: bytes, slot: int = 60) -> list[Chunk]:
    size = OPTIONS.chunk_bytes
    return [
        Chunk(slot, digest_of(state), len(state), offset, state[offset : offset + size])
        for offset in range(0, len(state), size)
    ]


def waiting_replica() -> LogWorld:
    """Replica 2 hears only what the test hands to it."""
    world = transferring()
    cut(world, (0, 2), (1, 2))
    return world


def snapshot_of(world: LogWorld, count: int) -> bytes:
    work(world, count)
    return world.node(0)._snapshot()


def damaged_chunk() -> None:
    """A snapshot with one wrong byte is refused as a whole."""
    world = waiting_replica()
    state = snapshot_of(world, 60)
    chunks = lone_snapshot(state)
    bad = Chunk(60, chunks[1].digest, chunks[1].size, chunks[1].offset, bytes(len(chunks[1].data)))
    for chunk in (chunks[0], bad, *chunks[2:-1]):
        world.replica(2).on_message(0, chunk)
    with pytest.raises(RemoteError, match="does not match its digest"):
        world.replica(2).on_message(0, chunks[-1])
    assert (world.node(2).restored, world.replica(2).committed) == (0, 0)
    assert world.replica(2)._catchup.download.refused == 1
    for chunk in chunks:
        world.replica(2).on_message(1, chunk)
    assert (world.node(2).restored, world.replica(2).committed) == (1, 60)


def test_a_damaged_snapshot_is_refused() -> None:
    damaged_chunk()


def two_snapshots() -> None:
    """Parts of two snapshots come, as if two replicas sent them."""
    world = waiting_replica()
    state = snapshot_of(world, 50)
    one, two = lone_snapshot(state, 50), lone_snapshot(state[::-1], 60)
    replica = world.replica(2)
    replica.on_message(0, one[0])
    replica.on_message(0, two[1])
    replica.on_message(1, two[0])
    for chunk in one[1:]:
        replica.on_message(1, chunk)
    assert (replica.committed, replica._catchup.download.refused) == (50, 0)
    assert world.node(2).applied == world.node(0).applied


def test_chunks_of_two_snapshots_are_not_put_together() -> None:
    two_snapshots()


def stale_values() -> None:
    """What a replica had accepted below a snapshot may have lost against another value."""
    world = transferring()
    work(world, 5)
    cut(world, (0, 1), (0, 2))
    for number in range(3):
        world.act(0, b"undecided %d" % number)
    world.run_ms(200)
    assert world.leader() in (1, 2)
    work(world, 100)
    cut(world)
    while not world.node(0).restored:
        world.run_ms(0.05)
    stale = [value for _, value in world.replica(0)._journal.entries.values() if b"undecided" in value]
    assert not stale
    assert world.replica(0)._journal.base == world.replica(0)._journal.stable
    world.arrived.clear()
    world.replica(0).on_message(1, Fetch(5))
    world.run_ms(5)
    learned = [m for m in world.arrived if isinstance(m, Learn) and m.start == 5]
    assert not learned, "slots that it never knew are not for it to teach"


def test_old_values_go_when_a_snapshot_comes() -> None:
    stale_values()


def test_old_values_do_not_come_back_when_a_crash_keeps_some_of_them() -> None:
    world = transferring()
    world.crash(2)
    work(world, 150)
    world.restart(2)
    world.run_ms(100)
    saved = world.envs[2].saved
    base = world.replica(2)._journal.base
    for slot in (3, 5):  # as if the crash had come before they were removed
        saved[f"log.slot.{slot}"] = bytes(8) + b"stale"
    world.crash(2)
    world.restart(2)
    world.run_ms(50)
    assert not {3, 5} & {*world.replica(2)._journal.entries}
    assert world.replica(2)._journal.base >= base
    assert world.node(2).applied == world.node(0).applied


def test_a_candidate_that_lags_gets_a_snapshot_from_its_voters() -> None:
    world = transferring()
    world.crash(2)
    work(world, 150)
    world.crash(0)
    world.restart(2)
    world.run_ms(400)
    assert world.leader() in (1, 2)
    assert world.node(2).applied == world.node(1).applied
    assert len(world.values(2)) == 150


BAD: list[Message] = [
    Chunk(60, bytes(16), 5, 0, b"123456"),
    Chunk(60, bytes(16), 5, 4, b"12"),
    Chunk(60, bytes(16), 5, 0, b""),
    Chunk(60, bytes(16), 1 << 33, 0, b"1"),
    Chunk(1 << 41, bytes(16), 1, 0, b"1"),
    Commit(0, 10, 11),
]


@pytest.mark.parametrize("message", BAD, ids=repr)
def test_what_no_correct_replica_sends_is_refused(message: Message) -> None:
    world = transferring()
    before = dict(world.envs[2].saved)
    with pytest.raises(RemoteError, match="node 0"):
        world.replica(2).on_message(0, message)
    assert world.envs[2].saved == before


def test_who_lags_far_accepts_nothing_beyond_its_reach() -> None:
    world = transferring()
    world.crash(2)
    work(world, 150)
    world.restart(2)
    cut(world, (1, 2))
    world.network.blocked.add((2, 0))  # it hears the leader, but cannot ask for anything
    work(world, 20)
    assert not world.replica(2)._journal.entries
    cut(world)
    world.run_ms(100)
    assert world.node(2).applied == world.node(0).applied
