"""Hydra section 7.1: the steps of atomic multicast, and what each message costs."""

import pytest

from ordercast.components.consensus.messages import Accept
from ordercast.protocols.atomic_multicast.messages import Final, Request, Timestamp, decode_command
from tests.atomic_multicast.lab import Lab

HOP_MS = 0.05


def test_the_steps_and_the_messages_of_one_multicast_to_one_group() -> None:
    lab = Lab()
    lab.run_ms(1)
    lab.arrivals.clear()
    lab.submit((0,))
    lab.run_ms(1)
    leader, follower, client = lab.counts(0), lab.counts(1), lab.counts(3)
    # "a client first sends the message to all the receivers in each destination group"
    assert leader["Request"] == follower["Request"] == 1
    # "Receivers in each group run a consensus round to agree on a message timestamp"
    assert (follower["Accept"], leader["Accepted"], follower["Commit"]) == (1, 2, 1)
    # "and send the group timestamp to the client"
    assert client == {"Timestamp": 1}
    # "... and forwards the message number to all involved group receivers"
    assert leader["Final"] == follower["Final"] == 1
    assert leader.total() == 4 and follower.total() == 4
    assert lab.orders == {0: ["3#0"], 1: ["3#0"], 2: ["3#0"]}


def test_delivery_takes_five_message_delays() -> None:
    lab = Lab()
    lab.submit((0,))
    lab.run_ms(5 * HOP_MS - 0.001)
    assert lab.orders[0] == []
    lab.run_ms(0.002)
    assert lab.orders == {node: ["3#0"] for node in range(3)}


def test_under_load_commit_notices_cost_nothing() -> None:
    lab = Lab(clients=4)
    lab.run_ms(1)
    lab.arrivals.clear()
    for number in range(200):
        lab.submit((0,), number % 4)
        lab.run_ms(0.01)
    lab.run_ms(2)
    leader, follower = lab.counts(0), lab.counts(1)
    assert leader["Request"] == leader["Final"] == 200
    assert leader["Accepted"] == 400
    assert leader.total() <= 200 * 4
    assert follower["Accept"] == 200
    assert follower["Commit"] <= 5
    assert all(len(order) == 200 for order in lab.orders.values())


def test_the_highest_timestamp_is_the_final_number_in_all_groups() -> None:
    lab = Lab(groups=2)
    for _ in range(3):
        lab.submit((0,))
    lab.run_ms(2)
    lab.arrivals.clear()
    lab.submit((0, 1))
    lab.run_ms(2)
    stamps = {m.group: m.clock for _, _, m in lab.arrivals if isinstance(m, Timestamp)}
    finals = {(m.clock, m.group) for _, _, m in lab.arrivals if isinstance(m, Final)}
    assert stamps == {0: 4, 1: 1}
    assert finals == {(4, 0)}
    places = {(clock, group) for _, name, clock, group in lab.deliveries() if name == "6#3"}
    assert places == {(4, 0)}


def test_only_the_groups_of_a_message_take_part() -> None:
    lab = Lab(groups=3)
    lab.run_ms(1)
    lab.arrivals.clear()
    lab.submit((0, 2))
    lab.run_ms(2)
    assert lab.counts(3).total() == lab.counts(4).total() == 0
    assert lab.orders[3] == []


def test_an_extra_command_is_made_only_where_the_clock_is_behind() -> None:
    lab = Lab(groups=2)
    for _ in range(3):
        lab.submit((0,))
    lab.run_ms(2)
    lab.arrivals.clear()
    lab.submit((0, 1))
    lab.run_ms(2)
    commands = [(to // 3, decode_command(m.value)) for _, to, m in lab.arrivals if isinstance(m, Accept)]
    extra = [(group, c.hint) for group, c in commands if c.request is None]
    assert extra == [(1, 4), (1, 4)]  # group 1 alone, one copy for each follower


def test_the_clock_rides_on_the_next_message_when_one_is_under_way() -> None:
    lab = Lab(groups=2, clients=2)
    for _ in range(300):
        lab.submit((0,), 0)
        lab.submit((0, 1), 1)
        lab.run_ms(0.02)
    lab.run_ms(5)
    accepts = [m for _, to, m in lab.arrivals if isinstance(m, Accept) and to == 4]
    extra = [m for m in accepts if decode_command(m.value).request is None]
    assert len(extra) < 40
    assert len(lab.orders[3]) == 300
    assert lab.orders[3] == [name for name in lab.orders[0] if name.startswith("7#")]


def test_settling_rides_along_and_lets_the_groups_forget() -> None:
    lab = Lab(groups=2)
    for _ in range(500):
        lab.submit((0, 1))
        lab.run_ms(0.3)
    assert lab.clocks_kept(0) < 10
    repeated = [m for _, _, m in lab.arrivals if isinstance(m, Request | Final) and m.again]
    assert repeated == []
    lab.run_ms(400)
    lab.submit((0, 1))
    lab.run_ms(1)
    assert lab.clocks_kept(0) == lab.clocks_kept(3) == 1


@pytest.mark.parametrize("receivers", [1, 2, 3, 4, 5])
def test_groups_of_any_size(receivers: int) -> None:
    lab = Lab(groups=2, receivers=receivers, clients=2)
    for number in range(20):
        lab.submit(((0,), (1,), (0, 1))[number % 3], number % 2)
        lab.run_ms(0.05)
    lab.run_ms(5)
    first, second = lab.orders[0], lab.orders[receivers]
    assert all(lab.orders[node] == first for node in range(receivers))
    assert all(lab.orders[node] == second for node in range(receivers, 2 * receivers))
    common = [name for name in first if name in second]
    assert common == [name for name in second if name in first]
    assert len(common) == 6
