"""A peer by itself: broadcasting, bad input, groups, restarts, sleep, and what it says of itself."""

import pytest

from ordercast.core import Delivered, LocalError, Message, NodeId, OutOfOrder, RemoteError, Stamp
from ordercast.protocols.epto.clocks import LOGICAL_MAX
from ordercast.protocols.epto.messages import CLOCK_MAX, Ball, Event, LogicalTime
from ordercast.protocols.epto.ordering import START
from ordercast.protocols.epto.peer import Peer
from ordercast.protocols.epto.rounds import SLEPT_MAX
from tests.epto.lab import ROUND, SECOND, Bench, event, global_clock

# Broadcasting


def test_a_delivery_names_groups_sender_and_place() -> None:
    bench = Bench(me=0)
    bench.hear((event("theirs", 5, source=2), 3 - 1))
    bench.round(5)
    assert bench.env.delivered == [Delivered(b"theirs", (0,), 2, Stamp(5, 2))]


def test_a_late_delivery_does_too() -> None:
    bench = Bench(me=0, tags=True)
    bench.hear((event("theirs", 5, source=2), 2))
    bench.round(5)
    bench.hear((event("late", 4, source=1), 2))
    bench.round(5)
    assert bench.env.delivered[1:] == [OutOfOrder(b"late", (0,), 1, Stamp(4, 1))]


def test_a_full_window_refuses_until_own_events_are_delivered() -> None:
    bench = Bench(window=2, ttl=2)
    assert [bench.submit(word) for word in "abc"] == [True, True, False]
    bench.round(2)
    assert not bench.submit("c")
    bench.round()
    assert bench.words() == ["a", "b"]
    assert bench.submit("c")


def test_no_room_for_events_of_others_refuses_those_and_takes_own_ones() -> None:
    bench = Bench(events=2, ttl=3)
    bench.hear(*((event(word, ts), 1) for ts, word in enumerate("abc", start=1)))
    assert bench.submit("mine")
    bench.round(6)
    assert bench.words() == ["a", "b", "mine"]
    assert bench.peer.explain().state["refused for want of room"] == 1
    bench.hear((event("d", 9), 1))
    bench.round(6)
    assert bench.words()[-1] == "d"


def test_an_event_that_is_heard_again_takes_no_more_room() -> None:
    bench = Bench(events=2, ttl=9)
    for age in (1, 4):
        bench.hear((event("a", 1), age), (event("b", 2), age))
        assert bench.balls() == {"a": age + 1, "b": age + 1}
    assert bench.peer.explain().state["refused for want of room"] == 0


def test_known_events_and_own_ones_leave_the_rest_of_the_room_to_others() -> None:
    bench = Bench(events=3, ttl=9)
    bench.hear((event("a", 1), 1))
    bench.round()
    assert bench.submit("mine")
    bench.hear((event("a", 1), 4), (event("b", 2), 4), (event("c", 3), 4))
    bench.hear((event("c", 3), 4), (event("b", 2), 6))
    assert bench.balls() == {"mine": 1, "a": 5, "b": 7}
    assert bench.peer.explain().state["refused for want of room"] == 2


@pytest.mark.parametrize("groups", [(), (7,), (0, 7)])
def test_a_message_to_nobody_is_the_callers_fault(groups: tuple[int, ...]) -> None:
    bench = Bench()
    with pytest.raises(LocalError):
        bench.peer.submit(groups, b"")
    assert bench.round() == []


def test_stamps_of_a_global_clock_are_above_all_that_was_delivered() -> None:
    bench = Bench(me=0, clock=global_clock(), now=SECOND, ttl=2)
    bench.hear((event("ahead", 3 * SECOND), 1))
    bench.round(3)
    bench.submit("mine")
    bench.submit("again")
    bench.round(4)
    stamps = [
        delivery.stamp.clock
        for delivery in bench.env.delivered
        if isinstance(delivery, Delivered) and delivery.stamp
    ]
    assert stamps == [3 * SECOND, 3 * SECOND + 1, 3 * SECOND + 2]


def test_an_event_from_the_far_future_is_neither_relayed_nor_ordered() -> None:
    bench = Bench(clock=global_clock(ahead_ns=SECOND), now=SECOND)
    bench.hear((event("far", 2 * SECOND + ROUND * 99), 1), (event("near", 2 * SECOND), 1))
    assert bench.balls() == {"near": 2}
    bench.round(5)
    assert bench.words() == ["near"]
    assert bench.peer.explain().state["not believed"] == 1


# Bad input


def test_a_made_up_logical_time_does_not_end_all_that_comes_after_it() -> None:
    bench = Bench(me=0, ttl=2)
    bench.hear((event("absurd", LOGICAL_MAX), 1), (event("true", 5), 1))
    bench.peer.on_message(1, LogicalTime(LOGICAL_MAX))
    bench.submit("mine")
    bench.round(5)
    assert bench.words() == ["true", "mine"]
    assert bench.peer.explain().state["not believed"] == 2
    assert bench.peer.explain().state["clock"] == 6


BAD = [
    Ball((1, 1), (event("one", 3),)),
    Ball((1,), (event("good", 3), event("more", 4))),
    Ball((1, 1), (event("good", 3), event("stranger", 4, source=3))),
    Ball((1, 1), (event("good", 3), event("to nobody", 4, groups=()))),
    Ball((1, 1), (event("good", 3), event("elsewhere", 4, groups=(0, 9)))),
    Ball((1, 1), (event("good", 3), event("absurd", LOGICAL_MAX + 1))),
    LogicalTime(CLOCK_MAX),
]


@pytest.mark.parametrize("message", BAD)
def test_a_message_that_no_correct_peer_sends_changes_nothing(message: Message) -> None:
    bench = Bench(me=0)
    with pytest.raises(RemoteError, match="node 2"):
        bench.peer.on_message(2, message)
    assert bench.peer.explain().state["clock"] == 0
    assert "round" not in bench.env.timers
    bench.submit("mine")
    assert bench.balls() == {"mine": 1}


# Groups


GROUPS = {0: (0, 1), 1: (1, 2)}


@pytest.mark.parametrize(
    ("me", "words"), [(0, ["a", "both"]), (1, ["a", "both", "b"]), (2, ["both", "b"]), (3, [])]
)
def test_groups_may_overlap_and_each_delivers_its_own_in_one_order(me: NodeId, words: list[str]) -> None:
    bench = Bench(me=me, groups=GROUPS, peers=4)
    bench.hear((event("b", 3, groups=(1,)), 2), (event("both", 2, groups=(0, 1)), 2), (event("a", 1), 2))
    assert set(bench.balls()) == {"a", "both", "b"}  # all relay all
    bench.round(5)
    assert bench.words() == words


def test_a_publisher_relays_and_delivers_nothing_but_its_window_opens_again() -> None:
    bench = Bench(me=3, groups={0: (0, 1, 2)}, peers=4, window=1, ttl=2)
    assert bench.submit("mine")
    assert not bench.submit("more")
    assert bench.balls() == {"mine": 1}
    bench.round(2)
    assert bench.words() == []
    assert bench.submit("more")
    assert bench.peer.explain().state["role"] == "publisher"


# Restarts


def test_a_durable_peer_delivers_nothing_again_and_goes_on_in_order() -> None:
    first = Bench(durable=True, ttl=2)
    first.hear((event("a", 5), 1), (event("b", 7), 1))
    first.round(3)
    second = Bench(durable=True, ttl=2, saved=first.env.saved, now=first.env.now + 1)
    second.hear((event("a", 5), 1), (event("b", 7), 1), (event("late", 6), 1), (event("c", 8), 1))
    second.round(5)
    assert (first.words(), second.words()) == (["a", "b"], ["c"])


@pytest.mark.parametrize("tags", [True, False])
def test_a_durable_peer_hands_nothing_over_twice_whether_it_tags_or_not(tags: bool) -> None:
    first = Bench(durable=True, ttl=2, tags=tags)
    first.hear((event("b", 7), 1))
    first.round(3)
    first.hear((event("late", 5), 1))
    first.round(3)
    second = Bench(durable=True, ttl=2, tags=tags, saved=first.env.saved, now=first.env.now + 1)
    second.hear((event("late", 5), 1), (event("b", 7), 1))
    second.round(5)
    assert second.words() == []


def test_the_place_is_saved_before_the_deliveries_that_it_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, steps = Bench(durable=True, ttl=2), list[str]()
    monkeypatch.setattr(bench.env, "save", lambda name, state: steps.append(f"save {name}"))
    monkeypatch.setattr(bench.env, "deliver", lambda delivery: steps.append(delivery.payload.decode()))
    bench.hear((event("a", 5), 1), (event("b", 7), 1))
    bench.round(3)
    assert steps == ["save place", "a", "b"]


def test_a_durable_peer_stamps_above_what_it_delivered_in_its_earlier_life() -> None:
    first = Bench(me=0, durable=True, ttl=2)
    first.hear((event("a", 50), 1))
    first.round(3)
    second = Bench(me=0, durable=True, ttl=2, saved=first.env.saved, now=first.env.now + 1)
    second.submit("mine")
    second.round(4)
    assert second.words() == ["mine"]


def test_a_peer_that_is_not_durable_saves_nothing() -> None:
    bench = Bench(ttl=2)
    bench.submit("mine")
    bench.round(4)
    assert bench.words() == ["mine"]
    assert bench.env.saved == {}


def test_events_of_two_lives_with_one_timestamp_are_two_events() -> None:
    keys = []
    for now in (100, 101):  # a life starts at a later reading than the one before
        bench = Bench(me=0, now=now)
        bench.submit("event")
        message = bench.round()[0][1]
        assert isinstance(message, Ball)
        keys.append(message.events[0].key)
    assert keys[0][:2] == keys[1][:2]
    assert keys[0] < keys[1]


# Sleep


class Sleepless(Peer):
    """Does all of its rounds."""

    def on_timer(self, name: str) -> None:
        super().on_timer(name)
        if not self._armed:
            self._arm()


def throws(kind: type[Peer], idle_rounds: int) -> list[tuple[int, NodeId]]:
    """When and at whom a peer throws its event, which it broadcasts after some idle rounds."""
    bench = Bench(me=0, jitter_ns=ROUND // 3, peers=50, fanout=5, ttl=6)
    bench.peer.__class__ = kind
    if kind is Sleepless:
        bench.peer._arm()
    end = idle_rounds * ROUND
    while bench.env.timers.get("round", end) < end:
        bench.round()
    bench.env.now = end
    found = []
    bench.submit("mine")
    for _ in range(8):
        bench.env.sent.clear()
        bench.round()
        found += [(bench.env.now, to) for to, message in bench.env.sent if isinstance(message, Ball)]
        bench.hear((event("theirs", 5), 1))  # so that it throws in every round
    return found


@pytest.mark.parametrize("idle_rounds", [0, 1, 7, SLEPT_MAX // 2])
def test_a_peer_that_slept_throws_when_and_at_whom_it_would_have_without_sleep(idle_rounds: int) -> None:
    assert throws(Peer, idle_rounds) == throws(Sleepless, idle_rounds)
    assert len(throws(Peer, idle_rounds)) == 8 * 5


def test_a_peer_that_slept_for_long_goes_on_within_a_round() -> None:
    bench = Bench(me=0, jitter_ns=ROUND // 3)
    bench.env.now = 3600 * SECOND
    bench.submit("mine")
    assert 0 <= bench.env.timers["round"] - bench.env.now <= ROUND + ROUND // 3
    bench.round(4)
    assert bench.words() == ["mine"]
    assert "round" not in bench.env.timers


# What it says of itself


def test_it_explains_what_each_event_waits_for_and_how_sure_it_is_that_all_know_it() -> None:
    bench = Bench(me=0, ttl=9, peers=20, fanout=8)
    bench.hear((event("first", 1), 2), (event("second", 2), 8))
    bench.round(3)
    bench.hear((event("third", 3), 1))  # not in a round yet
    waits = bench.peer.explain().waits
    assert [wait.payload for wait in waits] == [b"first", b"second", b"third"]
    assert waits[0].blocker == "round 9, after which all peers know it; this is round 5"
    assert waits[1].blocker == "the event of node 1 at 1, which is not old enough yet"
    assert waits[2].blocker == "round 9, after which all peers know it; this is round 1"
    first, second, third = (wait.stable or 0.0 for wait in waits)
    assert 0 <= third <= first <= second <= 1
    assert second < 0.99, "a great age alone is no proof: whoever relayed it so often may have been alone"
    bench.round(4)
    assert (bench.peer.explain().waits[1].stable or 0.0) > 0.99


def test_the_probability_only_grows_as_an_event_waits() -> None:
    bench = Bench(me=0, ttl=9, peers=20, fanout=8)
    bench.submit("mine")
    seen = []
    while not bench.words():
        seen += [wait.stable for wait in bench.peer.explain().waits]
        bench.round()
    assert len(seen) == 10
    assert seen == sorted(seen, key=lambda probability: probability or 0.0)
    assert seen[0] == 0.0
    assert bench.peer.explain().waits == ()


@pytest.mark.parametrize(("rounds", "noticed"), [(3, False), (4, True)])
def test_a_peer_that_stood_still_for_longer_than_an_event_lives_says_so(rounds: int, noticed: bool) -> None:
    bench = Bench(ttl=3)
    bench.hear((event("first", 5), 0))
    bench.round()
    bench.env.now = bench.env.timers["round"] + rounds * ROUND
    bench.round()
    bench.hear((event("second", 6), 0))
    bench.round(5)  # these are in time, and not counted
    state = bench.peer.explain().state
    assert state.get("standstills", 0) == int(noticed)
    assert state.get("stood still") == ("4 ms; events of that time may be missing here" if noticed else None)
    assert bench.words() == ["first", "second"]


def test_a_peer_that_had_nothing_to_do_did_not_stand_still() -> None:
    bench = Bench(ttl=3)
    bench.env.now = 100 * ROUND
    bench.hear((event("first", 5), 0))
    bench.round(5)
    assert "stood still" not in bench.peer.explain().state


def test_explaining_changes_nothing() -> None:
    bench = Bench(me=0)
    bench.submit("mine")
    before = dict(bench.env.timers)
    bench.peer.explain()
    assert (bench.env.timers, bench.env.sent, bench.env.delivered) == (before, [], [])
    assert bench.peer._order.last == START


def test_an_event_is_its_own_key() -> None:
    assert Event(3, 1, 2, (0,), b"").key == (3, 1, 2)
