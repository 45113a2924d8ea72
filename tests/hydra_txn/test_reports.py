"""What replicas report of a sequencer that is removed, and how they came to know it."""

import msgspec
import pytest

from ordercast.protocols.hydra.messages import Flush, Report
from tests.hydra_txn.lab import OPTIONS, SHARDS, Lab

FIRST, SECOND = SHARDS[0], SHARDS[1]


def _remove(lab: Lab, *asked: int) -> None:
    """Remove the first sequencer after what these replicas report."""
    lab.sent.clear()
    lab.plan_removal(1, *asked)
    reports = [message for _, _, message in lab.sent if isinstance(message, Report)]
    assert len(reports) == len(asked)
    numbers = tuple(map(max, *(report.numbers for report in reports)))
    lab.decide_removal(1, max(report.clock for report in reports), numbers)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_report_knows_all_numbers_of_what_came_from_another_replica(restarts: bool) -> None:
    """The first shard has a message for certain, which its followers fetched from their leader. So it must
    count in the second shard, which lost it."""
    lab = Lab(options=msgspec.structs.replace(OPTIONS, durable=True))
    packet = lab.stamp("certain")
    lab.give(packet, 0)
    lab.clock += 10
    lab.drivers[0].receive(22, Flush(2, lab.clock, (0, 0)))
    lab.wait(20_000_000)
    assert [lab.delivered[node] for node in FIRST] == [["certain"]] * 3
    if restarts:
        lab.restart(1, 2)
    lab.crash(0)
    _remove(lab, 1, 2, *SECOND)
    lab.wait_ms(60)
    lab.finish("certain")
