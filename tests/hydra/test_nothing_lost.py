"""Hydra whole, with senders that keep: sequencers crash, are deaf or cut off, and no message is lost."""

import json
from pathlib import Path

import msgspec
import pytest

from ordercast.core import Message, NodeId
from ordercast.pipeline.sweep_file import load_sweep
from ordercast.protocols.hydra.messages import Receipt, Report, Stamped
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.scenario.faults import SetClock
from ordercast.scenario.spec import Scenario
from ordercast.sim.run import simulate
from ordercast.trace import REMOVED, Kind
from tests.hydra.cluster import Cluster
from tests.sim.hydra_scenes import SEQUENCER, scene

EVERY_PROTOCOL = Path(__file__).parents[2] / "examples" / "every-protocol.toml"


def lost_of(cluster: Cluster, count: int) -> list[tuple[int, int]]:
    """How many messages each receiver delivered, and how many different ones, where that is not all."""
    found = [(len(order), len(set(order))) for order in map(cluster.order, cluster.receivers)]
    return [one for one in found if one != (count, count)]


def test_the_calm_case_of_the_sweep_of_all_protocols_delivers_everything() -> None:
    calm = {"case": "calm", "network.loss": 0}
    rows = [row for row in load_sweep(EVERY_PROTOCOL).rows if row.protocol == "hydra"]
    scenarios = [row.scenario for row in rows if json.loads(row.parameters).items() >= calm.items()]
    runs = [simulate(msgspec.json.decode(scenario, type=Scenario)) for scenario in scenarios]
    found = [(run.summary().submitted, run.summary().delivered, run.summary().dropped) for run in runs]
    assert found == [(300, 900, 0)] * 5


def test_a_sequencer_that_crashes_takes_no_message_with_it() -> None:
    cluster = Cluster(HydraOptions(resend=True))
    cluster.submit(count=20)
    cluster.crash(cluster.sequencers[0])
    cluster.submit(count=40)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 300)
    cluster.run_ms(200)
    assert lost_of(cluster, 60) == []
    assert cluster.violations() == []


def test_without_it_a_crash_loses_messages() -> None:
    cluster = Cluster(HydraOptions(resend=False))
    cluster.crash(cluster.sequencers[0])
    cluster.submit(count=40)
    cluster.run_ms(500)
    assert lost_of(cluster, 40) != []


def test_a_deaf_sequencer_is_left_and_loses_nothing() -> None:
    cluster = Cluster(HydraOptions(resend=True))
    deaf = cluster.sequencers[0]
    cluster.drop = lambda source, to, message: to == deaf
    cluster.submit(count=40)
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 300)
    cluster.run_ms(200)
    assert lost_of(cluster, 40) == []
    assert cluster.violations() == []


@pytest.mark.parametrize("hours", [1, -1])
@pytest.mark.parametrize("flush", ["adaptive", "nudged"])
def test_a_sequencer_whose_clock_is_an_hour_wrong_delays_nothing_for_long(flush: str, hours: int) -> None:
    options = {"sequencers": 2, "flush": flush, "flush_ns": 100_000}
    wrong = SetClock(at_ms=50, host=SEQUENCER, step_us=hours * 3_600_000_000)
    run = simulate(scene(1, options=options, fault=(wrong,)))
    assert run.violations == [] and run.ending == "settled"
    assert run.summary().delivered > 300


def test_acknowledgements_that_are_lost_do_no_harm() -> None:
    cluster = Cluster(HydraOptions(resend=True))
    dropped = 0

    def drop(source: NodeId, to: NodeId, message: Message) -> bool:
        nonlocal dropped
        dropped += isinstance(message, Stamped)
        return isinstance(message, Stamped) and dropped % 4 != 0

    cluster.drop = drop
    cluster.submit(count=40)
    cluster.run_ms(300)
    assert lost_of(cluster, 40) == []
    assert cluster.configs() == [0] * 6, "no sequencer was removed"


def test_receipts_that_are_lost_for_long_do_not_stop_a_sender() -> None:
    """It may keep little, and takes nothing more before some of that is known to be safe."""
    cluster = Cluster(HydraOptions(resend=True, keep_bytes=2048))
    cluster.drop = lambda source, to, message: isinstance(message, Receipt)
    cluster.submit(count=40)
    cluster.run_ms(1_000)
    assert lost_of(cluster, 40) != []
    cluster.drop = lambda source, to, message: False
    cluster.run_ms(1_000)
    assert lost_of(cluster, 40) == []


def test_what_was_stamped_before_the_crash_comes_once() -> None:
    """The sequencer stamps, but tells its sender nothing; then it crashes."""
    cluster = Cluster(HydraOptions(resend=True))
    cluster.drop = lambda source, to, message: isinstance(message, Stamped)
    cluster.submit(count=40)
    cluster.crash(cluster.sequencers[0])
    cluster.run_until(lambda: cluster.all_pass((REMOVED, 1)), 300)
    cluster.run_ms(300)
    assert lost_of(cluster, 40) == []
    assert cluster.violations() == []


def test_what_a_sequencer_stamps_while_it_is_cut_off_is_not_lost() -> None:
    """Sender and sequencer are on one side, all receivers and the service on the other."""
    cluster = Cluster(HydraOptions(resend=True, sequencers=1, spares=1))
    cut = {cluster.sender, cluster.sequencers[0]}
    cluster.drop = lambda source, to, message: (source in cut) != (to in cut)
    cluster.submit(count=40)
    cluster.run_ms(400)
    assert cluster.order(0) == []
    cluster.drop = lambda source, to, message: False
    cluster.run_ms(400)
    assert lost_of(cluster, 40) == []
    assert cluster.violations() == []


def test_a_receiver_that_does_not_report_makes_the_sender_tell() -> None:
    """Its report never comes, so it may have delivered what no other receiver has."""
    cluster = Cluster(HydraOptions(resend=True))
    cluster.drop = lambda source, to, message: source == 0 and isinstance(message, Report)
    cluster.crash(cluster.sequencers[0])
    cluster.submit(count=40)
    cluster.run_ms(500)
    told = len(cluster.events(cluster.sender, Kind.UNCONFIRMED))
    assert told > 0
    assert lost_of(cluster, 40 - told) == []
    assert cluster.violations() == []
