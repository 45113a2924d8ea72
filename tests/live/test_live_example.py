"""The programs of the documents, beside a cluster on real processes: they send, hear in order, come again."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast.cli import run
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.supervisor_client import report
from tests.live.cluster_files import free_port_range
from tests.live.processes import PATIENCE_S, alive, until

ROOT = Path(__file__).parents[2]
SUSPECT_NS = 2_000_000_000
"""Longer than a busy machine holds a sequencer up: what is sent to one that is removed is lost."""
KEEP_NS = 600_000_000_000
"""However long a busy machine takes to start a program, what it missed is kept until then."""
ORDERS = ROOT / "examples" / "live" / "orders.py"


@pytest.fixture
def cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cluster]:
    """What the README says to start first, in a folder of its own, at free ports."""
    monkeypatch.chdir(tmp_path)
    assert run(["cluster", "init", "--applications", "1", "--port", str(free_port_range(9))]) == 0
    file = Path("cluster.toml")
    options = f"[options]\nsuspect_ns = {SUSPECT_NS}\nkeep_ns = {KEEP_NS}"
    file.write_text(file.read_text().replace("[options]", options, 1))
    assert run(["cluster", "up"]) == 0, capsys.readouterr().err
    found = load_cluster(Path("cluster.toml"))
    try:
        yield found
    finally:
        if left := report(found):
            os.kill(left.pid, signal.SIGKILL)  # the hosts follow
            assert until(lambda: not any(host.pid and alive(host.pid) for host in left.hosts))


def lines_of(program: Path, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(program), *words], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    return done.stdout.splitlines()


def shop(*orders: str) -> list[str]:
    return lines_of(ORDERS, *orders)


def test_the_shop_sells_and_comes_again(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    served = [line.split(": ")[1] for line in shop("4", "5", "3", "1")]
    # Hydra may order messages of one sender differently, but everybody the same.
    assert len(served) == 4 and sum("refused" in line for line in served) == 1
    assert run(["send", "all", "2"]) == 0
    told = shop()
    assert any(" of 2: " in line for line in told), "it gets what it missed"
    assert not any(line.startswith("Dropped(") for line in told)

    # The program of the page for asyncio, which ends when it has heard its own message.
    (text,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "live.md").read_text(), re.DOTALL)
    Path("hello.py").write_text(text)
    last = lines_of(Path("hello.py"))[-1]
    assert last.startswith("Received(") and "b'hello'" in last

    capsys.readouterr()
    assert run(["cluster", "down"]) == 0
    assert run(["check", str(cluster.traces)]) == 0
    said = capsys.readouterr().out
    assert "kept every promise that could be judged: 1 run" in said
    assert "not judged: agreement and validity" in said, "the shop had left before the end"
