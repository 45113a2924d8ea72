"""The control socket: what it answers, who may use it, and what it does at its limits."""

import base64
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ordercast.core import Dropped, LocalError, Stamp, View, Wait, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.net.cluster.socket_file import find_socket, open_socket
from ordercast.net.tools import server as control
from ordercast.net.tools.client import ControlClient, NoAnswer
from ordercast.net.tools.feed import QUEUE_MESSAGES_MAX
from ordercast.net.tools.requests import LINE_BYTES_MAX, decode_request
from tests.live.control_lab import NOW_NS, SUBMITTED_NS, Lab
from tests.live.processes import PATIENCE_S, until


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with Lab(tmp_path / "run" / "0.sock").running() as lab:
        yield lab


def speak(lab: Lab, *lines: bytes) -> list[Any]:
    """Send lines as they are, and read as many answers."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(PATIENCE_S)
        raw.connect(str(find_socket(lab.path)))
        raw.sendall(b"".join(lines))
        with raw.makefile("rb") as answers:
            return [msgspec.json.decode(answers.readline()) for _ in lines]


# Answers


def test_status_tells_who_it_is_and_how_it_is(lab: Lab) -> None:
    lab.host.metrics.packets_in = 3
    with lab.client() as client:
        status = client.status()
    named = [status[name] for name in ("cluster", "protocol", "host", "pid", "receivers", "senders", "keys")]
    assert named == ["demo", "unordered", 0, os.getpid(), [0], [3], ["0000002a"]]
    assert {node: fact["role"] for node, fact in status["nodes"].items()} == {"0": "receiver", "3": "sender"}
    assert status["metrics"]["packets_in"] == 3
    assert status["groups"] == {"orders": 0, "payments": 1}
    assert status["uptime_ns"] > 0


def test_metrics_are_told_alone_too(lab: Lab) -> None:
    lab.host.metrics.views = 2
    with lab.client() as client:
        assert client.metrics()["views"] == 2


def test_explain_tells_waits_progress_and_how_far_a_sender_is(lab: Lab) -> None:
    first = message_id(3, 5)
    lab.host.waits = (Wait("packet", "its past", 2_000, pack_bundle(first, [1, 1], [b"", b""])),)
    lab.call(lab.host.deliver, 0, b"a", b"b")
    with lab.client() as client:
        fact = client.explain(first)
    (wait,) = fact.nodes[0].waits
    assert (wait.first, wait.count, wait.age_ns) == (first, 2, NOW_NS - 2_000)
    assert fact.nodes[0].delivered == ((message_id(3, 0), message_id(3, 2)),)
    sender = fact.nodes[3].sender
    assert sender is not None
    assert sender.next == message_id(3, 0)


def test_submit_hands_messages_to_the_sender_by_the_names_of_groups(lab: Lab) -> None:
    with lab.client() as client:
        assert client.submit(["payments", "orders"], [b"one", b"\x00two"]) == message_id(3, 0)
        assert client.submit([1], [b"three"], node=3) == message_id(3, 2)
    assert lab.host.submitted == [(3, (0, 1), [b"one", b"\x00two"]), (3, (1,), [b"three"])]


def test_a_client_waits_while_the_backlog_is_full_and_submits_once(lab: Lab) -> None:
    lab.host.full = 3
    with lab.client() as client:
        client.submit(["orders"], [b"x"])
    assert (lab.host.full, len(lab.host.submitted)) == (0, 1)


def test_a_client_gives_up_when_the_backlog_stays_full(lab: Lab) -> None:
    lab.host.full = 1_000_000
    with lab.client(0.05) as client, pytest.raises(NoAnswer, match=r"no room for 0\.05 s"):
        client.submit(["orders"], [b"x"])
    assert lab.host.submitted == []


@pytest.mark.parametrize(
    ("groups", "node", "complaint"),
    [
        (["nowhere"], None, "no group 'nowhere'; the groups are: orders, payments"),
        ([9], None, "no group '9'"),
        (["orders"], 0, "host 0 has no node 0 that is a sender"),
        ([], None, "not a request"),
    ],
)
def test_what_cannot_be_submitted_is_refused_with_the_reason(
    lab: Lab, groups: list[str | int], node: int | None, complaint: str
) -> None:
    with lab.client() as client, pytest.raises(LocalError, match=complaint):
        client.submit(groups, [b"x"], node)


def test_a_request_that_is_nested_too_deeply_is_refused(lab: Lab) -> None:
    for deep in (b"[" * 50_000 + b"]" * 50_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000):
        for line in (deep, b'{"do": "status", "more": ' + deep + b"}"):
            with pytest.raises(LocalError, match="not a request"):
                decode_request(line)


def test_stop_is_answered_before_it_happens(lab: Lab) -> None:
    with lab.client() as client:
        client.stop()
    assert lab.stopped.wait(10)


def test_a_defect_is_told_and_the_server_lives_on(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab.host, "explain", lambda: 1 // 0)
    with lab.client() as client:
        with pytest.raises(LocalError, match="a defect of ordercast: ZeroDivisionError"):
            client.explain()
        assert client.status()["host"] == 0


# Tail


def watching(lab: Lab, client: ControlClient, **asked: Any) -> Iterator[dict[str, Any]]:
    """The lines of a tail that has begun."""
    lines = client.tail(**asked)
    assert next(lines) == {"node": 0, "host": 0}
    return lines


def test_a_tail_tells_each_message_with_its_place_and_its_latency(lab: Lab) -> None:
    with lab.client() as client:
        lines = watching(lab, client)
        lab.call(lab.host.deliver, 4, b"\xff1", b"2", groups=(0, 1), stamp=Stamp(10, 2, (3, 4)))
        told = [next(lines), next(lines)]
    assert [line["message"] for line in told] == ["3#4", "3#5"]
    assert [base64.b64decode(line["payload"]) for line in told] == [b"\xff1", b"2"]
    common = {"sender": 3, "groups": ["orders", "payments"], "config": 7, "clock": 10, "issuer": 2}
    assert common.items() <= told[0].items()
    assert told[0]["latency_ns"] == NOW_NS - SUBMITTED_NS


def test_a_tail_of_a_group_leaves_the_others_out(lab: Lab) -> None:
    with lab.client() as client:
        lines = watching(lab, client, groups=["payments"])
        lab.call(lab.host.deliver, 0, b"other", groups=(0,))
        lab.call(lab.host.hear, Dropped(0, 2, 9))
        lab.call(lab.host.deliver, 1, b"wanted", groups=(0, 1))
        assert next(lines)["message"] == "3#1"


def test_a_tail_tells_drops_and_views(lab: Lab) -> None:
    with lab.client() as client:
        lines = watching(lab, client)
        lab.call(lab.host.hear, Dropped(0, 2, 9, 1))
        lab.call(lab.host.hear, View(1, 3, (0, 2), "note", "added", Stamp(5, 4, (6,))))
        assert next(lines) == {
            "dropped": {"group": "orders", "issuer": 2, "number": 9, "config": 1, "count": 1}
        }
        view = next(lines)["view"]
    assert (view["group"], view["config"], view["members"], view["change"]) == (
        "payments",
        3,
        [0, 2],
        "added",
    )


def test_a_tail_ends_after_as_many_messages_as_were_asked_for(lab: Lab) -> None:
    with lab.client() as client:
        lines = watching(lab, client, count=3)
        lab.call(lab.host.deliver, 0, b"", b"")
        lab.call(lab.host.deliver, 2, b"", b"")
        assert [line["message"] for line in lines] == ["3#0", "3#1", "3#2"]


def test_a_slow_reader_is_told_how_much_it_missed_and_where(lab: Lab) -> None:
    full, beyond = QUEUE_MESSAGES_MAX // 100, 5

    def burst() -> None:
        for index in range(full + beyond):
            lab.host.deliver(100 * index, *[b""] * 100)

    with lab.client() as client:
        lines = watching(lab, client)
        lab.call(burst)
        lab.call(lab.host.deliver, 100 * (full + beyond), b"after")
        names = []
        for line in lines:
            if "lost" in line:
                break
            names.append(line["message"])
        assert names == [f"3#{number}" for number in range(100 * full)]
        assert 100 * beyond <= line["lost"] <= 100 * beyond + 1


def test_the_end_of_a_reader_is_noticed_and_what_it_missed_is_counted(lab: Lab) -> None:
    with lab.client() as client:
        watching(lab, client)
        lab.call(lab.host.deliver, 0, *[b""] * 30_000)
    assert until(lambda: lab.host.metrics.tail_lost > 0)
    assert lab.host.metrics.tail_lost == 30_000


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"groups": ["nowhere"]}, "no group"),
        ({"node": 2}, "no node 2 that is a receiver"),
        ({"groups": ["orders"], "node": 3}, "no node 3 that is a receiver of that group"),
        ({"count": 0}, "not a request"),
    ],
)
def test_what_cannot_be_watched_is_refused(lab: Lab, asked: dict[str, Any], complaint: str) -> None:
    with lab.client() as client, pytest.raises(LocalError, match=complaint):
        next(client.tail(**asked))


# Limits and strangers


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"nonsense\n",
        b"{}\n",
        b'{"do":"dance"}\n',
        b'{"do":"status","more":1}\n',
        b"[1]\n",
        b"\xff\xfe\n",
    ],
)
def test_what_is_no_request_is_answered_as_such_and_the_next_one_counts(lab: Lab, line: bytes) -> None:
    refused, answered = speak(lab, line, b'{"do":"status"}\n')
    assert "not a request" in refused["error"]
    assert answered["ok"]["host"] == 0


def test_a_line_that_is_too_long_is_refused_and_ends_the_connection(lab: Lab) -> None:
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(PATIENCE_S)
        raw.connect(str(find_socket(lab.path)))
        with pytest.raises(ConnectionError):
            raw.sendall(b"x" * (LINE_BYTES_MAX * 2 + 10))
            while raw.recv(4096):
                pass
            raise ConnectionResetError  # the server closed after its answer
    with lab.client() as client:
        assert client.status()["host"] == 0


def test_a_host_is_asked_although_idle_clients_hold_all_places(lab: Lab) -> None:
    with ExitStack() as idle:
        for _ in range(control.CLIENTS_MAX):
            idle.enter_context(lab.client()).status()
        for _ in range(2 * control.VISITORS_MAX):
            idle.enter_context(lab.client())  # these never ask anything
        for _ in range(3):
            with lab.client() as tool:
                assert tool.status()["host"] == 0


def test_visitors_make_room_for_each_other_and_the_one_that_asked_last_stays(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "CLIENTS_MAX", 1)
    monkeypatch.setattr(control, "VISITORS_MAX", 2)
    with lab.client() as resident, lab.client() as first, lab.client() as second:
        for client in (resident, first, second, first):
            client.status()
        with lab.client() as third:
            third.status()
            with pytest.raises(NoAnswer):
                second.status()
            for client in (resident, first, third):
                assert client.status()["host"] == 0
            with pytest.raises(LocalError, match="too many clients for a tail; the limit is 1"):
                next(third.tail())


def test_a_place_is_free_again_when_a_client_goes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "CLIENTS_MAX", 1)
    with lab.client() as resident:
        resident.status()

    def has_place() -> bool:
        with lab.client() as client:
            try:
                return bool(next(client.tail())["host"] == 0)
            except LocalError:
                return False

    assert until(has_place)


def test_only_the_owner_may_use_the_socket(lab: Lab) -> None:
    place = find_socket(lab.path)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700


def test_the_socket_goes_with_the_server(tmp_path: Path) -> None:
    with Lab(tmp_path / "0.sock").running() as lab:
        assert find_socket(lab.path).exists()
    assert list(tmp_path.iterdir()) == []


def test_a_socket_that_nobody_serves_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "0.sock"
    left, place = open_socket(path)
    left.close()
    assert place.exists()
    with Lab(path).running() as lab, lab.client() as client:
        assert client.status()["host"] == 0


def test_a_host_is_served_once(lab: Lab) -> None:
    with pytest.raises(LocalError, match="another process already serves"):
        open_socket(lab.path)
    with lab.client() as client:
        assert client.status()["host"] == 0


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "0.sock"
    path.write_text("precious")
    with pytest.raises(LocalError, match="is not a socket"):
        open_socket(path)
    assert path.read_text() == "precious"


def test_a_path_that_is_too_long_is_served_elsewhere_and_found_by_clients_with_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ("long" * 30) / "0.sock"
    with tempfile.TemporaryDirectory() as folder:  # a path of pytest's may be too long itself
        short = Path(folder)
        monkeypatch.setattr("tempfile.tempdir", folder)
        with Lab(path).running() as lab:
            monkeypatch.setattr("tempfile.tempdir", None)
            place = find_socket(path)
            assert place.is_relative_to(short)
            assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
            with lab.client() as client:
                assert client.status()["host"] == 0
        assert list(short.iterdir()) == []
    assert list(path.parent.iterdir()) == []


def test_where_no_place_is_short_enough_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with pytest.raises(LocalError, match=r"cannot listen on .*too long"):
        open_socket(long / "0.sock")


def test_a_host_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="host 3 does not answer: is it up"):
        ControlClient(3, tmp_path / "3.sock")


def test_a_host_that_is_stuck_is_told_in_words(tmp_path: Path) -> None:
    listening, _ = open_socket(tmp_path / "3.sock")
    complaint = r"host 3 has not answered for 0\.05 s"
    with (
        listening,
        ControlClient(3, tmp_path / "3.sock", 0.05) as client,
        pytest.raises(NoAnswer, match=complaint),
    ):
        client.status()


@pytest.mark.parametrize("answer", [b"nonsense\n", b"[]\n", b'{"ok": 3}\n', b""])
def test_an_answer_that_is_none_is_told_in_words(tmp_path: Path, answer: bytes) -> None:
    listening, _ = open_socket(tmp_path / "3.sock")
    with listening, ControlClient(3, tmp_path / "3.sock", 5) as client:
        listening.setblocking(True)
        there, _ = listening.accept()
        there.sendall(answer)
        there.shutdown(socket.SHUT_WR)
        with there, pytest.raises(NoAnswer, match=r"host 3 (sent an invalid answer|hung up)"):
            client.status()


def test_a_reader_that_hangs_up_before_its_answer_leaves_nothing_behind(lab: Lab) -> None:
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(str(find_socket(lab.path)))
            raw.sendall(b'{"do": "tail"}\n')
    with lab.client() as last:
        last.status()  # those who came before it have been let in
    assert until(lambda: not lab.server._clients)
    assert not any(lab.server._feed._watches.values())
