"""Ordering information: a log of entries behaves like a plain list of what was done at each place."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import RemoteError
from ordercast.replication.llft import orders
from ordercast.replication.llft.held import Held, Holdings
from ordercast.replication.llft.limits import check_part
from ordercast.replication.llft.names import Link, ViewId
from ordercast.replication.llft.orders import (
    ROUND_MAX,
    AnyEntry,
    CloseOrder,
    MessageOrder,
    OrderLog,
    RoundOrder,
    Slice,
    ViewOrder,
    cut,
)

ONE, OTHER = Link(4, 0, 1), Link(5, 0, 1)
VIEW = ViewId(0, 0)


def run(first: int, count: int, link: Link | int = ONE) -> MessageOrder:
    return MessageOrder(link, first, count)


def log_of(*entries: AnyEntry, after: int = 0) -> OrderLog:
    log = OrderLog(after)
    for entry in entries:
        log.append(entry)
    return log


def slice_of(after: int, *entries: AnyEntry, view: ViewId = VIEW, safe: int = 0, settled: int = 0) -> Slice:
    return Slice(view, 0, after, entries, safe, settled)


def singles(entry: AnyEntry) -> list[AnyEntry]:
    """What was done at each place."""
    match entry:
        case MessageOrder():
            return [run(entry.first + turn, 1, entry.link) for turn in range(entry.count)]
        case RoundOrder():
            return [RoundOrder((link,)) for link in entry.links]
    return [entry]


def done_by(entries: Iterable[AnyEntry]) -> list[AnyEntry]:
    """What was done at each place. A single message of a connection in use has two forms."""
    found = [one for entry in entries for one in singles(entry)]
    return [
        RoundOrder((one.link,)) if isinstance(one, MessageOrder) and isinstance(one.link, int) else one
        for one in found
    ]


def test_consecutive_messages_of_a_connection_share_an_entry() -> None:
    """Section III.A.3: entries for consecutive messages of one connection are merged."""
    log = log_of(run(1, 1), run(2, 3), run(1, 1, OTHER), run(5, 1))
    assert log.part(0) == (run(1, 4), run(1, 1, OTHER), run(5, 1))
    assert (log.after, log.end) == (0, 6)


def test_single_messages_of_different_connections_share_an_entry() -> None:
    log = log_of(run(1, 1), run(2, 1, 4), run(7, 1, 5), run(9, 1, ~1), run(3, 1, 4))
    assert log.part(0) == (run(1, 1), RoundOrder((4, 5, ~1, 4)))
    assert log.at(3) == RoundOrder((5,))
    assert log.part(2) == (RoundOrder((5, ~1, 4)),)


def test_a_run_of_one_connection_ends_a_round() -> None:
    log = log_of(run(1, 1, 4), run(1, 1, 5), run(2, 1, 5), run(3, 1, 5), run(2, 1, 4))
    assert log.part(0) == (RoundOrder((4, 5)), run(2, 2, 5), run(2, 1, 4))


def test_a_round_has_a_limit() -> None:
    log = log_of(*(run(1, 1, turn % 2) for turn in range(ROUND_MAX + 1)))
    assert [entry.places for entry in log.part(0)] == [ROUND_MAX, 1]


def test_a_round_is_cut_where_a_log_ends() -> None:
    log = log_of(RoundOrder((4, 5, 6)))
    log.truncate(2)
    assert log.part(0) == (RoundOrder((4, 5)),)
    assert log.extend(slice_of(1, RoundOrder((5, 6, 4))))
    assert log.part(0) == (RoundOrder((4, 5, 6, 4)),)


def test_messages_with_a_gap_between_them_do_not_share_an_entry() -> None:
    assert log_of(run(1, 1), run(3, 1)).part(0) == (run(1, 1), run(3, 1))


def test_a_view_separates_messages() -> None:
    view = ViewOrder(ViewId(1, 1), (1, 2), ((ONE, 1),))
    log = log_of(run(1, 1), view, run(2, 1))
    assert log.part(0) == (run(1, 1), view, run(2, 1))
    assert log.at(2) == view and log.at(3) == run(2, 1)


def test_an_entry_stands_for_a_limited_number_of_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "RUN_MAX", 3)
    assert log_of(*(run(1 + turn, 1) for turn in range(7))).part(0) == (run(1, 3), run(4, 3), run(7, 1))


def test_appending_tells_the_first_place_of_an_entry() -> None:
    log = OrderLog(after=9)
    assert [log.append(run(1, 2)), log.append(CloseOrder(ONE)), log.append(run(1, 1, OTHER))] == [10, 12, 13]


def test_a_part_begins_in_the_middle_of_an_entry() -> None:
    log = log_of(run(1, 5), run(1, 1, OTHER))
    assert log.part(2) == (run(3, 3), run(1, 1, OTHER))
    assert log.part(2, limit=1) == (run(3, 3),)
    assert log.part(6) == log.part(99) == ()


def test_what_is_forgotten_cannot_be_asked_for() -> None:
    log = log_of(run(1, 5), run(1, 1, OTHER), run(6, 1))
    log.forget(5)
    assert log.after == 5
    assert log.part(5) == (run(1, 1, OTHER), run(6, 1))
    with pytest.raises(ValueError, match="places up to 5 are forgotten"):
        log.part(4)


def test_only_whole_entries_are_forgotten() -> None:
    log = log_of(run(1, 5), run(1, 1, OTHER))
    log.forget(3)
    assert (log.after, log.part(0)) == (0, (run(1, 5), run(1, 1, OTHER)))


def test_a_log_from_which_all_is_forgotten_goes_on() -> None:
    log = log_of(run(1, 5))
    log.forget(5)
    assert (log.after, log.end, log.part(5)) == (5, 5, ())
    assert log.append(run(6, 1)) == 6 and log.at(6) == run(6, 1)


def test_a_slice_extends_a_log_by_what_is_new() -> None:
    log = log_of(run(1, 2))
    assert log.extend(slice_of(0, run(1, 5), CloseOrder(ONE)))
    assert log.part(0) == (run(1, 5), CloseOrder(ONE))
    assert log.extend(slice_of(0, run(1, 3)))
    assert log.end == 6


def test_a_slice_that_does_not_join_on_is_not_taken() -> None:
    log = log_of(run(1, 2))
    assert not log.extend(slice_of(3, run(4, 1)))
    assert log.end == 2


def test_runs_counts_entries() -> None:
    log = log_of(run(1, 5), run(1, 1, OTHER), run(6, 2))
    assert [log.runs(after) for after in (0, 4, 5, 6, 7, 8)] == [3, 3, 2, 1, 1, 0]


@pytest.mark.parametrize(
    ("places", "kept"),
    [(0, ()), (2, (run(1, 2),)), (3, (run(1, 3),)), (4, (run(1, 3), CloseOrder(ONE)))],
)
def test_entries_are_cut_to_places(places: int, kept: tuple[AnyEntry, ...]) -> None:
    assert cut((run(1, 3), CloseOrder(ONE)), places) == kept


@pytest.mark.parametrize(
    "part",
    [
        Slice(VIEW, 0, 101, (), 0, 0),
        Slice(VIEW, 0, 99, (run(1, 2),), 0, 0),
        Slice(VIEW, 12, 5, (run(1, 5),), 0, 0),
        Slice(VIEW, 0, 5, (run(1, 5),), 11, 0),
    ],
    ids=["begins too far ahead", "ends too far ahead", "view begins after its end", "safe beyond its end"],
)
def test_a_slice_that_no_member_makes_is_refused(part: Slice) -> None:
    check_part(0, slice_of(5, run(1, 5), safe=10), 100, 0)
    with pytest.raises(RemoteError, match=r"too far ahead|at odds with itself"):
        check_part(0, part, 100, 0)


entries = st.one_of(
    st.builds(run, st.integers(1, 4), st.integers(1, 4), st.sampled_from([ONE, OTHER, 4, ~1])),
    st.builds(run, st.integers(1, 4), st.just(1), st.sampled_from([4, 5, ~1])),
    st.builds(RoundOrder, st.lists(st.sampled_from([4, 5, ~1]), min_size=1, max_size=4).map(tuple)),
    st.builds(CloseOrder, st.sampled_from([ONE, OTHER])),
)
actions = st.one_of(
    st.tuples(st.just("append"), entries),
    st.tuples(st.just("follow"), st.integers(1, 4)),
    st.tuples(st.just("truncate"), st.integers(0, 30)),
    st.tuples(st.just("forget"), st.integers(0, 30)),
    st.tuples(st.just("extend"), st.tuples(st.integers(0, 6), st.lists(entries, max_size=3))),
)


@given(st.lists(actions, max_size=25), st.integers(0, 30))
def test_a_log_is_a_list_of_what_was_done(steps: list[tuple[str, Any]], asked: int) -> None:
    log = OrderLog()
    done: list[AnyEntry] = []
    forgotten = 0
    for action, value in steps:
        match action:
            case "append":
                assert log.append(value) == len(done) + 1
                done += done_by((value,))
            case "follow":  # what a primary does most of the time
                last = done[-1] if done else None
                first = last.first + 1 if isinstance(last, MessageOrder) and last.link == ONE else 1
                log.append(run(first, value))
                done += done_by((run(first, value),))
            case "truncate":
                log.truncate(value)
                done = done[: max(value, log.after)]
            case "forget":
                log.forget(value)
                forgotten = max(forgotten, value)
            case "extend":
                back, more = value
                after = max(log.after, log.end - back)
                known = log.part(after)
                part = slice_of(after, *known, *more)
                assert log.extend(part)
                done += done_by(more)
        assert log.end == len(done)
        assert log.after <= forgotten
    after = max(log.after, min(asked, log.end))
    assert done_by(log.part(after)) == done[after:]
    assert done_by(log.at(place) for place in range(log.after + 1, log.end + 1)) == done[log.after :]
    assert log.runs(after) == len(log.part(after))


def test_a_holder_keeps_what_is_not_safe() -> None:
    """Section III.C: a remote group hands ordering information back until it is safe."""
    held = Holdings()
    held.note(0, slice_of(0, run(1, 2), run(1, 1, OTHER)))
    held.note(0, slice_of(2, run(1, 1, OTHER), run(3, 2), safe=2))
    assert held.slice(0) == slice_of(2, run(1, 1, OTHER), run(3, 2), safe=2)
    held.note(0, slice_of(5, safe=5, settled=5))
    assert held.slice(0) is None
    assert held.slice(1) is None


def test_a_holder_takes_a_later_view_in_place_of_an_earlier_one() -> None:
    held = Holdings()
    held.note(0, slice_of(0, run(1, 2)))
    later = slice_of(1, run(1, 3, OTHER), view=ViewId(1, 1))
    held.note(0, later)
    held.note(0, slice_of(0, run(1, 7)))
    assert held.slice(0) == later


def test_a_holder_that_missed_what_is_safe_goes_on_behind_it() -> None:
    held = Held(slice_of(0, run(1, 2)))
    held.note(slice_of(7, run(8, 1), safe=7))
    assert held.slice() == slice_of(7, run(8, 1), safe=7)
