"""Flow control of one link: the window, the queue behind it, peers that are away, and pressure."""

import pytest

from ordercast.core import MILLISECOND
from ordercast.net.links.link import AWAY_NS, PACKET_COST, PRESSURE_MAX, PRESSURE_NS, QUEUE_BYTES_MAX, Link
from ordercast.net.metrics.metrics import Metrics

SIZE = 1_000
COST = SIZE + PACKET_COST
WINDOW = 8 * COST


def link() -> Link:
    return Link(1, WINDOW, Metrics())


def admit(made: Link, first: int, count: int, now: int = 0) -> list[bool]:
    """Which of so many datagrams may go at once."""
    return [made.admit(counter, b"%04d" % counter * 250, now) for counter in range(first, first + count)]


def ready(made: Link) -> list[int]:
    """The counters of what may go now."""
    found = []
    while (datagram := made.next_ready()) is not None:
        found.append(int(datagram[:4]))
    return found


def test_a_window_goes_at_once_and_the_rest_waits_in_order() -> None:
    made = link()
    assert admit(made, 1, 12) == [True] * 8 + [False] * 4
    assert ready(made) == []
    made.acknowledge(3, 0, 1)
    assert ready(made) == [9, 10, 11]
    made.acknowledge(8, 0, 2)
    assert ready(made) == [12]
    made.acknowledge(12, 0, 3)
    assert (made.under_way, made.queued, len(made.queue)) == (0, 0, 0)


def test_nothing_overtakes_what_waits() -> None:
    made = link()
    admit(made, 1, 9)
    made.acknowledge(8, 0, 1)
    assert admit(made, 10, 1) == [False], "the ninth has not gone yet"
    assert ready(made) == [9, 10]


def test_a_datagram_larger_than_the_window_goes_alone() -> None:
    made = link()
    assert made.admit(1, b"x" * 2 * WINDOW, 0)
    assert not made.admit(2, b"0002", 0)
    made.acknowledge(1, 0, 1)
    assert ready(made) == [2]
    assert not made.admit(3, b"0003" * WINDOW, 0)
    assert ready(made) == []
    made.acknowledge(2, 0, 2)
    assert ready(made) == [3]


def test_an_acknowledgement_counts_for_all_before_it_and_old_ones_change_nothing() -> None:
    made = link()
    admit(made, 1, 8)
    made.acknowledge(6, 0, 1)
    assert made.under_way == 2 * COST
    made.acknowledge(4, 0, 2)
    made.acknowledge(6, 0, 2)
    assert made.under_way == 2 * COST
    made.acknowledge(1_000, 0, 3)
    assert made.under_way == 0


def test_acknowledgements_are_asked_for_each_quarter_of_the_window() -> None:
    made = link()
    asked = [made.wants_ack(SIZE) for _ in range(12)]
    assert asked == [False, True] * 6


def test_beyond_its_limit_the_queue_takes_nothing_and_that_is_counted() -> None:
    metrics = Metrics()
    made = Link(1, WINDOW, metrics)
    large = 1 << 20
    for counter in range(40):
        made.admit(counter, b"x" * large, 0)
    assert made.queued <= QUEUE_BYTES_MAX
    assert metrics.overflow == 40 - 1 - len(made.queue)
    assert metrics.overflow > 0


def test_a_peer_that_answers_nothing_counts_as_away_and_what_waits_for_it_is_dropped_and_counted() -> None:
    metrics = Metrics()
    made = Link(1, WINDOW, metrics)
    admit(made, 1, 12, now=100)
    told = []
    for now in (100 + AWAY_NS - 1, 100 + AWAY_NS):
        told.append((made.look_after(now), made.away))
    assert told == [(True, False), (True, True)]
    assert metrics.dropped_away == 4
    assert (made.under_way, made.queued) == (0, 0)
    assert not made.look_after(100 + AWAY_NS + 1), "nobody waits for it"


def test_a_peer_that_is_away_gets_a_window_now_and_then_and_what_is_beyond_is_dropped() -> None:
    metrics = Metrics()
    made = Link(1, WINDOW, metrics)
    admit(made, 1, 9, now=0)
    made.look_after(AWAY_NS)
    assert admit(made, 20, 10, now=AWAY_NS) == [True] * 8 + [False] * 2
    assert metrics.dropped_away == 1 + 2
    assert len(made.queue) == 0
    made.look_after(2 * AWAY_NS)
    assert admit(made, 40, 8, now=2 * AWAY_NS) == [True] * 8, "another"


def test_an_answer_ends_being_away() -> None:
    made = link()
    admit(made, 1, 9)
    made.look_after(AWAY_NS)
    admit(made, 20, 3, now=AWAY_NS)
    made.acknowledge(20, 0, AWAY_NS + 1)
    assert not made.away
    assert made.under_way == 2 * COST


def test_progress_gives_a_slow_peer_time() -> None:
    made = link()
    admit(made, 1, 20, now=0)
    now = 0
    for counter in range(1, 6):
        now += AWAY_NS - MILLISECOND
        made.acknowledge(counter, 0, now)
        assert ready(made)
        made.look_after(now + MILLISECOND)
        assert not made.away


def test_an_answer_without_progress_does_not() -> None:
    made = link()
    admit(made, 5, 20, now=0)
    made.acknowledge(4, 0, AWAY_NS - 1)
    made.look_after(AWAY_NS)
    assert made.away


def test_a_link_on_which_nothing_waits_is_left_alone() -> None:
    made = link()
    assert not made.look_after(0)
    admit(made, 1, 3)
    assert not made.look_after(100 * AWAY_NS)
    assert not made.away


@pytest.mark.parametrize(
    ("said", "counts"), [(0, 0), (1, 1), (PRESSURE_MAX, PRESSURE_MAX), (200, PRESSURE_MAX)]
)
def test_a_word_about_pressure_counts_for_a_while(said: int, counts: int) -> None:
    made = link()
    made.acknowledge(0, said, 1_000)
    assert made.pressure(1_000 + PRESSURE_NS - 1) == counts
    assert made.pressure(1_000 + PRESSURE_NS) == 0
    made.acknowledge(0, said, 5_000)
    made.acknowledge(0, 0, 5_001)
    assert made.pressure(5_002) == 0, "the last word counts"


def test_for_a_new_life_of_the_peer_the_window_is_empty_and_what_waited_is_dropped_and_counted() -> None:
    metrics = Metrics()
    made = Link(1, WINDOW, metrics)
    admit(made, 1, 12)
    made.forget()
    assert metrics.dropped_away == 4
    assert admit(made, 13, 8) == [True] * 8
    assert not made.look_after(10 * AWAY_NS)
