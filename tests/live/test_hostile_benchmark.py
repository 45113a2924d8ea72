"""The attack of `benchmarks.hostile`: everything that it sends is refused, and what is not refused is told.

How much slower users become is measured by the benchmark alone: on a machine with other work it says little.
"""

import asyncio
import time
from itertools import islice

import pytest

from benchmarks.hostile.__main__ import attack
from benchmarks.hostile.attacker import DECOY, QUIET, Sent
from benchmarks.hostile.datagrams import LIVES, OLD, Forger
from benchmarks.hostile.lies import lies_to
from benchmarks.hostile.verdict import Verdict, table
from ordercast.core import HostId
from ordercast.lab.bench.run import plan_of
from ordercast.lab.bench.spec import BenchSpec
from tests.live.live_lab import Lab, lab, run
from tests.live.wire_pairs import KEYS, Net, rejected

LIES = 200


def handshake(net: Net) -> list[tuple[HostId, bytes]]:
    """All datagrams until host 1 has heard host 0 and answered."""
    for number in range(8):
        net.sides[0].say(1, b"%d" % number)
    return net.carry()


def test_a_datagram_of_a_handshake_counts_once_too() -> None:
    net = Net()
    carried = handshake(net)
    before = {host: sum(rejected(side).values()) for host, side in net.sides.items()}
    for host, datagram in carried:
        net.sides[host].wire.on_datagram(datagram)
    for host in (0, 1):
        copies = sum(target == host for target, _ in carried)
        assert rejected(net.sides[host]).get("replay", 0) - before[host] == copies > 0


def test_every_hostile_datagram_is_refused_but_for_recordings_of_earlier_lives() -> None:
    net = Net()
    recorded = [datagram for host, datagram in handshake(net) if host == 1]
    second = net.sides[1]
    second.reads.clear()
    hostile = Forger(1, recorded, KEYS, 1).datagrams()
    for datagram in hostile:
        second.wire.on_datagram(datagram)
    assert second.reads == []
    assert sum(rejected(second).values()) == len(hostile) - LIVES * OLD
    assert {"version", "seal", "key", "replay", "session", "truncated"} <= {*rejected(second)}


def test_every_lie_is_refused_by_the_process_that_it_is_told_to() -> None:
    async def main() -> None:
        made = Lab(plan_of(BenchSpec(options={"spares": 1})))
        liar = max(node.id for node in made.plan.nodes if node.role == "sequencer")
        async with lab(made):
            made.submit(made.plan.senders[0], b"before")
            await made.until_delivered(1)
            for target, message in islice(lies_to(made.plan, liar, time.time_ns()), LIES):
                host = made.hosts[made.plan.nodes[target].host]
                before = host.metrics.implausible
                body = made.plan.codec.encode(message)
                host._nodes.on_frame(made.plan.nodes[liar].host, liar, (target,), body)
                assert host.metrics.implausible == before + 1, (target, message)
            made.submit(made.plan.senders[0], b"after")
            await made.until_delivered(2)
            await asyncio.sleep(0)
            assert made.failures() == []

    run(main())


def verdict(**changes: object) -> Verdict:
    found: dict[str, object] = {
        "wanted": Sent(1_000, 100),
        "sent": Sent(1_000, 100),
        "refused": 990,
        "no_room": 0,
        "held_max": 10,
        "implausible": 100,
        "malformed": 0,
        "delivered": 500,
        "lost": 0,
        "drops": 0,
        "violations": [],
        "hosts": 8,
        "check": "",
        "phases": {},
        "ratios": {QUIET: [0.9, 0.95, 0.99], DECOY: [1.0, 1.0, 1.0]},
    }
    return Verdict(**(found | changes))  # type: ignore[arg-type]


def test_an_attack_that_changes_nothing_passes() -> None:
    assert verdict().faults == [] and table(verdict()).endswith("passed")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"refused": 980}, "10 hostile datagrams or messages were not refused"),
        ({"implausible": 99}, "1 hostile datagrams or messages were not refused"),
        ({"sent": Sent(400, 100), "refused": 400}, "the attacker got too little CPU time"),
        ({"sent": Sent(1_000, 40), "implausible": 40}, "the attacker got too little CPU time"),
        ({"lost": 3}, "3 messages lost"),
        ({"drops": 2}, "2 drop notifications"),
        ({"violations": ["host 1 delivered m twice"]}, "twice"),
        ({"check": "ordercast check: agreement violated"}, "agreement"),
        ({"ratios": {QUIET: [0.8, 0.84, 0.99], DECOY: [1.0, 1.0, 1.0]}}, "users are at 84% of their rate"),
    ],
)
def test_what_an_attack_has_changed_is_told(change: dict[str, object], complaint: str) -> None:
    (fault,) = verdict(**change).faults
    assert complaint in fault


@pytest.mark.deep
def test_a_short_attack_on_a_live_cluster_is_refused_whole() -> None:
    found = attack(20_000, 2_000, 5_000.0, turn_s=2.0, offered=500.0)
    assert found.sent.datagrams > 15_000 and found.sent.lies > 1_500
    assert found.accepted == 0, table(found)
    assert (found.lost, found.drops, found.malformed, found.hosts) == (0, 0, 0, 8), table(found)
    assert found.violations == [] and found.check == ""
