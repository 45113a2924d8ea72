"""The diagrams of LLFT's page, compared with runs."""

import re
from pathlib import Path

from ordercast.core import MILLISECOND
from ordercast.replication.llft.messages import Progress, Reply, Request
from ordercast.scenario.faults import Crash
from ordercast.scenario.spec import ConstantSpec, NetworkSpec, Scenario, WorkloadSpec
from ordercast.sim.run import simulate
from ordercast.trace import Kind
from tests.llft.lab import Lab

PAGE = Path("docs/protocols/llft.md").read_text()
LINE = re.compile(r"^ *([\d.]+)(?: ms)? +node (\d) -> (?:node|client) (\d) +(.+?)(?:: .*|, with .*)?$", re.M)
BACK = re.compile(r"^ *([\d.]+) +client (\d) -> node (\d) +(.+?)(?:: .*|, with .*)?$", re.M)
DELAY_MS = 0.1


def test_a_change_of_the_primary_takes_the_steps_of_the_page() -> None:
    """Four calls, ten milliseconds apart; the primary is killed at 15 ms."""
    said = sorted(
        (float(at), int(source), int(to), name)
        for at, source, to, names in [*LINE.findall(PAGE), *BACK.findall(PAGE)]
        for name in names.split(", ")
    )
    run = simulate(
        Scenario(
            protocol="llft",
            service="counter",
            packets=True,
            network=NetworkSpec(latency=ConstantSpec(1000 * DELAY_MS)),
            workload=WorkloadSpec(kind="periodic", messages=4, rate_per_s=100, jitter=0.0),
            fault=(Crash(at_ms=15.0, host=0),),
        )
    )
    words = {name for _, _, _, name in said}
    seen = sorted(
        (round(event.time_ns / MILLISECOND - DELAY_MS, 1), event.peer, event.node, event.label)
        for event in run.events()
        if event.kind is Kind.RECEIVE and event.label in words and 15 < event.time_ns / MILLISECOND < 45.8
    )
    assert len(said) >= 7 and [one for one in said if one not in seen] == []
    assert {name for _, _, _, name in seen} == words
    views = {event.node: event.time_ns for event in run.events() if event.kind is Kind.VIEW}
    assert re.search(r"^ 50\.1 +node 2 +installs view 1", PAGE, re.M) and views[2] == 50.1 * MILLISECOND


def test_an_exchange_takes_the_steps_of_the_page() -> None:
    """One multicast, one reply, and the next request hands its places back to the backups."""
    lab = Lab()
    lab.call("first")
    requests, (reply,) = lab.sent_of(Request), [told[2] for told in lab.sent_of(Reply)]
    assert [to for _, to, _ in requests] == [0, 1, 2]
    assert reply.head.ack == requests[0][2].index == 1 and reply.head.orders.end == 1
    assert lab.delivered(0) == lab.told(1) == [] and lab.told(0) == ["first"]
    before = len(lab.sent)
    lab.call("second")
    again = next(message for _, _, message in lab.sent[before:] if isinstance(message, Request))
    assert again.head.reflected is not None and (again.head.reflected.end, again.head.ack) == (1, 1)
    assert lab.told(1) == lab.told(2) == ["first"], "the same places, reflected"
    lab.wait_ms(1)
    told = [source for source, to, message in lab.sent[before:] if to == 0 and isinstance(message, Progress)]
    assert set(told) == {1, 2} and lab.delivered(0) == ["first"], "safe and settled"
