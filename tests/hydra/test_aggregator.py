"""Hydra section 4.6.2: flushes aggregated in the network, one packet however many sequencers there are."""

from ordercast.core import NodeId
from ordercast.protocols.hydra.aggregator import Aggregator
from ordercast.protocols.hydra.messages import Announce, Fetch, Flush, Flushes, Solicit
from ordercast.protocols.hydra.options import HydraOptions
from tests.hydra.lab import LEADER, SERVICE, Bench, active, aggregator

AGGREGATED = HydraOptions(flush="aggregated", flush_ns=100_000)


def flush(number: int, clock: int, *numbers: int) -> Flush:
    return Flush(number, clock, numbers or (0, 0, 0))


def flushed(lab: Bench[Aggregator]) -> list[tuple[NodeId, list[int]]]:
    """The answers of an aggregator: to whom, and the clocks in them."""
    return [(to, [f.clock for f in m.flushes]) for to, m in lab.take_sent() if isinstance(m, Flushes)]


def test_an_aggregator_answers_when_its_lowest_clock_is_above_the_threshold() -> None:
    lab = aggregator(AGGREGATED)
    lab.receive(0, Solicit(0, 10))
    lab.receive(21, flush(1, 50))
    assert flushed(lab) == [], "nothing is known of sequencer 2"
    lab.receive(22, flush(2, 10))
    assert flushed(lab) == [], "10 is not above 10"
    lab.receive(22, flush(2, 11))
    assert flushed(lab) == [(0, [50, 11])]
    lab.receive(22, flush(2, 12))
    assert flushed(lab) == [], "it is answered once"


def test_an_aggregator_answers_each_receiver_at_its_own_threshold() -> None:
    lab = aggregator(AGGREGATED)
    lab.receive(0, Solicit(0, 10))
    lab.receive(3, Solicit(0, 30))
    lab.receive(5, Solicit(0, 12))
    lab.receive(21, flush(1, 20))
    lab.receive(22, flush(2, 25))
    assert flushed(lab) == [(0, [20, 25]), (5, [20, 25])]
    lab.receive(0, Solicit(0, 5))
    assert flushed(lab) == [(0, [20, 25])], "what is known already is said at once"


def test_an_aggregator_keeps_the_newest_flush_of_each() -> None:
    lab = aggregator(AGGREGATED)
    lab.receive(21, flush(1, 40, 1, 2, 3), flush(1, 30, 9, 9, 9))
    lab.receive(22, flush(2, 45))
    lab.receive(0, Solicit(0, 10))
    ((_, message),) = lab.take_sent()
    assert message == Flushes((flush(1, 40, 1, 2, 3), flush(2, 45)))


def test_an_aggregator_goes_with_the_configuration() -> None:
    lab = aggregator(AGGREGATED)
    assert lab.started == [(node, Fetch(0)) for node in SERVICE]
    lab.receive(0, Solicit(0, 10))
    lab.receive(21, flush(1, 50))
    lab.receive(LEADER, Announce(1, active(1), None, None))
    assert flushed(lab) == [(0, [50])], "sequencer 2 is gone"
    lab.receive(LEADER, Announce(0, active(1, 2), None, None))
    lab.receive(LEADER, Announce(2, active(1, 3), None, None))
    lab.receive(0, Solicit(0, 10))
    assert flushed(lab) == []
    lab.receive(22, flush(2, 99))
    lab.receive(23, flush(3, 60))
    assert flushed(lab) == [(0, [50, 60])]


def test_an_aggregator_explains_for_whom_it_waits() -> None:
    lab = aggregator(AGGREGATED)
    lab.env.now = 5
    lab.receive(21, flush(1, 50))
    lab.receive(4, Solicit(0, 10))
    assert lab.waits() == [("flush for node 4", "sequencer 2 to pass clock 10", 5)]
