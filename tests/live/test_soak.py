"""The soak: a short form of it on real processes, and what it takes for growth, loss and disorder."""

import numpy as np
import pytest

from benchmarks.soak import MIB, judge, soak, table
from ordercast.lab.bench.bundles import account_by_bundle


@pytest.mark.deep
def test_a_short_soak_passes_and_leaves_nothing_behind() -> None:
    # The warming up, a third of it, is longer than receivers keep packets for those that lack them (10 s).
    found = soak(0.6, 2_000)
    assert found.violations == [] and found.lost == 0 and found.orphans == 0
    assert found.submitted > 30_000
    assert len(found.processes) == 8, "three receivers, two sequencers, three replicas"
    assert all(process.rss_most_mib > 10 for process in found.processes)
    assert all(process.flat for process in found.processes), table(found)
    assert found.disk_mib["notes"] > 0, "what members note goes to disk and not to memory"
    assert found.passed and table(found).endswith("passed")


@pytest.mark.parametrize(
    ("mib_a_minute", "flat"), [(0.0, True), (0.5, True), (2.0, False), (20.0, False), (-5.0, True)]
)
def test_growth_after_the_warming_up_is_found(mib_a_minute: float, flat: bool) -> None:
    times = [5.0 * number for number in range(120)]
    rss = [round((100 + min(time, 100) / 4 + mib_a_minute * time / 60) * MIB) for time in times]
    found = judge(0, times, rss, [time / 2 for time in times])
    assert found.flat is flat
    assert found.rise_mib_a_minute == pytest.approx(mib_a_minute, abs=0.2)
    assert found.cpu == pytest.approx(0.5)


def rows(*packets: tuple[int, int, int]) -> np.ndarray:
    return np.array(packets, np.int64).reshape(-1, 3)


SENT = rows((100, 60, 0), (160, 40, 1))
PACKETS = ((100, 50, 5), (150, 30, 6), (180, 20, 7))


def test_packets_account_for_all_messages() -> None:
    early = rows((90, 5, 1), *PACKETS)
    found = account_by_bundle({0: rows(*PACKETS), 1: early}, SENT, 6, 100)
    assert found == (100, 0, 50, []), "a probe from before does not count"


def test_a_packet_that_one_receiver_lacks_is_lost() -> None:
    found = account_by_bundle({0: rows(*PACKETS), 1: rows(PACKETS[0], PACKETS[2])}, SENT, 0, 100)
    assert (found.lost, found.within, found.violations) == (30, 70, [])


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        ((PACKETS[0], PACKETS[2], PACKETS[1]), "host 1 after"),
        ((*PACKETS, PACKETS[0]), "twice"),
        (((100, 60, 5), *PACKETS[1:]), "twice"),
        ((*PACKETS, (200, 9, 8)), "nobody sent"),
    ],
    ids=["disorder", "a copy", "shared messages", "made up"],
)
def test_what_is_wrong_is_told(other: tuple[tuple[int, int, int], ...], complaint: str) -> None:
    found = account_by_bundle({0: rows(*PACKETS), 1: rows(*other)}, SENT, 0, 100)
    assert any(complaint in text for text in found.violations), found.violations


def test_where_nothing_was_sent_there_is_nothing_to_find() -> None:
    assert account_by_bundle({0: rows()}, rows(), 0, 1) == (0, 0, 0, [])
