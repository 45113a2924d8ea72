"""`cluster down` waits for what hosts have not sent, and tells of what they never sent."""

import json
import time
from pathlib import Path

import pytest

from ordercast.core import LocalError
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.leftovers import forget_left, note_left, read_left
from ordercast.net.tools.client import ControlClient
from tests.live.cluster_files import write_cluster
from tests.live.commands import Said, ended
from tests.live.control_lab import Lab

WINDOW = 4
"""So many messages the protocol takes without an answer."""


def test_down_waits_for_a_backlog_and_tells_of_what_was_never_sent(tmp_path: Path, said: Said) -> None:
    """Without its only receiver (0), the sender (1) gets no answer, and keeps all beyond its window."""
    path = write_cluster(
        tmp_path, protocol="atomic_multicast", receivers=1, options=f"window = {WINDOW}", hosts=(0, 1)
    )
    with ended(load_cluster(path)) as cluster:
        config = ("--config", cluster.file)
        said("cluster", "up", *config)
        said("cluster", "kill", "receiver-0", *config)
        with ControlClient(1, cluster.socket_path(1)) as client:
            for _ in range(WINDOW):
                client.submit(["orders"], [b"taken"])
            client.submit(["orders"], [b"kept back"] * 40)
        began = time.monotonic()
        told = json.loads(said("cluster", "down", *config, "--drain", "1.5", "--json"))
        assert time.monotonic() - began >= 1.5
        assert told["left"] == [{"host": 1, "messages": 40}]
        assert told["was_up"] is True and len(told["traces"]) == 1
        assert "40 messages in the backlog were not sent" in cluster.log_path(1).read_text()


def test_a_host_that_stops_takes_no_more_messages(tmp_path: Path) -> None:
    with Lab(tmp_path / "0.sock").running() as lab, lab.client() as client:
        client.submit(["orders"], [b"taken"])
        lab.call(lab.server.refuse, "host 0 is stopping and takes no more messages")
        with pytest.raises(LocalError, match="host 0 is stopping and takes no more messages"):
            client.submit(["orders"], [b"refused"])
        assert client.status()["host"] == 0, "other questions are answered"
        assert len(lab.host.submitted) == 1


def test_a_note_of_an_earlier_life_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert read_left(tmp_path, 3) is None
    note_left(tmp_path, 3, 17)
    assert read_left(tmp_path, 3) == 17
    forget_left(tmp_path, 3)
    assert read_left(tmp_path, 3) is None
