"""Plays of replicas that stay behind and catch up: what they need, what they must not keep, what they ask."""

import msgspec

from ordercast.components.network_ordered.messages import (
    BaseChunk,
    BaseRequest,
    Entries,
    FetchEntries,
    GapCommit,
    StartView,
    SyncPrepare,
)
from ordercast.core import MILLISECOND, Message, NodeId
from tests.hand_driven import Chosen
from tests.network_ordered.lab import OPTIONS, Lab
from tests.network_ordered.plays import without
from tests.network_ordered.plays_traps import ahead_options


def _behind_a_forgotten_noop() -> Lab:
    """Replica 2 has a call that the others gave up, and the leader has taken a checkpoint since."""
    lab = Lab(options=ahead_options())

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        told = to == 2 and isinstance(message, GapCommit | SyncPrepare)
        return told or (source == 2 and isinstance(message, Entries))

    lab.lost = lost
    lab.call("a", 2)
    lab.call("b")
    lab.wait_ms(12)
    assert lab.log(2) == ["a", "b"]
    assert lab.delivered[0] == ["b"]
    assert lab.replica(0).log.base.rank > (0, 0)
    assert not lab.replica(0).log.noops
    return lab


def a_noop_is_behind_the_base() -> None:
    """A leader does not tell NO-OPs before its base: who may lack one takes the state."""
    lab = _behind_a_forgotten_noop()
    lab.finish("b")
    assert "a" not in lab.delivered[2]


def a_commit_of_what_was_not_agreed_to() -> None:
    """A replica was asked to agree, and does not have the state yet: the commit is not for it."""
    lab = _behind_a_forgotten_noop()
    lab.lost = without(BaseChunk)
    lab.call("c")
    lab.wait_ms(20)
    assert lab.delivered[0] == ["b", "c"]
    assert lab.delivered[2] == []
    lab.finish("b", "c")
    assert "a" not in lab.delivered[2]


def entries_of_a_removed_sequencer() -> None:
    """The log has calls of a sequencer that is gone: a replica without memory needs them, too."""
    lab = Lab()
    first = lab.call("a")
    lab.plan("removed", 1)
    lab.decide("removed", 1, first.clock, 1)
    lab.call("b", sequencer=2)
    lab.wait_ms(20)
    assert [len(lab.delivered[node]) for node in (0, 1, 2)] == [2, 2, 2]
    lab.crash(2)
    lab.disks[2] = {}
    lab.start(2, forgot=True)
    lab.tell()
    lab.wait_ms(400)
    lab.call("c", sequencer=2)
    lab.finish("a", "b", "c")


def _doubled(lab: Lab, kind: type[Message]) -> None:
    """Let each message of a kind come twice to replica 2."""

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        assert len(lab.sent) < 10_000, "answers and questions multiply"
        if to == 2 and isinstance(message, kind):
            lab.drivers[2].receive(source, message)
        return False

    lab.lost = lost


def parts_of_a_state_come_twice() -> None:
    """A copy of a part does not lead to another question."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, checkpoint_every=2, keep=0, chunk_bytes=16))
    lab.lost = lambda source, to, message: 2 in (source, to)
    for name in "bcdefgh":
        lab.call(name * 8, 0, 1)
        lab.wait_ms(4)
    _doubled(lab, BaseChunk)
    lab.wait_ms(60)
    assert any(one.restored for one in lab.checkpoints[2])
    assert lab.kinds(BaseRequest) <= 3 * len(lab.replica(0).ledger.state) // 16


def entries_come_one_by_one() -> None:
    """A replica asks again only when all that it asked for has come, or nothing comes."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, chunk_bytes=1))
    for name in "abcdefgh":
        lab.call(name)
    lab.wait_ms(12)
    lab.crash(2)
    lab.disks[2] = {}
    _doubled(lab, Entries)
    lab.start(2, forgot=True)
    lab.tell()
    lab.wait_ms(400)
    assert lab.log(2) == list("abcdefgh")
    assert 0 < lab.kinds(FetchEntries) <= 4
    lab.finish(*"abcdefgh")


def _large_state() -> tuple[Lab, int]:
    """Replica 2 comes back without its disk; the state has many parts. Returns how many."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, checkpoint_every=2, keep=0, chunk_bytes=16))
    lab.lost = lambda source, to, message: 2 in (source, to)
    for number in range(20):
        lab.call(f"early{number}", 0, 1)
        lab.wait_ms(2)
    lab.wait_ms(20)
    lab.crash(2)
    lab.disks[2] = {}
    return lab, len(lab.replica(0).ledger.state) // 16


def _come_back(lab: Lab, lost: Chosen) -> int:
    """Start replica 2, and call until it is there; returns how many parts of a state were sent."""
    before = lab.kinds(BaseChunk)
    lab.lost = lost
    lab.start(2, forgot=True)
    lab.tell()
    for number in range(100):
        lab.call(f"late{number}", 0, 1)
        lab.wait_ms(20)
        if lab.replica(2).is_normal:
            break
    assert lab.replica(2).is_normal
    assert number > 4, "it took a while"
    return lab.kinds(BaseChunk) - before


def a_state_is_fetched_with_pauses() -> None:
    """Pauses that are longer than a leader may be silent do not take the state away."""
    lab, parts = _large_state()
    ends, count = lab.now, 0

    def pauses(source: NodeId, to: NodeId, message: Message) -> bool:
        nonlocal ends, count
        if isinstance(message, BaseRequest) and lab.now >= ends:
            count += 1
            if count % 20 == 0:
                ends = lab.now + 3 * OPTIONS.silence_ns
        return isinstance(message, BaseRequest) and lab.now < ends

    assert _come_back(lab, pauses) < 2 * parts, "it goes on where it stopped"
    lab.finish("early0", "early19", "late0")


def the_leader_changes_while_a_state_is_fetched() -> None:
    """Who has given a part of the state gives the rest, also if another one leads."""
    lab, parts = _large_state()
    leaders: set[NodeId] = set()
    last = lab.now

    def change(source: NodeId, to: NodeId, message: Message) -> bool:
        nonlocal last
        if isinstance(message, StartView) and to == 2:
            leaders.add(source)
        if isinstance(message, BaseRequest):
            slow, last = lab.now < last + MILLISECOND, max(last, lab.now)
            return slow
        return isinstance(message, SyncPrepare) and lab.now // (100 * MILLISECOND) % 2 == 1

    assert _come_back(lab, change) < 2 * parts, "it goes on where it stopped"
    assert leaders == {0, 1} and lab.replica(0).view > 3
    lab.finish("early0", "early19", "late0")


CATCHING_UP = (
    a_state_is_fetched_with_pauses,
    the_leader_changes_while_a_state_is_fetched,
    a_noop_is_behind_the_base,
    a_commit_of_what_was_not_agreed_to,
    entries_of_a_removed_sequencer,
    parts_of_a_state_come_twice,
    entries_come_one_by_one,
)
