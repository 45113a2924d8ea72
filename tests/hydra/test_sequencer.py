"""Hydra's Algorithm 1: what a sequencer stamps, its clock, its flushes, and its lives."""

import pytest

from ordercast.core import MILLISECOND, RemoteError
from ordercast.protocols.hydra.messages import (
    Announce,
    Echo,
    Flush,
    Groupcast,
    Join,
    Plans,
    Probe,
    Request,
    Solicit,
    Welcome,
)
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.sequencer import FOLLOWED_NS_MAX, HELD_NS_MAX, Sequencer
from tests.hydra.lab import CLIENT, LEADER, MEMBERS, QUIET, SERVICE, Bench, active, sequencer

START = 1000
EVERYONE = tuple(range(9))


def working(options: HydraOptions = QUIET, aggregators: tuple[int, ...] = ()) -> Bench[Sequencer]:
    """A sequencer with number 1."""
    lab = sequencer(options, aggregators=aggregators, now=START)
    lab.receive(LEADER, Welcome(START, 1, 0))
    lab.take_sent()
    return lab


def request(number: int, *groups: int, sequencer: int = 1) -> Request:
    return Request(sequencer, number, groups, b"payload")


def stamped(lab: Bench[Sequencer]) -> list[Groupcast]:
    """What was stamped since the last time, each once."""
    found: list[Groupcast] = []
    for _, message in lab.take_sent():
        if isinstance(message, Groupcast) and message not in found:
            found.append(message)
    return found


# Stamps


def test_a_multi_stamp_has_a_number_for_each_group_and_one_clock() -> None:
    lab = working()
    lab.receive(CLIENT, request(1, 0), request(2, 0, 2), request(3, 1, 2), request(4, 0, 1, 2))
    casts = stamped(lab)
    assert [(cast.groups, cast.numbers) for cast in casts] == [
        ((0,), (1,)),
        ((0, 2), (2, 1)),
        ((1, 2), (1, 2)),
        ((0, 1, 2), (3, 2, 3)),
    ]
    assert all(cast.sequencer == 1 and cast.sender == CLIENT and cast.payload == b"payload" for cast in casts)


def test_a_groupcast_goes_to_all_receivers_of_its_groups_and_to_nobody_else() -> None:
    lab = working()
    lab.receive(CLIENT, request(1, 0, 2))
    sent = lab.take_sent()
    assert [to for to, _ in sent] == [*MEMBERS[0], *MEMBERS[2]]
    assert len({id(message) for _, message in sent}) == 1, "the same to all"


def test_clocks_grow_strictly_even_where_time_stands_still() -> None:
    lab = working()
    lab.receive(CLIENT, *(request(number, 1) for number in range(1, 6)))
    clocks = [cast.clock for cast in stamped(lab)]
    assert clocks == sorted(set(clocks))
    lab.env.now = 10_000
    lab.receive(CLIENT, request(6, 1))
    assert stamped(lab)[0].clock == 10_000


def test_of_two_messages_to_a_group_the_one_with_the_higher_number_has_the_higher_clock() -> None:
    lab = working()
    for number in range(1, 30):
        lab.env.now += number % 3
        lab.receive(CLIENT, request(number, *((0,), (1,), (0, 1), (1, 2), (0, 1, 2))[number % 5]))
    casts = stamped(lab)
    for group in MEMBERS:
        places = [(c.numbers[c.groups.index(group)], c.clock) for c in casts if group in c.groups]
        assert [number for number, _ in places] == list(range(1, len(places) + 1))
        assert [clock for _, clock in places] == sorted({clock for _, clock in places})


def test_copies_of_a_request_are_stamped_once() -> None:
    lab = working()
    lab.receive(CLIENT, request(7, 1), request(7, 1), request(9, 1), request(8, 1), request(7, 1))
    assert [cast.numbers for cast in stamped(lab)] == [(1,), (2,), (3,)]
    lab.receive(CLIENT + 1, request(7, 1))
    assert [cast.numbers for cast in stamped(lab)] == [(4,)], "another sender's numbers are its own"


def test_requests_for_another_life_are_not_stamped() -> None:
    lab = working()
    lab.receive(CLIENT, request(1, 1, sequencer=2), request(2, 1, sequencer=0))
    assert lab.take_sent() == []


@pytest.mark.parametrize("groups", [(0, 0), (2, 1), (7,), (0, 7)])
def test_groups_that_no_sender_names_are_refused(groups: tuple[int, ...]) -> None:
    lab = working()
    with pytest.raises(RemoteError):
        lab.receive(CLIENT, request(1, *groups))
    assert lab.take_sent() == []
    lab.receive(CLIENT, request(1, 0))
    assert [cast.numbers for cast in stamped(lab)] == [(1,)], "nothing was counted"


# Flushes (section 4.3.3)


def test_a_flush_says_the_clock_and_all_last_numbers_and_increments_nothing() -> None:
    lab = working()
    lab.receive(CLIENT, request(1, 0, 2), request(2, 2))
    last = stamped(lab)[-1].clock
    lab.receive(0, Solicit(1, 5), Solicit(1, 5))
    flushes = [message for to, message in lab.take_sent() if to == 0]
    assert all(isinstance(flush, Flush) for flush in flushes)
    assert [flush.numbers for flush in flushes if isinstance(flush, Flush)] == [(1, 0, 2), (1, 0, 2)]
    first, second = (flush.clock for flush in flushes if isinstance(flush, Flush))
    assert last < first < second
    lab.receive(CLIENT, request(3, 0))
    cast = stamped(lab)[0]
    assert cast.numbers == (2,)
    assert cast.clock > second, "what is stamped after a flush is later than it"


def test_a_heartbeat_flush_goes_to_everyone() -> None:
    lab = working()
    lab.pass_time(QUIET.heartbeat_ns)
    heartbeats = [to for to, message in lab.take_sent() if isinstance(message, Flush)]
    assert set(heartbeats) == set(EVERYONE)


def test_a_solicitation_is_held_until_the_clock_has_passed() -> None:
    lab = working(HydraOptions())
    lab.receive(4, Solicit(1, START + 90_000))
    lab.receive(5, Solicit(1, START + 30_000))
    assert lab.take_sent() == []
    lab.pass_time(30_000)
    assert lab.take_sent() == []
    lab.pass_time(1)
    ((to, flush),) = lab.take_sent()
    assert to == 5 and isinstance(flush, Flush) and flush.clock > START + 30_000
    lab.pass_time(60_000)
    ((to, flush),) = lab.take_sent()
    assert to == 4 and isinstance(flush, Flush) and flush.clock > START + 90_000
    lab.pass_time(100_000)
    assert lab.take_sent() == []


def test_a_clock_that_is_far_behind_is_put_forward_when_a_receiver_waits_for_it() -> None:
    lab = working(HydraOptions())
    asked = START + 2 * HELD_NS_MAX
    lab.receive(4, Solicit(1, asked))
    assert lab.take_sent() == [(4, Flush(1, asked + 1, (0, 0, 0)))], "nobody waits for two seconds"
    lab.receive(CLIENT, request(1, 0))
    assert {m.clock for _, m in lab.take_sent() if isinstance(m, Groupcast)} == {asked + 2}
    assert lab.process.explain().waits == () and "held" not in lab.env.timers


def test_a_clock_that_nobody_can_have_is_neither_followed_nor_waited_for() -> None:
    lab = working(HydraOptions())
    lab.receive(4, Solicit(1, START + FOLLOWED_NS_MAX + 1))
    assert lab.take_sent() == []
    assert lab.process.explain().waits == () and "held" not in lab.env.timers


def test_solicitations_of_another_life_are_not_answered() -> None:
    lab = working()
    lab.receive(4, Solicit(2, 0), Solicit(0, 0))
    assert lab.take_sent() == []


def test_a_probe_is_echoed() -> None:
    lab = working()
    lab.receive(CLIENT, Probe(77))
    assert lab.take_sent() == [(CLIENT, Echo(77))]


# Lives (section 4.4)


def test_without_a_number_it_stamps_nothing_and_asks_for_one() -> None:
    lab = sequencer(now=START)
    assert lab.started == [(node, Join(START)) for node in SERVICE]
    lab.receive(CLIENT, request(1, 1), request(2, 1, sequencer=0))
    lab.receive(0, Solicit(1, 0), Solicit(0, 0))
    assert lab.take_sent() == []
    lab.pass_time(QUIET.join_ns)
    assert lab.take_sent() == [(node, Join(START)) for node in SERVICE]


def test_a_welcome_for_another_life_is_ignored() -> None:
    lab = sequencer(now=START)
    lab.receive(LEADER, Welcome(START - 1, 9, 0))
    assert lab.process.number == 0
    lab.receive(LEADER, Welcome(START, 3, 0), Welcome(START, 4, 0))
    assert lab.process.number == 3, "the first number stays"


def next_life(lab: Bench[Sequencer]) -> int:
    """The life for which a sequencer without a number asks for one, after as long as it waits."""
    lab.take_sent()
    lab.pass_time(lab.env.timers["join"] - lab.env.now)
    (life,) = {message.life for _, message in lab.take_sent() if isinstance(message, Join)}
    return life


def test_a_removed_sequencer_asks_for_a_new_number_and_counts_from_the_beginning() -> None:
    lab = working()
    lab.receive(CLIENT, request(1, 1), request(2, 1))
    lab.pass_time(50)
    before = stamped(lab)[-1].clock
    lab.receive(LEADER, Announce(1, active(2), None, None))
    lab.receive(CLIENT, request(3, 1))
    assert lab.take_sent() == [], "nothing is stamped"
    lab.receive(LEADER, Welcome(START, 1, 0))
    assert lab.process.number == 0, "the old number is not taken again"
    life = next_life(lab)
    assert life > START
    lab.receive(LEADER, Welcome(START, 1, 0), Welcome(life, 3, 2))
    assert lab.process.number == 3
    lab.take_sent()
    lab.receive(CLIENT, request(4, 1), request(5, 1, sequencer=3))
    (cast,) = stamped(lab)
    assert (cast.sequencer, cast.numbers) == (3, (1,))
    assert cast.clock > before


def test_it_waits_longer_with_every_removal() -> None:
    lab = working()
    waits = []
    for number in range(1, 5):
        lab.pass_time(MILLISECOND)
        lab.receive(LEADER, Announce(number, active(2), None, None))
        waits.append(lab.env.timers["join"] - lab.env.now)
        lab.receive(LEADER, Welcome(next_life(lab), 10 + number, 0))
        assert lab.process.number == 10 + number
    assert waits == [QUIET.join_ns << power for power in range(4)]


def test_news_from_before_it_joined_does_not_retire_it() -> None:
    lab = sequencer(now=START)
    lab.receive(LEADER, Welcome(START, 3, 5))
    lab.receive(LEADER, Announce(4, active(1, 2), None, None))
    assert lab.process.number == 3
    lab.receive(LEADER, Announce(5, active(1, 2), Plans("added", 3, 21), None))
    assert lab.process.number == 3, "it is being added"
    lab.receive(LEADER, Announce(5, active(1, 2), None, None))
    assert lab.process.number == 0, "it was given up"


def test_it_explains_what_waits() -> None:
    lab = sequencer(now=START)
    assert lab.waits() == [("all stamping", "a number from the configuration service", START)]
    lab.receive(LEADER, Welcome(START, 1, 0))
    lab.receive(4, Solicit(1, START + 500))
    ((subject, blocker, _),) = lab.waits()
    assert subject == "flush for node 4"
    assert blocker.endswith(f"must pass {START + 500}")
    assert lab.process.explain().state["sequencer"] == 1


def test_a_restart_never_asks_for_the_life_of_the_process_before() -> None:
    lab = sequencer(now=1000)
    lab.receive(LEADER, Welcome(1000, 1, 0))
    lab.env.now = 5000
    lab.receive(LEADER, Announce(1, active(2), None, None))
    lab.take_sent()
    lab.process.on_timer("join")  # the clock was set back, and stands still
    asked = [message.life for _, message in lab.take_sent() if isinstance(message, Join)]
    again = sequencer(now=5000)
    (life,) = {message.life for _, message in again.started if isinstance(message, Join)}
    assert asked
    assert all(earlier < life for earlier in asked)


def test_news_of_a_leader_makes_a_sequencer_without_a_number_ask_again_at_once() -> None:
    lab = sequencer(now=1000)
    lab.receive(LEADER, Announce(0, (), None, None))
    assert lab.take_sent() == [(node, Join(1000)) for node in SERVICE]
