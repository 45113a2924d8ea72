"""Spool files: what was flushed is there, what was torn is recognised, and what is strange is told of."""

import signal
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pytest

from ordercast.core import Delivered, Dropped, LocalError, OutOfOrder, RemoteError, Stamp, View, message_id
from ordercast.core.bundle import Bundle
from ordercast.net.host.recording import segments
from ordercast.net.host.recording import spool_file as layout
from ordercast.net.host.recording.segments import TraceState, tables_of
from ordercast.net.host.recording.spool import Spooler
from ordercast.net.host.recording.spool_file import Spool, SpoolHeader, read_spool
from ordercast.trace import Event, Kind, events_of

HEADER = SpoolHeader(run="demo-1", host=3, life=0, number=0, nodes=(1, 5))
HUGE = 1 << 60
STAMP = Stamp(900, 7, (41, 42))

FLUSH_THEN_HANG = """
import sys, time
from pathlib import Path
from ordercast.net.host.recording.spool import Spooler
from ordercast.net.host.recording.spool_file import SpoolHeader

spooler = Spooler(
    Path(sys.argv[1]),
    SpoolHeader(run="demo-1", host=3, life=0, number=0, nodes=(1, 5)),
    bytes_max=1 << 30,
    age_max_ns=1 << 60,
    closed=lambda: None,
)
spooler.begin(10, saved=False)
spooler.submitted(5, (0,), 5 << 40, [11, 12], [b"one", b"two"])
spooler.flush()
spooler.submitted(5, (0,), (5 << 40) + 2, [13], [b"not flushed"])
print("flushed", flush=True)
time.sleep(3600)
"""


def spooler_in(folder: Path, *, bytes_max: int = HUGE, age_max_ns: int = HUGE) -> Spooler:
    spooler = Spooler(folder, HEADER, bytes_max=bytes_max, age_max_ns=age_max_ns, closed=lambda: None)
    spooler.begin(10, saved=False)
    return spooler


def spool_at(path: Path) -> Spool:
    spool = read_spool(path)
    assert spool is not None
    return spool


def events_in(spool: Spool) -> list[Event]:
    return [event for table in tables_of(spool, TraceState()) for event in events_of(table)]


def submission(time_ns: int, number: int, payload: bytes) -> Event:
    message = message_id(5, number)
    return Event(
        time_ns, time_ns, 5, Kind.SUBMIT, message, (0,), None, time_ns,
        size=len(payload), digest=crc32(payload),
    )  # fmt: skip


def test_a_bundle_becomes_a_row_for_each_message(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    payloads = [b"", b"a", b"bb" * 500]
    bundle = Bundle(message_id(5, 70), [100, 101, 90], payloads)
    spooler.delivered(200, 1, Delivered(b"", (0, 2), 5, STAMP, 4), bundle)
    spooler.close()
    assert events_in(spool_at(spooler.path)) == [
        Event(
            200, 200, 1, Kind.DELIVER, message_id(5, 70 + place), (0, 2), (41, 42), submitted,
            900, 7, 4, None, 5, len(payload), crc32(payload),
        )
        for place, (submitted, payload) in enumerate(zip([100, 101, 90], payloads, strict=True))
    ]  # fmt: skip


def test_events_of_all_kinds_keep_their_order(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    one = Bundle(message_id(5, 0), (20,), [b"x"])
    spooler.submitted(5, (0,), message_id(5, 0), [20], [b"x"])
    spooler.noticed(21, 1, Dropped(0, 7, 12, 3))
    spooler.delivered(22, 1, Delivered(b"", (0,), 5), one)
    spooler.noticed(23, 1, View(0, 4, (1, 2), change="removed", stamp=Stamp(99, 7, (12,))))
    spooler.unreadable(24, 1, Delivered(b"", (0,), 5), "no bundle")
    spooler.delivered(25, 1, OutOfOrder(b"", (0,), 5, Stamp(1, 2)), one)
    spooler.completed(26, 5, message_id(5, 0), 20)
    spooler.crashed(27, 1)
    spooler.recovered(28, 1, saved=False)
    spooler.close()
    digest = crc32(b"x")
    message = message_id(5, 0)
    assert events_in(spool_at(spooler.path)) == [
        submission(20, 0, b"x"),
        Event(21, 21, 1, Kind.DROP, None, (0,), (12,), stamp_issuer=7, config=3),
        Event(22, 22, 1, Kind.DELIVER, message, (0,), None, 20, None, None, 0, None, 5, 1, digest),
        Event(23, 23, 1, Kind.VIEW, None, (0,), (12,), None, 99, 7, 4, (1, 2), label="removed"),
        Event(24, 24, 1, Kind.DELIVER, label="no bundle"),
        Event(25, 25, 1, Kind.OUT_OF_ORDER, message, (0,), None, 20, 1, 2, 0, None, 5, 1, digest),
        Event(26, 26, 5, Kind.COMPLETE, message, submitted_ns=20),
        Event(27, 27, 1, Kind.CRASH),
        Event(28, 28, 1, Kind.RECOVER, label="lost"),
    ]


def test_many_drops_in_a_row_are_one_record_and_a_row_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "FURTHER_MAX", 99)
    spooler = spooler_in(tmp_path)
    spooler.submitted(5, (0,), message_id(5, 0), [20], [b"x"])
    spooler.noticed(21, 1, Dropped(0, 7, 12, 3, count=250))
    spooler.submitted(5, (0,), message_id(5, 1), [22], [b"y"])
    spooler.noticed(23, 1, Dropped(0, 7, (1 << 63) - 5, 3, count=6))
    spooler.close()
    spool = spool_at(spooler.path)
    assert len(spool.starts) == 1 + 3 + 1 + 1 + 1, "of 100, 100 and 50, and the end"
    first, *drops, second, odd = events_in(spool)
    assert (first, second) == (submission(20, 0, b"x"), submission(22, 1, b"y"))
    assert drops == [
        Event(21, 21, 1, Kind.DROP, None, (0,), (number,), stamp_issuer=7, config=3)
        for number in range(12, 12 + 250)
    ]
    assert odd == Event(23, 23, 1, Kind.DELIVER, label="a drop with numbers beyond 64 bits")


def test_steps_and_positions_count_by_node(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    for turn in range(3):
        first = message_id(5, 2 * turn)
        spooler.submitted(5, (0,), first, [turn] * 2, [b"x", b"y"])
        spooler.delivered(turn, 1, Delivered(b"", (0,), 5), Bundle(first, (turn,) * 2, [b"x", b"y"]))
    spooler.close()
    state = TraceState()
    (table,) = tables_of(spool_at(spooler.path), state)
    rows = zip(
        table["node"].to_pylist(), table["step"].to_pylist(), table["position"].to_pylist(), strict=True
    )
    counted = list(rows)
    assert [row for row in counted if row[0] == 1] == [(1, place, place) for place in range(6)]
    assert [row for row in counted if row[0] == 5] == [(5, place, None) for place in range(6)]
    assert (state.nodes[1].steps, state.nodes[1].positions, state.nodes[5].positions) == (6, 6, 0)


def test_a_large_spool_is_worked_on_a_portion_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooler = spooler_in(tmp_path)
    for turn in range(50):
        spooler.submitted(5, (0,), message_id(5, 10 * turn), [turn] * 10, [b"x"] * 10)
    spooler.close()
    spool = spool_at(spooler.path)
    whole = events_in(spool)
    monkeypatch.setattr(segments, "ROWS_MAX", 64)
    sizes = [len(table) for table in tables_of(spool, TraceState())]
    assert len(sizes) == 8 and max(sizes) <= 80 and sum(sizes) == 500
    assert events_in(spool) == whole


def test_a_killed_host_loses_only_what_it_had_not_flushed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FLUSH_THEN_HANG, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "flushed\n"
        host.send_signal(signal.SIGKILL)
    (path,) = tmp_path.iterdir()
    assert events_in(spool_at(path)) == [submission(11, 0, b"one"), submission(12, 1, b"two")]


@pytest.mark.parametrize("bytes_max", [HUGE, 1], ids=["one file", "a file for each flush"])
def test_what_did_not_take_place_is_taken_back(tmp_path: Path, bytes_max: int) -> None:
    spooler = spooler_in(tmp_path, bytes_max=bytes_max)
    spooler.submitted(5, (0,), 5 << 40, [11], [b"one"])
    spooler.flush()
    spooler.submitted(5, (0,), (5 << 40) + 1, [12], [b"two"])
    spooler.flush()
    spooler.take_back()
    spooler.close(failed=True)
    found = [event for path in sorted(tmp_path.iterdir()) for event in events_in(spool_at(path))]
    assert [event.message for event in found if event.kind is Kind.SUBMIT] == [5 << 40]


def test_a_torn_tail_is_recognised_wherever_it_is_torn(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    spooler.submitted(5, (0,), message_id(5, 0), [20], [b"whole"])
    spooler.flush()
    begin = spooler.path.stat().st_size
    spooler.submitted(5, (0,), message_id(5, 1), [21, 22], [b"torn", b"too"])
    spooler.flush()
    content = spooler.path.read_bytes()
    for cut in range(begin, len(content)):
        spooler.path.write_bytes(content[:cut])
        spool = spool_at(spooler.path)
        assert events_in(spool) == [submission(20, 0, b"whole")]
        assert spool.torn == cut - begin
        assert not spool.damaged


def test_a_tail_of_zeros_or_of_flipped_bits_is_recognised(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    spooler.submitted(5, (0,), message_id(5, 0), [20], [b"whole"])
    spooler.flush()
    content = spooler.path.read_bytes()
    spooler.path.write_bytes(content + bytes(4096))
    assert events_in(spool_at(spooler.path)) == [submission(20, 0, b"whole")]
    body = bytearray(content)
    body[-20] ^= 4
    spooler.path.write_bytes(body)
    assert events_in(spool_at(spooler.path)) == []
    assert not spool_at(spooler.path).damaged, "the last record may be one that was half written"


def test_flipped_bits_before_a_whole_record_are_damage(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    begin = spooler.path.stat().st_size
    for number in range(3):
        spooler.submitted(5, (0,), message_id(5, number), [20 + number], [b"whole"])
    spooler.flush()
    content = spooler.path.read_bytes()
    last = begin + (len(content) - begin) * 2 // 3
    for place in range(begin, last, 5):
        body = bytearray(content)
        body[place] ^= 16
        spooler.path.write_bytes(body)
        assert spool_at(spooler.path).damaged, place


def test_a_file_without_a_whole_header_says_nothing(tmp_path: Path) -> None:
    spooler = spooler_in(tmp_path)
    content = spooler.path.read_bytes()
    for cut in range(len(content)):
        spooler.path.write_bytes(content[:cut])
        assert read_spool(spooler.path) is None


@pytest.mark.parametrize(("at", "complaint"), [(0, "not a spool file"), (30, "the header is damaged")])
def test_a_damaged_header_is_named(tmp_path: Path, at: int, complaint: str) -> None:
    spooler = spooler_in(tmp_path)
    content = bytearray(spooler.path.read_bytes())
    content[at] ^= 32
    spooler.path.write_bytes(content)
    with pytest.raises(RemoteError, match=complaint):
        read_spool(spooler.path)


def test_a_spool_is_closed_when_it_is_large_or_old(tmp_path: Path) -> None:
    closed: list[int] = []
    spooler = Spooler(tmp_path, HEADER, bytes_max=300, age_max_ns=1000, closed=lambda: closed.append(1))
    spooler.begin(10, saved=False)
    for number in range(4):
        spooler.submitted(5, (0,), message_id(5, number), [20], [b"x"])
        spooler.flush()
    large = len(closed)
    spooler.submitted(5, (0,), message_id(5, 4), [1500], [b"x"])
    spooler.flush()
    assert (large, len(closed)) == (1, 2)
    spooler.close()
    found = [spool_at(path) for path in sorted(tmp_path.iterdir())]
    assert [spool.header.number for spool in found] == [0, 1, 2]
    assert {spool.header.life for spool in found} == {0}
    assert [len(spool.starts) for spool in found] == [3, 1, 2]


@pytest.mark.parametrize(
    "delivery",
    [
        Delivered(b"", (0,), 5, Stamp(1 << 63, 7)),
        Delivered(b"", (0,), 5, Stamp(1, 7, (1 << 63,))),
        Delivered(b"", (1 << 31,), 5),
        OutOfOrder(b"", (0,), 1 << 31, Stamp(1, 7)),
        Delivered(b"", (0,), 5, config=-(1 << 64)),
    ],
)
def test_numbers_that_no_column_holds_are_told_of_in_words(
    tmp_path: Path, delivery: Delivered | OutOfOrder
) -> None:
    spooler = spooler_in(tmp_path)
    spooler.delivered(20, 1, delivery, Bundle(message_id(5, 0), (11,), [b"x"]))
    spooler.noticed(21, 1, Dropped(0, 7, 1 << 63))
    spooler.noticed(22, 1, View(0, 1, (1 << 31,)))
    spooler.submitted(5, (0,), message_id(5, 0), [23], [b"x"])
    spooler.close()
    strange, drop, view, after = events_in(spool_at(spooler.path))
    assert strange.message is None and "beyond 64 bits" in str(strange.label)
    assert drop == Event(21, 21, 1, Kind.DELIVER, label="a drop with numbers beyond 64 bits")
    assert view == Event(22, 22, 1, Kind.DELIVER, label="a view with numbers beyond 64 bits")
    assert after == submission(23, 0, b"x")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file is in the way")
    with pytest.raises(LocalError, match="cannot write the trace"):
        spooler_in(tmp_path / "spool")
