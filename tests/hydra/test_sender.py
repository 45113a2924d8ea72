"""Hydra's senders (sections 3.2 and 5): which sequencer a message goes to."""

from collections import Counter
from typing import Literal, get_args

import pytest

from ordercast.core import MICROSECOND, Groups, LocalError, NodeId
from ordercast.protocols.hydra.messages import Announce, Echo, Fetch, Probe, Request
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.sender import Sender
from tests.hydra.lab import CLIENT, LEADER, QUIET, SERVICE, Bench, active, sender

Route = Literal["random", "hash", "congestion", "sticky"]
ROUTES: tuple[Route, ...] = get_args(Route)


def informed(route: Route, *sequencers: int, me: NodeId = CLIENT) -> Bench[Sender]:
    """A sender that knows these sequencers."""
    lab = sender(HydraOptions(route=route), me)
    lab.receive(LEADER, Announce(0, active(*sequencers), None, None))
    lab.take_sent()
    return lab


def requests(lab: Bench[Sender], groups: Groups = (0,), count: int = 1) -> list[tuple[NodeId, Request]]:
    """Submit so many, and take what is sent."""
    for _ in range(count):
        assert lab.process.submit(groups, b"x")
    return [(to, message) for to, message in lab.take_sent() if isinstance(message, Request)]


def used(lab: Bench[Sender], groups: Groups = (0,), count: int = 200) -> Counter[NodeId]:
    """How often each node is sent to."""
    return Counter(to for to, _ in requests(lab, groups, count))


def test_until_it_knows_a_sequencer_it_asks_and_takes_nothing() -> None:
    lab = sender()
    assert lab.started == [(node, Fetch(0)) for node in SERVICE]
    assert not lab.process.submit((0,), b"x")
    assert lab.waits() == [("all messages", "a sequencer; none is known to be alive", 0)]
    lab.pass_time(QUIET.announce_ns)
    assert lab.take_sent() == [(node, Fetch(0)) for node in SERVICE]
    lab.receive(LEADER, Announce(0, active(1), None, None))
    assert lab.process.submit((0,), b"x")
    assert lab.waits() == []


def test_a_request_names_the_life_of_the_sequencer_and_a_number_of_its_own() -> None:
    lab = informed("random", 5)
    made = [message for _, message in requests(lab, (0, 2), 3)]
    assert {(m.sequencer, m.groups, m.payload) for m in made} == {(5, (0, 2), b"x")}
    numbers = [m.number for m in made]
    assert numbers == sorted(set(numbers))


def test_a_later_life_of_a_sender_uses_higher_numbers() -> None:
    lab = informed("random", 1)
    _, first = requests(lab, count=10)[-1]
    lab.env.now = 5_000
    again = Sender(lab.env, {0: (3,)}, SERVICE, HydraOptions(route="random"))
    again.on_start({})
    again.on_message(LEADER, Announce(0, active(1), None, None))
    lab.take_sent()
    again.submit((0,), b"y")
    ((_, second),) = lab.take_sent()
    assert isinstance(second, Request)
    assert second.number > first.number


def test_the_random_route_uses_all_sequencers_about_evenly() -> None:
    counts = used(informed("random", 1, 2, 3, 4), count=400)
    assert set(counts) == {21, 22, 23, 24}
    assert min(counts.values()) > 60


def test_the_hash_route_sends_a_flow_one_way() -> None:
    lab = informed("hash", 1, 2, 3, 4)
    assert len(used(lab, (0,))) == 1
    assert len(used(lab, (1,))) == 1
    flows = {node for me in range(60, 80) for node in used(informed("hash", 1, 2, 3, 4, me=me), count=1)}
    assert flows == {21, 22, 23, 24}, "different senders are spread"


def test_the_sticky_route_stays_with_one_sequencer_for_a_while() -> None:
    lab = informed("sticky", 1, 2, 3)
    chosen = []
    for _ in range(60):
        (node,) = used(lab, count=20)
        chosen.append(node)
        lab.pass_time(lab.process._options.stick_ns // 2)
    assert chosen[::2] == chosen[1::2], "a while is over with every second look"
    assert set(chosen) == {21, 22, 23}


def elsewhere(lab: Bench[Sender], avoid: int = 0, count: int = 50) -> set[int]:
    """The sequencers of so many calls that avoid one."""
    return {lab.process.submit_elsewhere((0,), b"x", avoid) for _ in range(count)}


def test_first_attempts_of_calls_follow_the_route() -> None:
    assert elsewhere(informed("random", 1, 2, 3)) == {1, 2, 3}
    assert len(elsewhere(informed("hash", 1, 2, 3))) == 1
    assert len(elsewhere(informed("sticky", 1, 2, 3))) == 1


@pytest.mark.parametrize("route", ROUTES)
def test_a_call_that_is_sent_again_goes_elsewhere(route: Route) -> None:
    for avoid in (1, 2, 3):
        assert avoid not in elsewhere(informed(route, 1, 2, 3), avoid)
    assert elsewhere(informed(route, 2), avoid=2) == {2}


def test_the_sticky_route_leaves_a_sequencer_that_did_not_answer() -> None:
    lab = informed("sticky", 1, 2, 3)
    (deaf,) = elsewhere(lab)
    (other,) = elsewhere(lab, avoid=deaf)
    assert elsewhere(lab) == {other} and other != deaf


@pytest.mark.parametrize("route", ROUTES)
def test_a_sequencer_that_is_gone_is_not_used(route: Route) -> None:
    lab = informed(route, 1, 2)
    lab.receive(LEADER, Announce(1, active(2), None, None))
    assert set(used(lab)) == {22}
    lab.receive(LEADER, Announce(0, active(1, 2), None, None))
    assert set(used(lab)) == {22}, "old news changes nothing"
    lab.receive(LEADER, Announce(2, (), None, None))
    assert not lab.process.submit((0,), b"x")


@pytest.mark.parametrize("route", ROUTES)
def test_a_sequencer_that_is_called_silent_is_left_alone_until_it_is_not(route: Route) -> None:
    lab = informed(route, 1, 2)
    lab.receive(LEADER, Announce(0, active(1, 2), None, None, silent=(2,)))
    assert set(used(lab, (1,))) == {21}
    lab.receive(LEADER, Announce(0, active(1, 2), None, None))
    found: set[NodeId] = set()
    for groups in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        lab.env.now += HydraOptions().stick_ns
        found |= set(used(lab, groups))
    assert found == {21, 22}


def test_where_all_are_silent_nothing_is_taken() -> None:
    lab = informed("random", 1, 2)
    lab.receive(LEADER, Announce(0, active(1, 2), None, None, silent=(1, 2)))
    assert not lab.process.submit((0,), b"x")
    assert lab.waits()[0][1] == "a sequencer; none is known to be alive"


def test_the_congestion_route_avoids_the_slow_one() -> None:
    lab = informed("congestion", 1, 2, 3)
    assert lab.process.submit((0,), b"x")
    assert [to for to, message in lab.take_sent() if isinstance(message, Probe)] == [21, 22, 23]
    sent_at = lab.env.now
    for node, trip in ((21, 20), (22, 90), (23, 30)):
        lab.env.now = sent_at + trip * MICROSECOND
        lab.receive(node, Echo(sent_at))
    assert set(used(lab)) == {21, 23}


def test_the_congestion_route_comes_back_when_the_way_is_clear_again() -> None:
    lab = informed("congestion", 1, 2)
    lab.env.now = 100_000
    lab.receive(21, Echo(90_000))
    lab.receive(22, Echo(10_000))
    assert set(used(lab)) == {21}
    for _ in range(6):
        lab.receive(22, Echo(90_000))
    assert set(used(lab)) == {21, 22}


def test_the_congestion_route_avoids_one_that_does_not_answer() -> None:
    lab = informed("congestion", 1, 2)
    for _ in range(8):
        assert lab.process.submit((0,), b"x")
        lab.pass_time(lab.process._options.probe_ns)
        lab.receive(21, Echo(lab.env.now - 10))
        lab.take_sent()
    assert set(used(lab)) == {21}


def test_the_congestion_route_measures_only_while_messages_are_sent() -> None:
    lab = informed("congestion", 1, 2)
    lab.pass_time(10 * lab.process._options.probe_ns)
    assert lab.take_sent() == []
    for _ in range(3):
        requests(lab)
        lab.pass_time(lab.process._options.probe_ns)
    lab.take_sent()
    lab.pass_time(10 * lab.process._options.probe_ns)
    assert len(lab.take_sent()) <= 2, "it measures once more at most"


def test_the_congestion_route_measures_again_and_again_while_messages_are_sent() -> None:
    lab = informed("congestion", 1, 2)
    probes = 0
    for _ in range(5):
        assert lab.process.submit((0,), b"x")
        lab.pass_time(lab.process._options.probe_ns)
        probes += sum(isinstance(message, Probe) for _, message in lab.take_sent())
    assert probes >= 10


@pytest.mark.parametrize("groups", [(), (1, 0), (0, 0), (7,), (0, 7)])
def test_bad_destinations_are_the_callers_fault(groups: tuple[int, ...]) -> None:
    lab = informed("random", 1)
    with pytest.raises(LocalError):
        lab.process.submit(groups, b"x")
    assert lab.take_sent() == []
