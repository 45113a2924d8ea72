"""Hosts that stop: they take nothing more, and note what they did not send (test_rolling_restart has all)."""

from pathlib import Path

import pytest

from ordercast.core import LocalError
from ordercast.net.cluster.leftovers import forget_left, note_left, read_left
from tests.live.control_lab import Lab


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
