"""Limits and what happens at them, errors, explanations, and the parts on their own."""

from typing import cast

import pytest

from ordercast.catalogue import find_protocol
from ordercast.components.consensus import ConsensusOptions, Replica
from ordercast.components.consensus.messages import Accept, Accepted
from ordercast.core import Deployment, LocalError, Message, Options, RemoteError, message_name
from ordercast.core.bundle import unpack
from ordercast.protocols.atomic_multicast import PROTOCOL, AtomicMulticastOptions, deploy
from ordercast.protocols.atomic_multicast.ledger import LIVES_MAX, Ledger
from ordercast.protocols.atomic_multicast.limits import CLOCKS_AHEAD_MAX, Limits
from ordercast.protocols.atomic_multicast.messages import (
    Command,
    Final,
    Request,
    Settled,
    Timestamp,
    decode_command,
    encode_command,
)
from ordercast.protocols.atomic_multicast.proposer import Proposer
from ordercast.protocols.atomic_multicast.queue import Entry, Queue
from tests.atomic_multicast.lab import Lab


def test_it_is_found_by_name() -> None:
    assert find_protocol("atomic_multicast") is PROTOCOL


def test_groups_must_be_disjoint() -> None:
    with pytest.raises(LocalError, match="disjoint groups, but receiver 1 is in 0 and 1"):
        deploy(Deployment(((0, 1), (1, 2))), AtomicMulticastOptions())


def test_options_are_its_own_and_make_sense() -> None:
    with pytest.raises(LocalError, match="AtomicMulticastOptions, not Options"):
        deploy(Deployment.disjoint(1, 3, 1), Options())
    with pytest.raises(LocalError, match="must be positive"):
        AtomicMulticastOptions(window=0)
    with pytest.raises(LocalError, match="at least as large as window"):
        AtomicMulticastOptions(window=5, backlog=4)


def test_clients_share_hosts_where_asked() -> None:
    deployment = Deployment.disjoint(2, 3, 8, colocated=True)
    plan = deploy(deployment, AtomicMulticastOptions())
    assert [node.host for node in plan.nodes] == [*range(6), *range(6), 0, 1]
    assert {node.role for node in plan.nodes} == {"receiver", "client"}


@pytest.mark.parametrize("groups", [(), (1, 0), (0, 0), (7,), (0, 7)])
def test_bad_destinations_are_the_callers_fault(groups: tuple[int, ...]) -> None:
    lab = Lab(groups=2)
    with pytest.raises(LocalError):
        lab.client().submit(groups, b"x")


def test_a_payload_has_a_limit() -> None:
    with pytest.raises(LocalError, match="the limit is"):
        Lab().client().submit((0,), b"x" * ((1 << 20) + 1))


def test_the_window_fills_and_empties() -> None:
    lab = Lab(options=AtomicMulticastOptions(window=4))
    assert [lab.client().submit((0,), b"x") for _ in range(5)] == [True] * 4 + [False]
    lab.run_ms(1)
    assert lab.client().submit((0,), b"x")


def test_the_backlog_fills_when_a_group_does_not_settle() -> None:
    lab = Lab(groups=2, options=AtomicMulticastOptions(window=2, backlog=6))
    lab.drop = lambda source, to, message: (
        isinstance(message, Settled) or (isinstance(message, Timestamp) and bool(message.settled))
    )
    taken = 0
    for _ in range(20):
        taken += lab.client().submit((0, 1), b"x")
        lab.run_ms(3)
    assert taken < 8
    lab.drop = lambda source, to, message: False
    lab.run_ms(1500)
    assert lab.client().submit((0, 1), b"x")


def test_a_full_log_queues_requests_and_then_drops_them() -> None:
    options = AtomicMulticastOptions(queue=3, consensus=ConsensusOptions(window=1))
    lab = Lab(options=options)
    for _ in range(30):
        lab.submit((0,))
    lab.run_ms(5)
    assert 3 <= len(lab.orders[0]) < 30
    lab.run_ms(6000)
    assert len(lab.orders[0]) == 30


def test_early_finals_beyond_the_limit_are_made_up_for() -> None:
    lab = Lab(groups=2, options=AtomicMulticastOptions(early=1))
    lab.drop = lambda source, to, message: isinstance(message, Accept) and to == 1
    for _ in range(5):
        lab.submit((0, 1))
    lab.run_ms(2)
    assert len(lab.receiver(1)._early) == 1
    lab.drop = lambda source, to, message: False
    lab.run_ms(300)
    assert lab.orders[1] == lab.orders[0]
    assert len(lab.orders[1]) == 5


def test_what_no_client_sends_is_refused() -> None:
    limits = Limits({0: (0,), 1: (1,), 2: (2,)}, (9,), 4)
    limits.check_request(Request(9, 0, 3, 3, (0, 2), b""), 2, 0)
    for groups in ((0,), (2, 0), (2, 2), (2, 9)):
        with pytest.raises(RemoteError):
            limits.check_request(Request(9, 0, 3, 3, groups, b""), 2, 0)
    with pytest.raises(RemoteError, match="request 3 is not one of 4 from its floor 4 on"):
        limits.check_request(Request(9, 0, 3, 4, (2,), b""), 2, 0)


YEAR = 366 * 86_400 * 10**9
FAR = CLOCKS_AHEAD_MAX + 5

IMPLAUSIBLE: dict[str, tuple[int, Message]] = {
    "a request of no client": (3, Request(2, 0, 0, 0, (0,), b"")),
    "a request of a node that is not there": (3, Request(99, 0, 0, 0, (0,), b"")),
    "a life that has not begun": (3, Request(3, 2 * YEAR, 0, 0, (0,), b"")),
    "a number far above its floor": (3, Request(3, 0, 1024, 0, (0,), b"")),
    "a number that no client reaches": (3, Request(3, 0, 2**60, 2**60, (0,), b"")),
    "a final number far ahead": (3, Final(3, 0, 0, FAR, 0)),
    "a final number of no group": (3, Final(3, 0, 0, 1, 7)),
    "a final number of no client": (3, Final(1, 0, 0, 1, 0)),
    "a timestamp far ahead": (1, Timestamp(3, 0, 0, 0, FAR)),
    "a timestamp of another group": (1, Timestamp(3, 0, 0, 1, 1)),
}


@pytest.mark.parametrize("what", IMPLAUSIBLE)
def test_what_no_correct_peer_claims_is_refused_and_changes_nothing(what: str) -> None:
    source, message = IMPLAUSIBLE[what]
    lab = Lab()
    lab.submit((0,))
    lab.run_ms(2)
    before = lab.receiver(0)._snapshot()
    with pytest.raises(RemoteError):
        lab.receiver(0).on_message(source, message)
    assert lab.receiver(0)._snapshot() == before
    lab.submit((0,))
    lab.run_ms(2)
    assert lab.orders == {node: ["3#0", "3#1"] for node in range(3)}


def test_a_client_believes_no_timestamp_far_ahead() -> None:
    lab = Lab()
    lab.drop = lambda source, to, message: isinstance(message, Timestamp)
    lab.submit((0,))
    lab.run_ms(1)
    lab.drop = lambda source, to, message: False
    with pytest.raises(RemoteError, match="far above the highest so far"):
        lab.client().on_message(0, Timestamp(3, 0, 0, 0, FAR))
    lab.run_ms(60)
    assert lab.orders == {node: ["3#0"] for node in range(3)}


@pytest.mark.parametrize(
    "value",
    [
        b"nonsense",
        encode_command(Command(FAR, (), None)),
        encode_command(Command(0, (), Request(99, 0, 0, 0, (0,), b"of nobody"))),
        encode_command(Command(0, (), Request(3, 0, 0, 0, (0, 9), b"to no group"))),
        encode_command(Command(0, (((3, 0, 0), (FAR, 0)),), None)),
    ],
)
def test_a_command_that_no_correct_leader_proposes_is_obeyed_by_nobody(value: bytes) -> None:
    lab = Lab()
    assert lab.receiver(0)._replica.propose(value)
    lab.run_ms(20)
    lab.submit((0,))
    lab.run_ms(5)
    assert lab.orders == {node: ["3#0"] for node in range(3)}
    assert [lab.receiver(node)._ledger.clock for node in range(3)] == [1, 1, 1]
    assert [lab.receiver(node).explain().state["commands refused"] for node in range(3)] == [1, 1, 1]


def test_an_impossible_final_is_refused() -> None:
    lab = Lab()
    lab.drop = lambda source, to, message: isinstance(message, Final)
    lab.submit((0,))
    lab.run_ms(1)
    with pytest.raises(RemoteError, match="final"):
        lab.receiver(1)._on_final(3, Final(3, 0, 0, 9, 0))


# Explanations.


def test_a_client_names_the_groups_that_have_not_answered() -> None:
    lab = Lab(groups=2)
    lab.drop = lambda source, to, message: to == 3
    lab.submit((0, 1))
    lab.submit((1,))
    lab.run_ms(1)
    assert lab.waits(6) == [
        ("bundle 6.0 (life 0)", "a timestamp from group 1"),
        ("bundle 6.1 (life 0)", "a timestamp from group 1"),
    ]


def test_a_receiver_names_what_blocks_and_what_is_blocked() -> None:
    lab = Lab(groups=2)
    lab.drop = lambda source, to, message: to in (3, 4, 5)
    lab.submit((0, 1))
    lab.submit((0,))
    lab.run_ms(1)
    assert lab.waits(1) == [
        ("bundle 6.0 (life 0)", "the final timestamp from node 6"),
        (
            "bundle 6.1 (life 0)",
            "bundle 6.0 (life 0) at (1, 0), which may come first; its final timestamp is not known",
        ),
    ]
    lab.run_ms(60)
    asked = "a timestamp from group 1, asked for in place of the client"
    assert ("bundle 6.0 (life 0)", asked) in lab.waits(0)


def test_client_and_receiver_give_the_payload_while_they_hold_it() -> None:
    lab = Lab(groups=2)
    lab.drop = lambda source, to, message: to in (3, 4, 5)
    lab.submit((0, 1))
    lab.run_ms(1)
    for process in (lab.client(), lab.receiver(1)):
        (wait,) = process.explain().waits
        assert wait.payload is not None
        assert [message_name(item.message) for item in unpack(wait.payload)] == ["6#0"]
    lab.drop = lambda source, to, message: isinstance(message, Settled)
    lab.run_ms(60)
    assert lab.orders[1] == ["6#0"]
    assert [wait.payload for wait in lab.client().explain().waits] == [None]


def test_a_receiver_names_the_clock_that_is_behind() -> None:
    lab = Lab(groups=2)
    for _ in range(3):
        lab.submit((0,))
    lab.run_ms(1)
    lab.submit((0, 1))
    lab.run_ms(0.22)
    lab.drop = lambda source, to, message: isinstance(message, Accepted)
    lab.run_ms(1)
    assert (
        "bundle 6.3 (life 0)",
        "the group's clock, which is at 1, to reach the final timestamp (4, 0)",
    ) in lab.waits(3)
    assert ("slot 1", "an acknowledgement from nodes 4, 5") in lab.waits(3)
    state = lab.receiver(3).explain().state
    assert (state["group"], state["clock"], state["consensus role"]) == (1, 1, "leader")


# The parts on their own.


def request(number: int, floor: int = 0, epoch: int = 0) -> Request:
    return Request(5, epoch, number, floor, (0,), b"")


def test_the_ledger_remembers_from_the_floor_on() -> None:
    ledger = Ledger()
    assert [ledger.order(request(number)) for number in (0, 2, 1)] == [1, 2, 3]
    assert ledger.find((5, 0, 2)) == 2
    ledger.pass_clock(10)
    assert ledger.order(request(7, floor=2)) == 11
    assert ledger.find((5, 0, 1)) is None
    assert ledger.knows((5, 0, 1)) and ledger.knows((5, 0, 2)) and not ledger.knows((5, 0, 6))
    assert not ledger.knows((5, 1, 1))
    ledger.order(request(1 << 60, floor=1 << 60))
    assert ledger.lives[5][0].clocks == {1 << 60: 12}
    ledger.pass_clock(3)
    assert ledger.clock == 12


def test_the_ledger_forgets_the_oldest_lives() -> None:
    ledger = Ledger()
    for epoch in range(LIVES_MAX + 5):
        ledger.order(request(0, epoch=epoch))
    assert len(ledger.lives[5]) == LIVES_MAX
    assert ledger.knows((5, 4, 99)) and not ledger.knows((5, 5, 99))


def entry(number: int, clock: int, final: tuple[int, int] | None) -> Entry:
    return Entry((5, 0, number), (0, 1), b"", (clock, 0), True, final)


def test_the_queue_goes_by_final_numbers_and_waits_for_the_clock() -> None:
    queue = Queue()
    one, two, three = entry(1, 1, (5, 1)), entry(2, 2, None), entry(3, 3, (3, 0))
    for item in (one, two, three):
        queue.add(item)
    assert queue.take(9) == []
    assert queue.first() is two
    two.final = (4, 1)
    assert queue.take(4) == [three, two]
    assert queue.take(4) == []
    assert queue.take(5) == [one]
    assert queue.entries == {}
    assert queue.delivered == (5, 1)


def test_the_queue_skips_what_an_earlier_life_delivered() -> None:
    queue = Queue()
    queue.delivered = (4, 1)
    for number, clock in ((1, 3), (2, 5)):
        queue.add(entry(number, clock, (clock, 0)))
    assert [item.key[2] for item in queue.take(9)] == [2]


class FakeReplica:
    """A log that only notes what is proposed."""

    def __init__(self) -> None:
        self.is_leader = True
        self.ballot = 0
        self.in_flight = 0
        self.room = 1000
        self.proposed: list[Command] = []

    def propose(self, value: bytes) -> bool:
        if not self.is_leader or self.room == 0:
            return False
        self.room -= 1
        self.in_flight += 1
        self.proposed.append(decode_command(value))
        return True


def test_a_new_leadership_proposes_again_what_the_old_one_may_have_lost() -> None:
    replica = FakeReplica()
    proposer = Proposer(cast(Replica, replica), 10)
    key = (5, 0, 0)
    proposer.note_final((5, 0, 9), (4, 1))
    for _ in range(2):
        assert proposer.leads()
        proposer.enqueue(key, request(0), None)
        proposer.push(0)
    assert [(c.hint, c.settles) for c in replica.proposed] == [(4, (((5, 0, 9), (4, 1)),))]
    replica.is_leader = False
    assert not proposer.leads()
    replica.is_leader, replica.ballot = True, 3
    assert proposer.leads()
    proposer.enqueue(key, request(0), 7)
    proposer.push(0)
    assert replica.proposed[0] == replica.proposed[1]
    assert proposer.done(key) == [7]


def test_what_a_full_log_refuses_is_proposed_later_and_whole() -> None:
    replica = FakeReplica()
    proposer = Proposer(cast(Replica, replica), 10)
    replica.room = 0
    proposer.note_final((5, 0, 8), (3, 1))
    proposer.note_final((5, 0, 9), (4, 1))
    proposer.settle_now((5, 0, 8))
    proposer.push(0)
    assert replica.proposed == []
    replica.room = 5
    proposer.push(0)
    (command,) = replica.proposed
    assert command.hint == 4
    assert [key for key, _ in command.settles] == [(5, 0, 8), (5, 0, 9)]
    proposer.settle_now((5, 0, 8))
    proposer.push(4)
    assert len(replica.proposed) == 1, "under way already"
