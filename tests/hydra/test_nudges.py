"""The flush policy *nudged*: sequencers tell each other that they have stamped, and flush unasked."""

import itertools

import pytest

from ordercast.core import MICROSECOND, MILLISECOND, NodeId, RemoteError
from ordercast.protocols.hydra.messages import (
    Announce,
    Flush,
    Groupcast,
    Nudge,
    Nudged,
    Plans,
    Request,
    Solicit,
    Welcome,
)
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.sequencer import HELD_NS_MAX, Sequencer
from ordercast.trace import Kind
from tests.hydra.cluster import Cluster
from tests.hydra.lab import CLIENT, LEADER, MEMBERS, Bench, active, receiver, sequencer

START = 10 * MILLISECOND
NUDGE_NS = 100 * MICROSECOND
FLUSH_NS = 5 * MILLISECOND
LEAD_NS = 5 * MILLISECOND
NUDGED = HydraOptions(flush="nudged", flush_ns=FLUSH_NS, nudge_ns=NUDGE_NS, lead_ns=0)
LEADING = HydraOptions(flush="nudged", flush_ns=FLUSH_NS, nudge_ns=NUDGE_NS, lead_ns=LEAD_NS)
"""With a promise of an idle sequencer to stamp nothing for a while."""
QUIET = HydraOptions(
    flush="nudged",
    flush_ns=FLUSH_NS,
    nudge_ns=NUDGE_NS,
    retry_ns=MILLISECOND,
    heartbeat_ns=400 * MILLISECOND,
    suspect_ns=2000 * MILLISECOND,
)
"""Heartbeats are too rare to stand in for the answer to a nudge."""
OTHER: NodeId = 22


def working(*sequencers: int, options: HydraOptions = NUDGED) -> Bench[Sequencer]:
    """A sequencer with number 1, on node 21, that knows of these."""
    lab = sequencer(options, now=START)
    lab.receive(LEADER, Welcome(START, 1, 0), Announce(0, active(*(sequencers or (1, 2))), None, None))
    lab.take_sent()
    return lab


def request(number: int, *groups: int, sequencer: int = 1) -> Request:
    return Request(sequencer, number, groups, b"payload")


def nudges(lab: Bench[Sequencer]) -> list[tuple[NodeId, Nudge]]:
    """Whom it nudged since the last time this was asked, and how."""
    return [(to, message) for to, message in lab.take_sent() if isinstance(message, Nudge)]


def flushes(lab: Bench[Sequencer]) -> list[tuple[NodeId, Flush]]:
    """To whom it flushed since the last time this was asked, and what."""
    return [(to, message) for to, message in lab.take_sent() if isinstance(message, Flush)]


# Who nudges, and how often


def test_a_stamp_is_told_to_the_other_sequencers_at_once() -> None:
    lab = working(1, 2, 3)
    lab.receive(CLIENT, request(1, 0, 2))
    sent = lab.take_sent()
    (cast,) = {message for _, message in sent if isinstance(message, Groupcast)}
    told = [(to, message) for to, message in sent if isinstance(message, Nudge)]
    assert told == [(22, Nudge(cast.clock, (0, 2))), (23, Nudge(cast.clock, (0, 2)))]


def test_nudges_keep_their_distance_and_the_last_one_tells_of_the_last_stamp() -> None:
    lab = working()
    told: list[tuple[int, Nudge]] = []
    last = 0
    for number in range(1, 80):
        if number < 36:
            lab.receive(CLIENT, request(number, number % 3))
        sent = lab.take_sent()
        last = max([last, *(message.clock for _, message in sent if isinstance(message, Groupcast))])
        told += [(lab.env.now, message) for _, message in sent if isinstance(message, Nudge)]
        lab.pass_time(10 * MICROSECOND)
    assert [later - sooner for (sooner, _), (later, _) in itertools.pairwise(told)] == [NUDGE_NS] * 4
    assert told[-1][1].clock == last
    assert told[0][1].groups == (1,), "the first told of one message"
    assert {message.groups for _, message in told[1:]} == {(0, 1, 2)}, "the others of all since"


def test_only_groups_that_were_stamped_since_the_last_nudge_are_named() -> None:
    lab = working()
    lab.receive(CLIENT, request(1, 0))
    lab.receive(CLIENT, request(2, 2), request(3, 1, 2))
    assert [message.groups for _, message in nudges(lab)] == [(0,)]
    lab.pass_time(NUDGE_NS)
    assert [message.groups for _, message in nudges(lab)] == [(1, 2)]


def test_a_sequencer_that_is_alone_nudges_nobody() -> None:
    lab = working(1)
    lab.receive(CLIENT, request(1, 0), request(2, 1))
    lab.pass_time(NUDGE_NS)
    assert nudges(lab) == []


def test_other_policies_do_not_nudge() -> None:
    lab = sequencer(HydraOptions(flush="solicited"), now=START)
    lab.receive(LEADER, Welcome(START, 1, 0), Announce(0, active(1, 2), None, None))
    lab.receive(CLIENT, request(1, 0))
    assert nudges(lab) == []


def test_a_sequencer_that_was_removed_does_not_nudge() -> None:
    lab = working()
    lab.receive(CLIENT, request(1, 0), request(2, 1))
    assert len(nudges(lab)) == 1, "and one is due for the second message"
    lab.receive(LEADER, Announce(1, active(2), None, None))
    lab.pass_time(2 * NUDGE_NS)
    lab.receive(CLIENT, request(3, 1))
    assert nudges(lab) == []


def test_in_a_new_life_it_nudges_again() -> None:
    lab = working()
    lab.receive(CLIENT, request(1, 0), request(2, 1))
    lab.receive(LEADER, Announce(1, active(2), None, None))
    lab.process._nudged_at = lab.env.now + NUDGED.join_ns  # as if nudges were rarer than lives
    lab.pass_time(NUDGED.join_ns)
    lab.receive(LEADER, Welcome(lab.process._life, 3, 1), Announce(2, ((2, OTHER), (3, 21)), None, None))
    lab.take_sent()
    lab.receive(CLIENT, request(3, 2, sequencer=3))
    assert nudges(lab) == []
    lab.pass_time(NUDGE_NS)
    assert nudges(lab) == [(OTHER, Nudge(lab.process._clock, (2,)))], "of nothing from the life before"


# What a nudged sequencer does


def test_a_nudged_sequencer_flushes_above_the_clock_to_the_receivers_of_the_groups() -> None:
    lab = working()
    lab.pass_time(MILLISECOND)
    lab.receive(OTHER, Nudge(START + 500, (0, 2)))
    sent = flushes(lab)
    assert [to for to, _ in sent] == [*MEMBERS[0], *MEMBERS[2]]
    assert all(flush.clock > START + 500 and flush.sequencer == 1 for _, flush in sent)
    assert len({flush for _, flush in sent}) == 1


def test_a_sequencer_that_has_just_stamped_above_the_clock_does_not_flush() -> None:
    lab = working()
    lab.receive(CLIENT, request(1, 0))
    lab.take_sent()
    lab.receive(OTHER, Nudge(START - 1, (0,)))
    assert flushes(lab) == [], "its message told the same receivers a higher clock"
    lab.receive(OTHER, Nudge(START - 1, (0, 1)))
    assert [to for to, _ in flushes(lab)] == list(MEMBERS[1]), "but not those of another group"


def test_a_flush_for_one_nudge_does_for_the_next_below_it() -> None:
    lab = working()
    lab.receive(OTHER, Nudge(START, (0,)))
    ((_, flush), *_) = flushes(lab)
    lab.receive(23, Nudge(flush.clock - 1, (0,)))
    assert flushes(lab) == []
    lab.receive(23, Nudge(flush.clock, (0,)))
    assert len(flushes(lab)) == len(MEMBERS[0])


def test_a_clock_that_is_behind_is_put_forward_and_stays_ahead() -> None:
    lab = working()
    ahead = START + HELD_NS_MAX
    lab.receive(OTHER, Nudge(ahead, (1,)))
    assert {flush.clock for _, flush in flushes(lab)} == {ahead + 1}
    lab.receive(CLIENT, request(1, 1))
    assert {m.clock for _, m in lab.take_sent() if isinstance(m, Groupcast)} == {ahead + 2}


def test_a_clock_that_is_far_wrong_does_not_spread() -> None:
    lab = working()
    lab.receive(OTHER, Nudge(START + HELD_NS_MAX + 1, (1,)))
    assert flushes(lab) == []
    lab.receive(OTHER, Nudge(START, (1,)))
    assert {flush.clock for _, flush in flushes(lab)} == {START + 1}, "the own clock is as it was"


def test_once_a_receiver_has_asked_nudges_of_a_clock_that_is_far_wrong_are_followed() -> None:
    lab = working()
    asked = START + 10 * HELD_NS_MAX
    lab.receive(MEMBERS[1][0], Solicit(1, asked))
    assert [to for to, _ in flushes(lab)] == [MEMBERS[1][0]]
    lab.receive(OTHER, Nudge(asked + HELD_NS_MAX, (1,)))
    assert {flush.clock for _, flush in flushes(lab)} == {asked + HELD_NS_MAX + 1}


def test_without_a_number_it_does_not_answer() -> None:
    lab = sequencer(NUDGED, now=START)
    lab.receive(OTHER, Nudge(START, (0,)))
    assert flushes(lab) == []
    lab.receive(LEADER, Welcome(START, 1, 0))
    lab.receive(LEADER, Announce(1, active(2), None, None))
    lab.take_sent()
    lab.receive(OTHER, Nudge(START, (0,)))
    assert flushes(lab) == [], "nor when it was removed"


def test_one_that_is_about_to_be_removed_still_answers() -> None:
    lab = working()
    lab.receive(LEADER, Announce(0, active(1, 2), Plans("removed", 1, 21), None))
    lab.take_sent()
    lab.receive(OTHER, Nudge(START, (0,)))
    assert len(flushes(lab)) == len(MEMBERS[0]), "receivers that have not heard of it can go on"


def test_groups_that_no_sequencer_names_are_refused() -> None:
    lab = working()
    for clock, groups in enumerate(((0, 9), (2, 0), (0, 0)), START + MILLISECOND):
        with pytest.raises(RemoteError):
            lab.receive(OTHER, Nudge(clock, groups))
    assert flushes(lab) == []


# What sequencers know of each other, and the promise of one that is idle


def test_a_nudge_is_answered_with_the_clock_that_the_receivers_are_told() -> None:
    lab = working()
    lab.receive(OTHER, Nudge(START, (0, 1)))
    sent = lab.take_sent()
    (clock,) = {message.clock for _, message in sent if isinstance(message, Flush)}
    assert sent[-1] == (OTHER, Nudged(clock, (0, 1)))
    lab.receive(OTHER, Nudge(START, (0,)))
    assert lab.take_sent() == [(OTHER, Nudged(clock, (0,)))], "even where there is nothing to flush"


def test_one_that_is_known_to_be_ahead_is_not_nudged() -> None:
    lab = working(1, 2, 3)
    lab.receive(OTHER, Nudged(START + MILLISECOND, (0, 1)))
    lab.receive(CLIENT, request(1, 0))
    assert [to for to, _ in nudges(lab)] == [23]
    lab.pass_time(NUDGE_NS)
    lab.receive(CLIENT, request(2, 0, 2))
    assert [to for to, _ in nudges(lab)] == [22, 23], "for the third group it is not known"
    lab.pass_time(MILLISECOND)
    lab.receive(CLIENT, request(3, 0))
    assert [to for to, _ in nudges(lab)] == [22, 23], "nor after its time has come"


def test_a_nudge_says_as_much_as_an_answer() -> None:
    lab = working()
    lab.receive(OTHER, Nudge(START + MILLISECOND, (1,)))
    lab.take_sent()
    lab.process._clock = 0
    lab.receive(CLIENT, request(1, 1))
    assert nudges(lab) == [], "who stamps later than this needs no nudge"


def test_what_is_known_of_a_sequencer_is_forgotten_when_it_is_gone() -> None:
    lab = working(1, 2)
    lab.receive(OTHER, Nudged(START + MILLISECOND, (0,)))
    lab.receive(LEADER, Announce(1, active(1, 3), None, None), Announce(2, active(1, 2, 3), None, None))
    lab.receive(CLIENT, request(1, 0))
    assert [to for to, _ in nudges(lab)] == [22, 23]


def test_words_of_a_node_that_is_no_sequencer_are_not_kept() -> None:
    lab = working()
    lab.receive(23, Nudged(START + MILLISECOND, (0,)))
    lab.receive(LEADER, Announce(0, active(1, 2, 3), None, None))
    lab.receive(CLIENT, request(1, 0))
    assert [to for to, _ in nudges(lab)] == [22, 23]


def test_an_idle_sequencer_promises_to_stamp_nothing_for_a_while() -> None:
    lab = working(options=LEADING)
    lab.receive(OTHER, Nudge(START, (0,)))
    promised = START + LEAD_NS + 1  # a tick later than its clock
    assert {flush.clock for _, flush in flushes(lab)} == {promised}
    lab.pass_time(MILLISECOND)
    lab.receive(CLIENT, request(1, 0))
    (clock,) = {m.clock for _, m in lab.take_sent() if isinstance(m, Groupcast)}
    assert clock > promised, "and keeps its word without waiting"


def test_a_busy_one_promises_nothing() -> None:
    lab = working(options=LEADING)
    lab.pass_time(LEAD_NS)
    lab.receive(CLIENT, request(1, 0))
    lab.pass_time(LEAD_NS - 1)
    lab.take_sent()
    lab.receive(OTHER, Nudge(lab.env.now, (0,)))
    assert {flush.clock for _, flush in flushes(lab)} == {lab.env.now + 1}


@pytest.mark.parametrize("gap_ms", [0.2, 1.0, 1.7, 2.6, 5.1])
def test_promises_do_not_drive_clocks_away_from_the_time(gap_ms: float) -> None:
    options = HydraOptions(flush="nudged", sequencers=8, flush_ns=FLUSH_NS, lead_ns=LEAD_NS)
    lab = Cluster(options)
    for _ in range(150):
        lab.submit((0,))
        lab.run_ms(gap_ms)
        for node in lab.sequencers:
            process = lab.world.envs[node].process
            assert isinstance(process, Sequencer)
            assert process._clock - lab.world.now <= LEAD_NS + 1_000
    assert lab.violations() == []


# What receivers do


def solicits(lab: Cluster) -> list[tuple[NodeId, NodeId]]:
    """Who was asked for flushes, and by whom."""
    return [(to, source) for source, to, message in lab.arrivals if isinstance(message, Solicit)]


def delays(lab: Cluster) -> list[int]:
    """How long each message took to each receiver."""
    sent = {event.message: event.time_ns for event in lab.events(lab.sender, Kind.SUBMIT)}
    return [
        event.time_ns - sent[event.message]
        for node in lab.receivers
        for event in lab.events(node, Kind.DELIVER)
    ]


@pytest.mark.parametrize("groups", [(0,), (0, 1), (0, 1, 2)])
def test_a_lone_message_is_delivered_without_any_question(groups: tuple[int, ...]) -> None:
    lab = Cluster(QUIET, groups=3)
    lab.arrivals.clear()
    lab.submit(groups)
    lab.run_ms(20)
    assert len(delays(lab)) == 3 * len(groups)
    assert max(delays(lab)) < FLUSH_NS
    assert solicits(lab) == []
    lab.run_ms(50)
    assert solicits(lab) == [], "nor later"


def test_under_load_nobody_asks_and_nobody_waits() -> None:
    lab = Cluster(QUIET, groups=2)
    lab.arrivals.clear()
    lab.submit((0, 1), 200)
    lab.run_ms(20)
    assert len(delays(lab)) == 6 * 200
    assert max(delays(lab)) < FLUSH_NS
    assert solicits(lab) == []
    assert lab.violations() == []


def test_where_nudges_are_lost_receivers_ask_after_the_delay() -> None:
    lab = Cluster(QUIET, groups=2)
    lab.drop = lambda source, to, message: isinstance(message, Nudge)
    lab.arrivals.clear()
    lab.submit((0, 1))
    lab.run_ms(30)
    assert len(delays(lab)) == 6
    assert min(delays(lab)) >= FLUSH_NS and max(delays(lab)) < 2 * FLUSH_NS
    assert sorted(source for _, source in solicits(lab)) == sorted(lab.receivers), "each asked once"
    assert lab.violations() == []


def test_where_the_answer_to_a_nudge_is_lost_only_that_receiver_asks() -> None:
    lab = Cluster(QUIET, groups=2)
    unlucky = lab.receivers[0]
    lost: list[NodeId] = []

    def drop(source: NodeId, to: NodeId, message: object) -> bool:
        if to == unlucky and isinstance(message, Flush) and not lost:
            lost.append(to)
            return True
        return False

    lab.drop = drop
    lab.arrivals.clear()
    lab.submit((0, 1))
    lab.run_ms(30)
    assert lost == [unlucky]
    assert len(delays(lab)) == 6
    assert {source for _, source in solicits(lab)} == {unlucky}


def test_what_began_to_wait_later_is_not_asked_for_early() -> None:
    lab = receiver(NUDGED)
    lab.hears("<G,1,{(1,1)},10>")
    lab.pass_time(FLUSH_NS - 1)
    assert lab.gives("<F,2,{(1,0)},11>") == ["<G,1,{(1,1)},10>"]
    lab.hears("<G,1,{(1,2)},20>")
    lab.take_sent()
    lab.pass_time(1)
    assert [message for _, message in lab.take_sent() if isinstance(message, Solicit)] == []
    lab.pass_time(FLUSH_NS)
    asked = [(to, message) for to, message in lab.take_sent() if isinstance(message, Solicit)]
    assert asked[:1] == [(22, Solicit(2, 20))]
