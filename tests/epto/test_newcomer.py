"""What a peer of EpTO waits for before it broadcasts: the logical time, which it may never have known or may
know no longer, and some peers to tell."""

import pytest

from ordercast.components.sampling import Uniform
from ordercast.core import NodeId
from ordercast.protocols.epto.messages import Ball, Hello, LogicalTime
from ordercast.protocols.epto.newcomer import NEWCOMER_LIFE, Newcomer, NewcomerState
from tests.core.life_cycles import record
from tests.epto.lab import ROUND, Bench, event


def hellos(bench: Bench) -> list[NodeId]:
    """Whom it has asked since the last time."""
    asked = [to for to, message in bench.env.sent if isinstance(message, Hello)]
    bench.env.sent.clear()
    return asked


def ask_again(bench: Bench) -> None:
    bench.env.now = bench.env.timers.pop("ask")
    bench.peer.on_timer("ask")


def test_a_newcomer_broadcasts_when_half_of_the_peers_it_asked_have_answered() -> None:
    bench = Bench(me=0, asks_time=True, peers=9, fanout=4)
    assert len(set(hellos(bench))) == 4
    assert not bench.submit("early")
    for _ in range(4):
        bench.peer.on_message(1, LogicalTime(40))
        assert not bench.submit("early"), "one peer is one, however many copies of its answer arrive"
    bench.peer.on_message(2, LogicalTime(30))
    assert bench.submit("mine")
    assert "ask" not in bench.env.timers
    message = bench.round()[0][1]
    assert isinstance(message, Ball)
    assert message.events[0].ts == 41


def test_a_newcomer_asks_others_when_nobody_answers_and_does_without_after_an_events_life() -> None:
    bench = Bench(me=0, asks_time=True, peers=99, fanout=3, ttl=12)
    asked = [tuple(hellos(bench))]
    while "ask" in bench.env.timers:
        assert not bench.submit("early")
        ask_again(bench)
        asked.append(tuple(hellos(bench)))
    assert len(set(asked)) == len(asked) == 5
    assert asked[-1] == ()
    assert bench.env.now == 4 * 4 * ROUND
    assert bench.submit("mine")


def test_a_newcomer_relays_and_delivers_before_it_knows_the_time() -> None:
    bench = Bench(me=0, asks_time=True, ttl=2)
    bench.hear((event("theirs", 5), 1))
    assert bench.balls() == {"theirs": 2}
    bench.round(3)
    assert bench.words() == ["theirs"]
    assert "waits" in bench.peer.explain().state


def test_a_peer_tells_a_newcomer_the_time() -> None:
    bench = Bench(me=0)
    bench.hear((event("theirs", 17), 1))
    bench.peer.on_message(2, Hello())
    assert bench.env.sent == [(2, LogicalTime(17))]


def test_a_lone_peer_waits_for_nobody() -> None:
    bench = Bench(me=0, asks_time=True, peers=1, fanout=0, groups={0: (0,)})
    assert bench.submit("mine")
    bench.round(5)
    assert bench.words() == ["mine"]


def test_a_peer_that_heard_nothing_for_long_asks_for_the_time_before_it_stamps() -> None:
    """It may have been cut off, and its events would be late at all others."""
    bench = Bench(me=0, asks_time=True, peers=9, fanout=4)
    for peer in (1, 2):
        bench.peer.on_message(peer, LogicalTime(3))
    assert bench.submit("before")
    assert len(hellos(bench)) == 4
    heard = bench.env.now
    bench.round(bench.setting.ttl)
    bench.env.now = heard + bench.setting.ttl * ROUND
    assert bench.submit("within the life of an event") and not hellos(bench)
    bench.env.now += ROUND
    assert not bench.submit("after") and len(hellos(bench)) == 4
    assert not bench.submit("after") and not hellos(bench), "it asks once"
    for peer in (5, 6):
        bench.peer.on_message(peer, LogicalTime(400))
    assert bench.submit("after") and bench.peer._stamped == 401
    bench.env.now += bench.setting.ttl * ROUND + 1
    assert not bench.submit("nobody answers")
    bench.peer.on_message(7, LogicalTime(1 << 50))
    assert bench.peer._clock.read(0) == 401, "only a newcomer believes any time"
    ask_again(bench)
    assert bench.submit("nobody answers"), "it does not wait for ever"
    assert bench.submit("nobody answers"), "and does not ask before every event"


def late_by(rounds: float) -> Bench:
    """A peer that knows the time and has something to do, and comes so late to its next round."""
    bench = Bench(me=0, asks_time=True, peers=9, fanout=4)
    for peer in (1, 2):
        bench.peer.on_message(peer, LogicalTime(3))
    assert bench.submit("before") and len(hellos(bench)) == 4
    bench.env.now = bench.env.timers["round"] + round(rounds * ROUND)
    bench.hear((event("waited as long", 5), 0))
    return bench


def test_a_peer_that_stood_still_asks_for_the_time_before_it_stamps() -> None:
    """What it hears first has waited as long as it, so its clock is behind, and its events would be late."""
    bench = late_by(1.5)
    assert not bench.submit("after") and len(hellos(bench)) == 4
    bench.round()
    assert not bench.submit("after") and not hellos(bench), "it asks once"
    for peer in (5, 6):
        bench.peer.on_message(peer, LogicalTime(400))
    assert bench.submit("after") and bench.peer._stamped == 401


def test_a_peer_whose_round_was_late_asks_for_the_time_before_it_stamps() -> None:
    bench = late_by(1.5)
    bench.round()
    assert not bench.submit("after") and waits_for(bench) is NewcomerState.ASKING


def test_a_peer_that_is_a_little_late_goes_on() -> None:
    assert late_by(0.9).submit("after")


def test_a_peer_that_is_late_for_long_goes_on_when_it_knows_the_time() -> None:
    """Its rounds may always be late, on a machine that is too busy."""
    bench = late_by(1.5)
    assert not bench.submit("after")
    for peer in (5, 6):
        bench.peer.on_message(peer, LogicalTime(400))
    bench.env.now += 2 * ROUND
    assert bench.submit("after"), "the same round is still late, and was asked about"


def waits_for(bench: Bench) -> NewcomerState:
    """The state of a newcomer."""
    return bench.peer._newcomer.state


def test_a_newcomer_takes_every_transition(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = record(monkeypatch, NEWCOMER_LIFE)
    told = Bench(me=0, asks_time=True, peers=9, fanout=4)
    assert waits_for(told) is NewcomerState.ASKING
    told.peer.on_message(1, LogicalTime(40))
    told.peer.on_message(2, LogicalTime(30))
    assert waits_for(told) is NewcomerState.FILLING
    assert told.submit("mine")
    assert waits_for(told) is NewcomerState.READY
    told.peer.on_message(3, LogicalTime(50))
    assert waits_for(told) is NewcomerState.READY, "a late answer changes nothing"
    unheard = Bench(me=0, asks_time=True, peers=9, fanout=4)
    while "ask" in unheard.env.timers:
        ask_again(unheard)
    assert waits_for(unheard) is NewcomerState.READY
    alone = Newcomer(unheard.env, Uniform(unheard.env, 7, range(2)), 4, 12, ROUND, asks_time=False)
    for _ in range(5):
        assert not alone.ready()
        alone.ask()
    assert alone.ready(), "it goes on without the peers that it does not know"
    told.env.now += told.setting.ttl * ROUND + 1
    assert not told.submit("after a long silence")
    assert waits_for(told) is NewcomerState.ASKING
    assert taken == set(NEWCOMER_LIFE.table)
