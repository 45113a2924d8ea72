"""Rebirths that are broken on purpose are found: they would make messages come twice, or only to some."""

from collections.abc import Callable

import pytest

from ordercast.core import Message, NodeId
from ordercast.protocols.hydra import HydraOptions
from ordercast.protocols.hydra.messages import Announce, BlindReport, Flush, Groupcast, Report, Revived
from ordercast.protocols.hydra.new_life import ASKING, NewLife
from ordercast.protocols.hydra.registry import Command, Reborn, Registry
from ordercast.protocols.hydra.reports import Reports
from ordercast.scenario.faults import Crash, Disk, Restart
from ordercast.trace import Kind
from tests.hydra.cluster import Cluster

FORGETFUL = 0
OPTIONS = HydraOptions(
    sequencers=1, resend=True, flush="periodic", flush_ns=1_000_000, announce_ns=100_000_000
)
Break = Callable[[pytest.MonkeyPatch], None]


def wipe(cluster: Cluster, node: NodeId) -> None:
    """A receiver crashes and comes back at once, with an empty disk."""
    for fault in (
        Disk(at_ms=0, host=node, what="wiped"),
        Crash(at_ms=0, host=node),
        Restart(at_ms=0, host=node),
    ):
        fault.strike(cluster.world)


def begin_at_once(patch: pytest.MonkeyPatch) -> None:
    """A new life that begins its lanes before the service has taken it in."""

    def begin(life: NewLife) -> None:
        life.state, life._life = ASKING, life._env.now
        life.on_revived(Revived(life._life, 0, 0, 0, 0, 1, ((1, 7),)))

    patch.setattr(NewLife, "begin", begin)


def keep_the_report(patch: pytest.MonkeyPatch) -> None:
    """A service that takes a receiver in again without a step: what the earlier life reported stands."""
    apply = Registry.apply

    def without_step(registry: Registry, command: Command) -> None:
        if isinstance(command, Reborn):
            registry.reborn[command.node] = command.life
        else:
            apply(registry, command)

    patch.setattr(Registry, "apply", without_step)


def wiped_after_its_report() -> Cluster:
    """Only one receiver hears the sequencer. It reports for the removal, loses its state, and is back before
    the others have reported. Then it hears of one more message."""
    cluster = Cluster(OPTIONS)
    (sequencer,), others = cluster.sequencers, set(cluster.receivers) - {FORGETFUL}
    cluster.submit(count=5)
    cluster.run_ms(20)

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        unheard = source == sequencer and to in others
        unaware = isinstance(message, Announce) and to == cluster.sender
        return unheard or unaware or (isinstance(message, Report) and source in others)

    def lost_with_news(source: NodeId, to: NodeId, message: Message) -> bool:
        return lost(source, to, message) or isinstance(message, Announce)

    cluster.drop = lost
    cluster.run_until(lambda: any(type(message) is Report for _, _, message in cluster.arrivals))
    cluster.drop = lost_with_news
    wipe(cluster, FORGETFUL)
    cluster.run_ms(5)
    cluster.submit()
    cluster.run_ms(5)
    assert len(cluster.events(FORGETFUL, Kind.DELIVER)) == 6, "five in the first life, one in the second"
    cluster.drop = lambda source, to, message: False
    cluster.run_ms(600)
    return cluster


def test_what_a_new_life_delivers_is_in_its_report() -> None:
    cluster = wiped_after_its_report()
    assert cluster.violations() == []
    assert [cluster.order(node)[-1] for node in cluster.receivers] == ["6#5"] * 6


@pytest.mark.parametrize("broken", [begin_at_once, keep_the_report])
def test_a_new_life_under_the_report_of_the_earlier_one_is_caught(
    broken: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    found = wiped_after_its_report().violations()
    assert {violation.property for violation in found} >= {"integrity"}
    assert all(FORGETFUL in violation.nodes and "6#5" in violation.detail for violation in found)


def wiped_after_it_delivered() -> Cluster:
    """Two of three receivers have the last message, and one of the two loses its state. The sequencer is
    gone, and the other of the two is slow to report."""
    cluster = Cluster(OPTIONS)
    cluster.submit(count=5)
    cluster.run_ms(20)
    cluster.drop = lambda source, to, message: isinstance(message, Groupcast | Flush) and to > 1
    cluster.submit((0,))
    cluster.run_ms(3)
    assert [len(cluster.order(node)) for node in cluster.receivers] == [6, 6, 5, 5, 5, 5]
    cluster.crash(cluster.sequencers[0])
    cluster.drop = lambda source, to, message: source == 1 and isinstance(message, Report)
    wipe(cluster, FORGETFUL)
    cluster.run_ms(500)
    cluster.drop = lambda source, to, message: False
    cluster.run_ms(500)
    return cluster


def test_a_blind_report_does_not_make_a_quorum() -> None:
    cluster = wiped_after_it_delivered()
    assert any(type(message) is BlindReport for _, _, message in cluster.arrivals)
    assert cluster.violations() == []
    assert cluster.order(2)[-1] == "6#5", "it was told that there is one more, and got it"


def test_a_blind_report_that_counts_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Reports.take

    def take_for_full(reports: Reports, source: NodeId, report: Report | BlindReport) -> None:
        if isinstance(report, BlindReport):
            report = Report(report.step, report.sequencer, 0, (0, 0))
        take(reports, source, report)

    monkeypatch.setattr(Reports, "take", take_for_full)
    found = wiped_after_it_delivered().violations()
    assert {violation.property for violation in found} == {"agreement"}
    assert all(1 in violation.nodes and "6#5" in violation.detail for violation in found)
