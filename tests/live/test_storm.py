"""A host that has very much to deliver at once still answers, and keeps the order of effects."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, Dropped
from ordercast.net.host import outlet
from ordercast.net.host.live_host import LiveHost
from ordercast.net.host.recording.recorder import TraceRecorder
from ordercast.net.host.store import Store
from ordercast.net.links.seal import Unsealed
from ordercast.net.links.wire import Wire, new_session
from ordercast.net.metrics.metrics import Metrics
from ordercast.net.tools.server import ControlServer
from ordercast.net.transports.udp import UdpTransport
from tests.live.live_lab import BUFFER, WINDOW, run
from tests.live.test_turn import Deeds, Word, delivery
from tests.live.wires import free_addresses

DROPS = 100_000
ANSWERS_MIN = 10


def host_with_record(folder: Path) -> LiveHost:
    """A host with one receiver, which writes a trace."""
    protocol = find_protocol("unordered")
    plan = protocol.deploy(Deployment.disjoint(1, 1, 1, colocated=True), protocol.options())
    transport = UdpTransport(0, free_addresses(1), 1_400, BUFFER)
    wire = Wire(0, [0], transport, Unsealed(0, new_session()), Metrics(), window=WINDOW)
    return LiveHost(plan, 0, wire, store=Store(None), recorder=TraceRecorder(folder, "storm", 0, (0, 1)))


def test_a_host_answers_while_it_tells_of_many_drops(tmp_path: Path) -> None:
    async def main() -> None:
        host, told = host_with_record(tmp_path), list[int]()
        await host.start()
        host.add_listener(0, lambda heard: told.append(heard.number) if isinstance(heard, Dropped) else None)
        place = tmp_path / "control" / "0.sock"
        server = ControlServer(host, place, cluster="storm", groups={"all": 0}, stop=lambda: None)
        await server.start()
        reader, writer = await asyncio.open_unix_connection(str(place))
        for number in range(DROPS):
            host.nodes[0].deliver(Dropped(0, 1, number, 0))
        host.end_turn()
        seen = []
        while len(told) < DROPS:
            writer.write(b'{"do": "status"}\n')
            seen.append(json.loads(await reader.readline())["ok"]["metrics"]["drops_notified"])
        assert told == list(range(DROPS))
        assert len({*seen}) >= ANSWERS_MIN and all(before <= after for before, after in pairwise(seen))
        writer.close()
        await server.close()
        await host.stop()
        assert host.failure is None

    run(main())


def test_many_drops_in_a_row_are_recorded_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        host = host_with_record(tmp_path)
        await host.start()
        for first in range(0, DROPS, 1_000):
            host.nodes[0].deliver(Dropped(0, 1, first, 0, count=1_000))
        host.end_turn()
        assert host.metrics.drops_notified == DROPS
        written = sum(path.stat().st_size for path in tmp_path.rglob("*.spool"))
        assert written < DROPS, "one by one they take about a hundred bytes each"
        await host.stop()

    run(main())


def test_a_host_that_stops_in_a_storm_tells_all_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        host, told = host_with_record(tmp_path), list[int]()
        await host.start()
        host.add_listener(0, lambda heard: told.append(heard.number) if isinstance(heard, Dropped) else None)
        for number in range(3 * outlet.SLICE):
            host.nodes[0].deliver(Dropped(0, 1, number, 0))
        host.end_turn()
        assert told == []
        await host.stop()
        assert told == list(range(3 * outlet.SLICE)) and host.failure is None

    run(main())


def test_a_large_turn_leaves_in_slices_and_in_the_order_of_any_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "SLICE", 2)
    deeds = Deeds()
    for _ in range(5):
        deeds.env.deliver(delivery())
    deeds.env.save("term", b"7")
    deeds.env.send(1, Word(b"a"))
    deeds.let_out()
    assert (deeds.done, deeds.later) == ([], ["go on"])
    deeds.env.deliver(delivery())
    deeds.let_out()  # a small turn after it waits
    steps = []
    while deeds.later:
        deeds.later.pop()
        deeds.outlet.go_on()
        steps.append(len(deeds.done))
    assert deeds.done[:7] == ["record"] * 5 + ["flush", "save"]
    assert deeds.done[7:] == ["tell"] * 5 + ["send 1", "record", "flush", "tell"]
    assert len(steps) > 4 and max(after - before for before, after in pairwise([0, *steps])) <= 6
