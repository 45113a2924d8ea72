"""A client or a leader that stops in each phase, lost packets, duplicates, restarts."""

from collections.abc import Callable

import pytest

from ordercast.components.consensus import ConsensusOptions
from ordercast.components.consensus.messages import Accept, Accepted, Commit
from ordercast.core import Message, NodeId
from ordercast.protocols.atomic_multicast import AtomicMulticastOptions
from ordercast.protocols.atomic_multicast.ledger import Ledger
from ordercast.protocols.atomic_multicast.messages import Final, Request, Settled, Timestamp
from ordercast.protocols.atomic_multicast.queue import Entry
from ordercast.protocols.atomic_multicast.snapshot import Snapshot, encode_snapshot
from tests.atomic_multicast.lab import Drop, Lab

SMALL = AtomicMulticastOptions(consensus=ConsensusOptions(checkpoint=3, log_limit=100))


def kind(types: type[Message] | tuple[type[Message], ...], *targets: NodeId) -> Drop:
    """Loses what is of these types, at these nodes or everywhere."""
    return lambda source, to, message: isinstance(message, types) and (not targets or to in targets)


def agreed(lab: Lab, name: str, nodes: tuple[NodeId, ...]) -> bool:
    return all(lab.orders[node].count(name) == 1 for node in nodes)


# The client stops. Nodes 0 to 2 are group 0, nodes 3 to 5 are group 1, node 6 is the client.

CLIENT_STOPS: dict[str, Drop] = {
    "before the other group has the message": kind(Request, 3, 4, 5),
    "before both timestamps are there": kind(Timestamp, 6),
    "with one of the timestamps": lambda s, to, m: isinstance(m, Timestamp) and to == 6 and m.group == 1,
    "before any final number arrives": kind(Final),
    "when one group has the final number": kind(Final, 3, 4, 5),
    "when one receiver has the final number": kind(Final, 0, 1, 2, 3, 5),
}


@pytest.mark.parametrize("phase", CLIENT_STOPS)
def test_receivers_go_on_when_the_client_stops(phase: str) -> None:
    lab = Lab(groups=2, clients=2)
    lab.drop = CLIENT_STOPS[phase]
    lab.submit((0, 1))
    lab.run_ms(1)
    lab.world.crash(6)
    lab.drop = lambda source, to, message: False
    lab.submit((0,), 1)
    lab.submit((0, 1), 1)
    lab.run_ms(200)
    assert agreed(lab, "6#0", (0, 1, 2, 3, 4, 5))
    assert agreed(lab, "7#0", (0, 1, 2))
    assert agreed(lab, "7#1", (0, 1, 2, 3, 4, 5))
    common = [[n for n in lab.orders[node] if n != "7#0"] for node in range(6)]
    assert all(order == common[0] for order in common)


def test_a_message_that_no_group_has_logged_is_gone_with_its_client() -> None:
    lab = Lab(groups=2, clients=2)
    lab.drop = kind(Request, 0, 3)
    lab.submit((0, 1))
    lab.run_ms(1)
    lab.world.crash(6)
    lab.drop = lambda source, to, message: False
    lab.submit((0, 1), 1)
    lab.run_ms(300)
    assert all(order == ["7#0"] for order in lab.orders.values())


def test_a_restarted_client_starts_a_new_life() -> None:
    lab = Lab(groups=2)
    lab.submit((0, 1))
    lab.run_ms(0.12)  # proposed, not answered
    lab.world.crash(6)
    lab.world.restart(6)
    lab.submit((0, 1))
    lab.submit((1,))
    lab.run_ms(300)
    assert all(sorted(lab.orders[node]) == ["6#0", "6#1"] for node in (0, 1, 2))
    assert all(sorted(lab.orders[node]) == ["6#0", "6#1", "6#2"] for node in (3, 4, 5))


# The leader of group 0 stops.

LEADER_STOPS: dict[str, Drop] = {
    "before anybody else has the message": kind(Accept),
    "with the message at one follower": kind(Accept, 2, 4, 5),
    "before it knows that followers accepted": kind(Accepted, 0, 3),
    "before the client has the timestamp": kind(Timestamp),
    "before followers know of the commitment": kind((Commit, Final)),
    "before anybody has the final number": kind(Final),
}


@pytest.mark.parametrize("phase", LEADER_STOPS)
@pytest.mark.parametrize("groups", [(0,), (0, 1)])
@pytest.mark.parametrize("returns", [True, False])
def test_the_group_goes_on_when_its_leader_stops(phase: str, groups: tuple[int, ...], returns: bool) -> None:
    lab = Lab(groups=2)
    lab.drop = LEADER_STOPS[phase]
    lab.submit(groups)
    lab.run_ms(1)
    lab.world.crash(0)
    lab.drop = lambda source, to, message: False
    if returns:
        lab.run_ms(30)
        lab.world.restart(0)
    lab.submit((0,))
    lab.run_ms(400)
    expected = ("6#0", "6#1")
    nodes = (0, 1, 2) if returns else (1, 2)
    for name in expected:
        assert agreed(lab, name, nodes)
    assert all(lab.orders[node] == lab.orders[1] for node in nodes)
    if len(groups) == 2:
        assert agreed(lab, "6#0", (3, 4, 5))


def test_both_leaders_stop_with_the_client() -> None:
    lab = Lab(groups=2, clients=2)
    lab.submit((0, 1))
    lab.run_ms(0.18)  # committed at the leaders, not told to anybody
    for host in (0, 3, 6):
        lab.world.crash(host)
    lab.submit((0, 1), 1)
    lab.run_ms(600)
    assert agreed(lab, "7#0", (1, 2, 4, 5))
    assert agreed(lab, "6#0", (1, 2, 4, 5))
    assert len({tuple(lab.orders[node]) for node in (1, 2, 4, 5)}) == 1


# Lost, doubled and late packets.


def test_a_receiver_goes_without_the_final_of_a_message_to_its_group_alone() -> None:
    lab = Lab()
    lab.drop = kind(Final, 1)
    lab.submit((0,))
    lab.run_ms(1)
    assert lab.orders == {0: ["3#0"], 1: [], 2: ["3#0"]}
    assert lab.waits(1) == [("bundle 3.0 (life 0)", "the final timestamp from node 3")]
    lab.run_ms(15)
    assert lab.orders[1] == ["3#0"]


@pytest.mark.parametrize("lost", [(3,), (4,), (3, 4, 5), (0, 1, 2, 3, 4, 5)])
def test_a_lost_final_of_a_message_to_two_groups_is_found_out(lost: tuple[int, ...]) -> None:
    lab = Lab(groups=2)
    lab.drop = kind(Final, *lost)
    lab.submit((0, 1))
    lab.run_ms(1)
    lab.drop = lambda source, to, message: False
    lab.run_ms(200)
    assert agreed(lab, "6#0", (0, 1, 2, 3, 4, 5))


def test_finals_that_never_arrive_from_clients_do_not_stop_anything() -> None:
    lab = Lab(groups=2, clients=2)
    lab.drop = lambda source, to, message: isinstance(message, Final) and source >= 6
    for number in range(30):
        lab.submit(((0,), (0, 1), (1,))[number % 3], number % 2)
        lab.run_ms(3)
    lab.run_ms(500)
    assert len(lab.orders[0]) == len(lab.orders[3]) == 20
    assert all(lab.orders[n] == lab.orders[0] for n in (1, 2))


def test_a_final_before_its_message_is_kept() -> None:
    lab = Lab()
    late: Callable[[NodeId, NodeId, Message], bool] = kind((Accept, Commit), 1)
    lab.drop = late
    lab.submit((0,))
    lab.run_ms(1)
    assert lab.orders[1] == []
    lab.drop = kind(Final)
    lab.run_ms(12)  # fetched by now; patience has not run out
    assert lab.orders[1] == ["3#0"]


def test_duplicates_make_no_difference() -> None:
    lab = Lab(groups=2)
    network = lab.world.network
    network.set_conditions(type(network.conditions)(duplication=1.0, reordering=0.5))
    for number in range(30):
        lab.submit(((0,), (0, 1))[number % 2])
        lab.run_ms(0.5)
    lab.run_ms(100)
    assert len(lab.orders[0]) == len(set(lab.orders[0])) == 30
    assert len(lab.orders[4]) == len(set(lab.orders[4])) == 15


def test_a_request_that_comes_again_is_answered_and_not_ordered_again() -> None:
    lab = Lab()
    lab.drop = kind(Timestamp)
    lab.submit((0,))
    lab.run_ms(1)
    lab.drop = lambda source, to, message: False
    lab.run_ms(30)
    answers = [m for _, to, m in lab.arrivals if isinstance(m, Timestamp)]
    assert {m.clock for m in answers} == {1}
    assert lab.orders == {node: ["3#0"] for node in range(3)}


def test_a_client_that_does_not_reach_the_leader_is_helped_by_a_follower() -> None:
    lab = Lab()
    lab.world.network.blocked.add((3, 0))
    lab.submit((0,))
    lab.run_ms(60)
    assert lab.orders == {node: ["3#0"] for node in range(3)}


def test_lost_reports_of_settling_are_asked_for() -> None:
    lab = Lab(groups=2)
    lab.submit((0, 1))
    lab.run_ms(5)
    assert lab.waits(6) == [("bundle 6.0 (life 0)", "groups 0, 1 to settle the final timestamp (1, 1)")]
    lab.run_ms(300)
    assert any(isinstance(m, Settled) for _, _, m in lab.arrivals)
    assert lab.waits(6) == []
    assert lab.client().explain().state["floor"] == 1


# Restarts of receivers.


@pytest.mark.parametrize("options", [AtomicMulticastOptions(), SMALL])
@pytest.mark.parametrize("node", [0, 1, 4])
def test_a_receiver_that_restarts_delivers_the_rest_and_nothing_twice(
    options: AtomicMulticastOptions, node: int
) -> None:
    lab = Lab(groups=2, clients=2, options=options)
    for number in range(60):
        lab.submit(((0,), (0, 1), (1,))[number % 3], number % 2)
        lab.run_ms(1)
        if number in (20, 40):
            lab.world.crash(node)
        if number in (25, 40):
            lab.world.restart(node)
    lab.run_ms(600)
    for first in (0, 3):
        assert len(lab.orders[first]) == len(set(lab.orders[first])) == 40
        assert lab.orders[first] == lab.orders[first + 1] == lab.orders[first + 2]


def test_everybody_restarts() -> None:
    lab = Lab(groups=2, clients=1, options=SMALL)
    for number in range(20):
        lab.submit(((0,), (0, 1))[number % 2])
        lab.run_ms(0.1)
    for host in range(7):
        lab.world.crash(host)
    for host in range(7):
        lab.world.restart(host)
    lab.run_ms(300)
    lab.submit((0, 1))
    lab.run_ms(300)
    last = lab.orders[0][-1]
    for first in (0, 3):
        assert lab.orders[first][-1] == last
        assert len(lab.orders[first]) == len(set(lab.orders[first]))
        assert lab.orders[first] == lab.orders[first + 1] == lab.orders[first + 2]
    common = [name for name in lab.orders[0] if name in lab.orders[3]]
    assert common == lab.orders[3]


def test_a_restarted_receiver_does_not_wait_for_the_finals_of_its_earlier_life() -> None:
    lab = Lab(options=AtomicMulticastOptions(patience_ns=10_000_000_000))
    for _ in range(10):
        lab.submit((0,))
        lab.run_ms(1)
    lab.world.crash(1)
    lab.world.restart(1)
    lab.run_ms(50)
    lab.submit((0,))
    lab.run_ms(50)
    assert lab.orders[1] == lab.orders[0]
    assert len(lab.orders[1]) == 11


# Settling.


def test_an_idle_group_settles_without_the_client() -> None:
    lab = Lab(groups=2)
    lab.submit((0, 1))
    lab.run_ms(2)
    lab.world.crash(6)
    assert len(lab.receiver(1)._queue.entries) == 1
    lab.run_ms(100)
    assert all(lab.receiver(node)._queue.entries == {} for node in range(6))


def test_a_group_that_is_asked_settles_at_once_and_says_so() -> None:
    options = AtomicMulticastOptions(confirm_ns=10_000_000, recovery_ns=10_000_000_000)
    lab = Lab(groups=2, options=options)
    lab.submit((0, 1))
    lab.run_ms(25)
    assert lab.client().explain().state["floor"] == 1


def test_a_final_of_an_earlier_life_is_settled_in_the_next() -> None:
    lab = Lab(receivers=1, groups=2)
    entry = Entry((9, 0, 0), (0, 1), b"", (1, 0), settled=False, final=(3, 1), delivered=True)
    lab.receiver(0)._restore(encode_snapshot(Snapshot(Ledger(clock=1), [entry])))
    lab.run_ms(100)
    assert lab.receiver(0)._queue.entries == {}
    assert lab.receiver(0)._ledger.clock == 3
