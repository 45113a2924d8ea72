"""Spool files of services: a bundle record of answers gives the rows that a simulator would write."""

from pathlib import Path

import pytest

from ordercast.core import Checkpoint, Locked, Released, RemoteError, Replied, Stamp, Undone, message_id
from ordercast.core.bundle import pack_bundle, unpack_bundle
from ordercast.net.host.recording import spool_file as layout
from ordercast.trace import ABORTED, COMMITTED, READ, RESTORED, Kind, notice_event
from tests.live.test_spool import events_in, spool_at, spooler_in

PLACE = Stamp(900, 7)
CASES = {
    "answers": Replied(2, pack_bundle(message_id(5, 9), [3, 4, 3], [b"\0a", b"\0", b"\0bb"]), PLACE, 1),
    "one answer": Replied(0, pack_bundle(message_id(5, 9), [3], [b"\0a"]), PLACE, 1),
    "outcomes": Replied(0, pack_bundle(message_id(5, 9), [3] * 4, [b"\0a", b"\1no", b"", b"\7"]), PLACE, 1),
    "one refusal": Replied(0, pack_bundle(message_id(5, 9), [3], [b"\1no"]), PLACE, 1),
    "reads": Replied(0, pack_bundle(message_id(5, 9), [3, 3], [b"\0a", b"\1no"]), PLACE, 1, read=True),
    "a read before all": Replied(0, pack_bundle(message_id(5, 9), [3], [b"\0a"]), None, 1, read=True),
}


@pytest.mark.parametrize("replied", CASES.values(), ids=CASES)
def test_answers_have_the_rows_of_their_notices(tmp_path: Path, replied: Replied) -> None:
    spooler = spooler_in(tmp_path)
    spooler.replied(200, 5, replied, unpack_bundle(replied.payload))
    spooler.submitted(5, (0,), message_id(5, 20), [210], [b"x"])
    spooler.close()
    *answers, submission = events_in(spool_at(spooler.path))
    assert answers == [notice_event(200, 200, 5, one) for one in replied.singles()]
    assert submission.kind is Kind.SUBMIT and submission.label is None


def test_submissions_of_reads_are_labelled(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    spooler.submitted(5, (0,), message_id(5, 0), [20, 21], [b"x", b"y"], read=True)
    spooler.submitted(5, (0,), message_id(5, 2), [22], [b"z"])
    spooler.close()
    assert [event.label for event in events_in(spool_at(spooler.path))] == [READ, READ, None]


def test_checkpoints_are_rows(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    plain, restored = Checkpoint(0, PLACE, 120, 99), Checkpoint(0, PLACE, 120, 99, restored=True)
    spooler.noticed(30, 1, plain)
    spooler.noticed(31, 1, restored)
    spooler.close()
    found = events_in(spool_at(spooler.path))
    assert found == [notice_event(30, 30, 1, plain), notice_event(31, 31, 1, restored)]
    assert [event.label for event in found] == [None, RESTORED]


def test_what_is_taken_back_is_a_row(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    plain, named = Undone(0, PLACE), Undone(0, Stamp(900, 7, (3, 11)))
    spooler.noticed(30, 5, plain)
    spooler.noticed(31, 1, named)
    spooler.close()
    found = events_in(spool_at(spooler.path))
    assert found == [notice_event(30, 30, 5, plain), notice_event(31, 31, 1, named)]
    assert [(event.kind, event.numbers) for event in found] == [(Kind.UNDONE, None), (Kind.UNDONE, (3, 11))]


def test_locks_are_rows_that_name_their_transaction(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    held = Locked(2, message_id(5, 9), PLACE)
    ended = [Released(2, message_id(5, 9), PLACE, committed) for committed in (True, False)]
    for notice in (held, *ended):
        spooler.noticed(30, 1, notice)
    spooler.close()
    found = events_in(spool_at(spooler.path))
    assert found == [notice_event(30, 30, 1, notice) for notice in (held, *ended)]
    assert {(event.message, event.groups, event.stamp_clock) for event in found} == {
        (message_id(5, 9), (2,), PLACE.clock)
    }
    told = [(Kind.LOCKED, None), (Kind.RELEASED, COMMITTED), (Kind.RELEASED, ABORTED)]
    assert [(event.kind, event.label) for event in found] == told


def test_an_answer_of_a_faulty_peer_that_does_not_fit_is_a_row_without_content(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    beyond = Replied(0, pack_bundle(message_id(5, 9), [3], [b"\0"]), Stamp(1 << 70, 7), 1)
    spooler.replied(200, 5, beyond, unpack_bundle(beyond.payload))
    spooler.close()
    (event,) = events_in(spool_at(spooler.path))
    assert event.kind is Kind.REPLY and event.message is None and "64 bits" in (event.label or "")


def test_an_unknown_outcome_is_damage(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    fields = (5, 1, 200, message_id(5, 9))
    outcome = (77).to_bytes(4, "little")
    spooler._bundle(layout.REPLIED, layout.OUTCOMES, (0,), (), fields, (0, 0, 0), [3], [b"\1"], outcome)
    spooler.close()
    with pytest.raises(RemoteError, match="unknown outcome"):
        events_in(spool_at(spooler.path))
