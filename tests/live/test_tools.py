"""The commands for a running cluster: send, tail, why and top, against real hosts."""

import base64
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from ordercast.cli.hosts import is_here
from ordercast.cli.send import BATCH_BYTES, made_up, read_lines, split
from ordercast.cli.tail import line_text, payload_text
from ordercast.cli.top import Row, bytes_text, measure
from ordercast.core import LocalError
from ordercast.core.bundle import MESSAGE_BYTES_MAX
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.transports.address import Address
from tests.cli.conftest import Command, ordercast
from tests.live.attended import Attended
from tests.live.processes import PATIENCE_S

__all__ = ["ordercast"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attended]:
    with Attended(tmp_path_factory.mktemp("c")).running() as cluster:
        yield cluster


def until(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it has not come true"
        time.sleep(0.02)


# Send


def test_what_is_sent_is_delivered_at_all_receivers(cluster: Attended, ordercast: Command) -> None:
    sent = ordercast("send", "orders", "buy", "sell", "--config", cluster.config, "--json").json()
    assert (sent["sent"], sent["node"], sent["host"]) == (2, 3, 0)
    name = sent["messages"][0]["first"]

    def delivered() -> bool:
        answer = ordercast("why", name, "-c", cluster.config, "--json").json()
        return bool(answer["delivered"] == [0, 1, 2])

    until(delivered)
    told = ordercast("why", name, "-c", cluster.config)
    assert told.out == f"message {name} was delivered at nodes 0, 1, 2.\n"


def test_a_sender_can_be_chosen_and_messages_made_up(cluster: Attended, ordercast: Command) -> None:
    told = ordercast("send", "orders", "--count", 2500, "--size", 20, "--node", 4, "-c", cluster.config)
    assert told.code == 0
    assert told.out.startswith("2500 messages handed to sender 4 on host 1: 4#")


def test_lines_of_standard_input_are_messages(
    cluster: Attended, ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(b"one\n\ntwo")
    with lines.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        sent = ordercast("send", "orders", "--stdin", "-c", cluster.config, "--json").json()
    assert sent["sent"] == 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nowhere", "x"], "unknown group 'nowhere'; the groups are: orders"),
        (["orders,nowhere", "x"], "unknown group 'nowhere'"),
        (["orders"], "nothing to send: give a message"),
        (["orders", "x", "--stdin"], "choose one of: messages, --stdin, or --size"),
        (["orders", "--stdin", "--count", "3"], "--count works with messages"),
        (["orders", "x", "--node", "0"], "node 0 is not a sender; the senders are: 3, 4, 5"),
        (["orders", "x", "-c", "missing.toml"], "missing.toml"),
    ],
)
def test_what_cannot_be_sent_is_told_in_a_line(
    cluster: Attended, ordercast: Command, words: list[str], complaint: str
) -> None:
    config = [] if "-c" in words else ["-c", cluster.config]
    told = ordercast("send", *words, *config)
    assert (told.code, told.out) == (2, "")
    assert complaint in told.err
    assert told.err.count("\n") == 1


def test_made_up_messages_have_their_size_and_tell_their_place() -> None:
    assert made_up(7, None) == b"message 7"
    assert made_up(7, 12) == b"message 7..."
    assert made_up(7, 3) == b"mes"


def reader(*chunks: bytes) -> Callable[[], bytes]:
    left = iter(chunks)
    return lambda: next(left, b"")


def test_lines_are_sent_as_they_come_and_none_is_torn() -> None:
    read = read_lines(reader(b"a\nb", b"c\n", b"\n", b"d"))
    assert list(read) == [[b"a"], [b"bc"], [b""], [b"d"]]


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(LocalError, match="longer than"):
        list(read_lines(reader(*[b"x" * (MESSAGE_BYTES_MAX // 2)] * 3)))


def test_requests_are_not_too_large() -> None:
    payloads = [b"x" * (BATCH_BYTES // 3)] * 5 + [b"y" * BATCH_BYTES * 2] + [b""] * 1_500
    batches = list(split(payloads))
    assert [payload for batch in batches for payload in batch] == payloads
    assert [len(batch) for batch in batches] == [3, 2, 1, 1000, 500]


# Tail


def test_a_tail_shows_what_is_delivered(cluster: Attended, ordercast: Command) -> None:
    sending = _send_until_stopped(cluster)
    try:
        told = ordercast("tail", "orders", "-n", 3, "--node", 2, "-c", cluster.config)
        json = ordercast("tail", "orders", "-n", 2, "--json", "-c", cluster.config)
    finally:
        sending()
    assert (told.code, json.code) == (0, 0)
    assert len(told.out.splitlines()) == 3
    assert all(line.endswith("tick") for line in told.out.splitlines())
    lines = [msgspec.json.decode(line) for line in json.out.splitlines()]
    assert [base64.b64decode(line["payload"]) for line in lines] == [b"tick"] * 2
    assert {line["sender"] for line in lines} == {3}


def _send_until_stopped(cluster: Attended) -> Callable[[], None]:
    """Submit a message now and then, while something watches; what is returned ends it."""
    enough = threading.Event()
    host, _ = cluster.hosts[0]

    async def submit() -> None:
        host.submit(3, (0,), [b"tick"])

    def repeat() -> None:
        while not enough.wait(0.01):
            cluster.run(submit())

    thread = threading.Thread(target=repeat)
    thread.start()

    def end() -> None:
        enough.set()
        thread.join(20)

    return end


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nowhere"], "unknown group 'nowhere'"),
        (["orders", "--node", "3"], "node 3 is not a receiver of orders; the receivers are: 0, 1, 2"),
    ],
)
def test_what_cannot_be_watched_is_told_in_a_line(
    cluster: Attended, ordercast: Command, words: list[str], complaint: str
) -> None:
    told = ordercast("tail", *words, "-c", cluster.config)
    assert (told.code, told.out) == (2, "")
    assert complaint in told.err


def text_of(payload: bytes) -> str:
    return payload_text(base64.b64encode(payload).decode())


def test_no_message_can_move_the_cursor() -> None:
    assert text_of("naïve".encode()) == "naïve"
    assert text_of(b"a\x1b[2Jb\r\n\xff") == "a\\x1b[2Jb\\r\\n\\xff"


def test_a_long_message_is_cut_for_people() -> None:
    assert text_of(b"x" * 1000) == "x" * 200 + " ... (1000 bytes)"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ({"dropped": {"group": "orders", "issuer": 2, "number": 9, "config": 1}}, "number 9 of issuer 2"),
        (
            {
                "view": {
                    "group": "orders",
                    "config": 3,
                    "members": [0, 1],
                    "note": "n",
                    "change": "added",
                    "issuer": 2,
                }
            },
            "view 3 of orders, issuer 2 added: members 0, 1 n",
        ),
        ({"lost": 12}, "12 messages not shown"),
        (
            {"message": "3#1", "latency_ns": 1500, "payload": "aGk=", "out_of_order": True},
            "hi (out of order)",
        ),
    ],
)
def test_every_kind_of_line_has_words(line: dict[str, object], text: str) -> None:
    assert text in line_text(line).plain


# Why and top, while hosts are missing


@pytest.fixture
def crippled(tmp_path: Path) -> Iterator[Attended]:
    """One host of three is left, and its sender has a message under way."""
    with Attended(tmp_path).running() as cluster:
        cluster.stop(1, 2)
        yield cluster


def test_why_names_what_blocks_a_message_and_the_hosts_that_are_down(
    crippled: Attended, ordercast: Command
) -> None:
    ordercast("send", "orders", "stuck", "-c", crippled.config)
    told = ordercast("why", "3#0", "-c", crippled.config)
    assert told.out.startswith("message 3#0 has waited ")
    assert " at node 3 (client, host 0) for a timestamp from group 0" in told.out
    assert told.out.endswith(
        "host 1 (receiver and client) does not answer; host 2 (receiver and client) does not answer.\n"
    )
    answer = ordercast("why", "3#0", "-c", crippled.config, "--json").json()
    assert (answer["verdict"], answer["node"], answer["absent"]) == ("waiting", 3, [1, 2])
    assert ordercast("why", "3#1", "-c", crippled.config, "--json").json()["verdict"] == "not-submitted"
    assert ordercast("why", "-c", crippled.config, "--json").json()["verdict"] == "waiting"


def test_a_sender_that_is_down_is_told(crippled: Attended, ordercast: Command) -> None:
    told = ordercast("send", "orders", "x", "--node", 4, "-c", crippled.config)
    assert told.code == 2
    assert "no host with a sender answers (tried: 1)" in told.err


def test_top_names_the_hosts_that_are_down(crippled: Attended, ordercast: Command) -> None:
    told = ordercast("top", "--json", "--interval", 0.1, "-c", crippled.config).json()
    assert [row["host"] for row in told["hosts"]] == [0]
    assert told["absent"] == {"1": "receiver and client", "2": "receiver and client"}
    table = ordercast("top", "--once", "--interval", 0.1, "-c", crippled.config)
    assert table.code == 0
    assert table.out.count("answer") == 2


@pytest.mark.parametrize("command", ["why", "top"])
def test_a_cluster_that_is_down_is_told(tmp_path: Path, ordercast: Command, command: str) -> None:
    told = ordercast(command, "-c", Attended(tmp_path).config)
    assert told.code == 2
    assert "no host answers on this machine" in told.err


def test_what_is_no_message_is_told(cluster: Attended, ordercast: Command) -> None:
    told = ordercast("why", "seventeen", "-c", cluster.config)
    assert told.code == 2
    assert "'seventeen' is not a message" in told.err


# Top


def test_top_measures_what_happens_meanwhile(cluster: Attended, ordercast: Command) -> None:
    sending = _send_until_stopped(cluster)
    try:
        told = ordercast("top", "--json", "--interval", 0.5, "-c", cluster.config).json()
    finally:
        sending()
    rows = {row["host"]: row for row in told["hosts"]}
    assert set(rows) == {0, 1, 2}
    assert rows[0]["submitted_per_s"] > 0
    assert all(row["delivered_per_s"] > 0 and row["p99_ns"] > 0 for row in rows.values())
    assert told["absent"] == {}


def reading(metrics: Metrics, uptime_ns: int, cpu_ns: int = 0) -> dict[str, object]:
    return metrics.snapshot() | {"uptime_ns": uptime_ns, "cpu_ns": cpu_ns}


def measured(before: dict[str, object], after: dict[str, object]) -> Row:
    return measure(0, "receiver", before, after)


def test_rates_and_latency_are_those_between_two_readings() -> None:
    metrics = Metrics()
    metrics.packets_in, metrics.rejected_key, metrics.rejected_seal = 100, 1, 2
    metrics.latency.record(5_000_000)
    before = reading(metrics, 1_000_000_000)
    metrics.packets_in = 300
    metrics.overflow, metrics.dropped_away = 3, 4
    metrics.latency.record(1_000)
    row = measured(before, reading(metrics, 3_000_000_000, 500_000_000))
    assert (row.packets_in_per_s, row.cpu_percent, row.rejected, row.lost) == (100.0, 25.0, 3, 7)
    assert row.p99_ns == pytest.approx(1_000, rel=0.01)


def test_a_host_shows_its_role_in_the_order() -> None:
    metrics = Metrics()
    before = reading(metrics, 1_000_000_000)
    assert measured(before, reading(metrics, 2_000_000_000)).role == "receiver"
    metrics.role = "passive"
    assert measured(before, reading(metrics, 2_000_000_000)).role == "receiver, passive"


def test_a_host_that_was_started_anew_is_measured_from_its_start() -> None:
    metrics = Metrics()
    metrics.packets_in = 500
    before = reading(metrics, 9_000_000_000)
    metrics.packets_in = 50
    assert measured(before, reading(metrics, 500_000_000)).packets_in_per_s == 100.0


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 20, "5 MiB"), (3 << 30, "3 GiB")],
)
def test_sizes_in_words(size: int, text: str) -> None:
    assert bytes_text(size) == text


# Metrics over HTTP, and whose address it is


def test_each_host_tells_its_metrics_and_its_health_over_http(cluster: Attended) -> None:
    for host in (0, 2):
        base = f"http://127.0.0.1:{cluster.metrics_port + host}"
        with urllib.request.urlopen(f"{base}/metrics", timeout=PATIENCE_S) as page:
            assert f'ordercast_views_total{{cluster="test",host="{host}"}}' in page.read().decode()
        with urllib.request.urlopen(f"{base}/health", timeout=PATIENCE_S) as page:
            assert msgspec.json.decode(page.read()) == {"host": host, "status": "running"}


def test_status_tells_keys_and_links(cluster: Attended) -> None:
    from ordercast.net.tools.client import ControlClient

    with ControlClient(0, cluster.cluster.socket_path(0)) as client:
        until(lambda: all(link["known"] for link in client.status()["links"].values()))
        status = client.status()
    assert len(status["keys"]) == 1
    assert set(status["links"]) == {"1", "2"}
    assert not any(link["away"] for link in status["links"].values())
    assert status["pid"] == os.getpid()


def test_an_address_of_another_machine_is_not_here() -> None:
    assert is_here(Address("127.0.0.1", 1))
    assert is_here(Address("127.8.8.8", 1))
    assert not is_here(Address("192.0.2.1", 1))
    assert not is_here(Address("2001:db8::1", 1))
