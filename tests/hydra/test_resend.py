"""Senders that keep what they send, and what sequencers, receivers and the service do for them.

A message may be stamped by a second sequencer only if no receiver delivers what the first has stamped.
"""

import pytest

from ordercast.core import MILLISECOND, Groups, Message, NodeId, RemoteError, Unconfirmed, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.protocols.hydra.messages import (
    Announce,
    Echo,
    Fetch,
    Groupcast,
    Inquiry,
    Outcome,
    Plans,
    Probe,
    Receipt,
    Report,
    Request,
    Stamped,
    Step,
    Steps,
    Suspect,
    Welcome,
)
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.sender import Sender
from ordercast.protocols.hydra.sequencer import Sequencer
from ordercast.sim.run import simulate
from tests.hydra.ensemble import EVERYONE, Ensemble
from tests.hydra.lab import (
    CLIENT,
    LEADER,
    MEMBERS,
    SERVICE,
    Bench,
    ReceiverBench,
    active,
    receiver,
    sender,
    sequencer,
)
from tests.sim import mutants_resend

KEEPS = HydraOptions(
    resend=True, flush="periodic", flush_ns=1_000_000, patience_ns=0, repair=False, route="hash"
)
REPEAT_NS = 4 * KEEPS.ack_ns
GONE = Step("removed", 1, 21, 1, 50, (9, 9, 9), complete=True)
GONE_IN_PART = Step("removed", 1, 21, 1, 50, (9, 9, 9), complete=False)


def bundle(number: int = 0) -> bytes:
    return pack_bundle(message_id(CLIENT, number), [0], [b"payload"])


def sent_to(lab: Bench[Sender], kind: type[Message]) -> list[NodeId]:
    return [to for to, message in lab.take_sent() if isinstance(message, kind)]


def one_kept(groups: Groups = (0,), options: HydraOptions = KEEPS) -> tuple[Bench[Sender], Request]:
    """A sender that knows only sequencer 1 and has sent a message to it; then it learns of sequencer 2."""
    lab = sender(options)
    lab.receive(LEADER, Announce(0, active(1), None, None))
    lab.take_sent()
    assert lab.process.submit(groups, bundle())
    ((to, request),) = lab.take_sent()
    assert to == 21 and isinstance(request, Request)
    lab.receive(LEADER, Announce(0, active(1, 2), None, None))
    return lab, request


def removed(lab: Bench[Sender], step: Step = GONE) -> None:
    lab.take_sent()
    lab.receive(LEADER, Announce(1, active(2), None, step))


# Senders


def test_what_is_not_acknowledged_is_repeated_to_the_same_sequencer() -> None:
    lab, request = one_kept()
    for _ in range(3):
        lab.pass_time(REPEAT_NS)
        assert lab.take_sent() == [(21, request)]
    lab.receive(21, Stamped(1, (request.number,), ()))
    lab.pass_time(5 * REPEAT_NS)
    assert lab.take_sent() == []
    assert lab.process.in_doubt == 1, "stamped is not safe"
    lab.pass_time(KEEPS.suspect_ns)
    assert lab.take_sent() == [(21, request)], "that it is safe may have been told and lost"
    lab.receive(21, Stamped(1, (), (request.number,)))
    lab.pass_time(3 * KEEPS.suspect_ns)
    assert lab.take_sent() == []
    assert lab.process.in_doubt == 0


def test_no_other_sequencer_gets_it_while_the_first_is_not_removed() -> None:
    lab, _ = one_kept()
    lab.pass_time(20 * KEEPS.suspect_ns)
    assert set(sent_to(lab, Request)) == {21}
    lab.receive(LEADER, Announce(0, active(1, 2), Plans("removed", 1, 21), None, silent=(1,)))
    lab.pass_time(20 * KEEPS.suspect_ns)
    assert sent_to(lab, Request) == []


def test_a_sequencer_that_acknowledges_nothing_is_avoided_and_complained_of() -> None:
    lab, request = one_kept()
    lab.pass_time(KEEPS.suspect_ns // 2 - REPEAT_NS)
    assert sent_to(lab, Suspect) == []
    lab.pass_time(2 * REPEAT_NS)
    lab.take_sent()
    for _ in range(20):
        assert lab.process.submit((0, 1), bundle(1))
        assert lab.process.submit((2,), bundle(2))
    assert set(sent_to(lab, Request)) == {22}
    lab.pass_time(KEEPS.suspect_ns)
    complaints = [(to, m) for to, m in lab.take_sent() if isinstance(m, Suspect) and 1 in m.sequencers]
    assert {to for to, _ in complaints} == set(SERVICE)
    lab.receive(21, Stamped(1, (request.number,), ()))
    lab.pass_time(REPEAT_NS)
    lab.take_sent()
    for group in range(3):
        for other in range(3):
            if group < other:
                lab.process.submit((group, other), bundle(3))
    assert 21 in sent_to(lab, Request), "it counts again"


def test_what_a_removed_sequencer_had_not_stamped_goes_to_another_one() -> None:
    lab, request = one_kept((0, 2))
    removed(lab)
    asked = lab.take_sent()
    assert asked == [(node, Inquiry(1, (request.number,))) for node in (*MEMBERS[0], *MEMBERS[2])]
    lab.receive(3, Outcome(1, (), (request.number,), ()))
    ((to, again),) = lab.take_sent()
    assert to == 22 and isinstance(again, Request)
    assert (again.sequencer, again.groups, again.payload) == (2, request.groups, request.payload)
    lab.receive(4, Outcome(1, (), (request.number,), ()))
    assert lab.take_sent() == [], "once is enough"
    assert lab.take_delivered() == []


def test_what_a_receiver_has_delivered_is_forgotten() -> None:
    lab, request = one_kept()
    removed(lab)
    lab.receive(4, Outcome(1, (request.number,), (), ()))
    lab.take_sent()
    lab.pass_time(20 * KEEPS.suspect_ns)
    assert lab.take_sent() == [] and lab.take_delivered() == []
    assert lab.process.in_doubt == 0


def test_a_stamped_message_is_asked_about_too() -> None:
    lab, request = one_kept()
    lab.receive(21, Stamped(1, (request.number,), ()))
    removed(lab)
    assert set(sent_to(lab, Inquiry)) == set(MEMBERS[0])
    lab.receive(3, Outcome(1, (), (request.number,), ()))
    assert sent_to(lab, Request) == [22]


def test_a_safe_message_is_forgotten() -> None:
    lab, request = one_kept()
    lab.receive(21, Stamped(1, (request.number,), (request.number,)))
    removed(lab)
    assert sent_to(lab, Inquiry) == []


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        (GONE_IN_PART, lambda number: Outcome(1, (), (number,), ())),
        (GONE, lambda number: Outcome(1, (), (), (number,))),
        (GONE, lambda number: None),
    ],
    ids=["a receiver outside the quorum may have delivered it", "nobody knows", "nobody answers"],
)
def test_what_cannot_be_known_is_told_to_the_application(step: Step, outcome: object) -> None:
    lab, request = one_kept()
    removed(lab, step)
    assert callable(outcome)
    answer = outcome(request.number)
    if answer is not None:
        for node in MEMBERS[0]:
            lab.receive(node, answer)
    else:
        lab.pass_time(5 * KEEPS.suspect_ns)
    assert lab.take_delivered() == [Unconfirmed(0, (0,), bundle())]
    assert sent_to(lab, Request) == []
    assert lab.process.in_doubt == 0


def test_steps_that_were_missed_are_fetched() -> None:
    lab, request = one_kept()
    later = Step("added", 3, 23, 2, 70, (0, 0, 0))
    lab.receive(LEADER, Announce(2, active(2, 3), None, later))
    assert (LEADER, Fetch(0)) in lab.take_sent()
    lab.receive(LEADER, Steps(0, (GONE, later)))
    assert set(sent_to(lab, Inquiry)) == set(MEMBERS[0])
    lab.receive(3, Outcome(1, (), (request.number,), ()))
    assert len(sent_to(lab, Request)) == 1


def test_a_removal_that_the_service_has_forgotten_counts_as_incomplete() -> None:
    lab, request = one_kept()
    later = Step("added", 3, 23, 9, 70, (0, 0, 0))
    lab.receive(LEADER, Announce(9, active(2, 3), None, later))
    lab.receive(LEADER, Steps(8, (later,)))
    lab.receive(LEADER, Announce(9, active(2, 3), None, later))
    assert set(sent_to(lab, Inquiry)) == set(MEMBERS[0])
    lab.receive(3, Outcome(1, (), (request.number,), ()))
    assert lab.take_delivered() == [Unconfirmed(0, (0,), bundle())]


def test_it_takes_no_more_than_it_may_keep() -> None:
    for options in (
        HydraOptions(resend=True, window=4, route="hash"),
        HydraOptions(resend=True, keep_bytes=1100, route="hash"),
    ):
        lab = sender(options)
        lab.receive(LEADER, Announce(0, active(1), None, None))
        taken = 0
        while lab.process.submit((0,), bundle(taken)):
            taken += 1
            assert taken < 10
        assert taken == 4
        first = min(m.number for _, m in lab.take_sent() if isinstance(m, Request))
        lab.receive(21, Stamped(1, (), (first,)))
        assert lab.process.submit((0,), bundle(5)), "what is acknowledged makes room"
        assert not lab.process.submit((0,), bundle(6))


def test_why_names_what_is_kept() -> None:
    lab, _ = one_kept()
    (wait,) = lab.process.explain().waits
    assert wait.payload == bundle() and "an acknowledgement of sequencer 1" in wait.blocker
    removed(lab)
    (wait,) = lab.process.explain().waits
    assert wait.payload == bundle() and wait.on == MEMBERS[0]
    assert "a receiver that knows whether sequencer 1 had stamped it" in wait.blocker


@pytest.mark.parametrize("name", mutants_resend.SCENARIOS)
def test_where_broken_senders_are_caught_true_ones_keep_every_promise(name: str) -> None:
    for seed in range(3):
        run = simulate(mutants_resend.SCENARIOS[name](seed))
        assert run.violations == [] and run.hindrance == ""


# Sequencers


def test_a_sequencer_acknowledges_many_at_once_and_copies_again() -> None:
    lab = sequencer(KEEPS)
    lab.receive(LEADER, Welcome(0, 1, 0))
    lab.take_sent()
    for number in (7, 8, 7):
        lab.receive(CLIENT, Request(1, number, (1,), b"x"))
    packets = [m for _, m in lab.take_sent() if isinstance(m, Groupcast)]
    assert {packet.request for packet in packets} == {7, 8}
    assert acks(lab) == [Stamped(1, (7, 8, 7), ())]
    assert acks(lab) == []


def acks(lab: Bench[Sequencer]) -> list[Message]:
    """What is acknowledged after the usual time."""
    lab.pass_time(2 * KEEPS.ack_ns)
    return [message for _, message in lab.take_sent() if isinstance(message, Stamped)]


def test_a_request_is_safe_when_a_majority_of_each_group_has_it() -> None:
    lab = sequencer(KEEPS)
    lab.receive(LEADER, Welcome(0, 1, 0))
    lab.receive(CLIENT, Request(1, 7, (1, 2), b"x"), Request(1, 8, (1,), b"x"))
    assert acks(lab) == [Stamped(1, (7, 8), ())]
    lab.receive(0, Receipt(1, 2))
    assert acks(lab) == [], "one of three is no majority"
    lab.receive(1, Receipt(1, 2))
    assert acks(lab) == [Stamped(1, (), (8,))], "nobody of group 2 has the other one"
    lab.receive(6, Receipt(1, 1))
    lab.receive(7, Receipt(9, 1), Receipt(1, 0))
    assert acks(lab) == []
    lab.receive(7, Receipt(1, 1))
    assert acks(lab) == [Stamped(1, (), (7,))]
    lab.receive(CLIENT, Request(1, 7, (1, 2), b"x"))
    assert acks(lab) == [Stamped(1, (), (7,))], "its sender has not heard it"


def test_only_receivers_give_receipts() -> None:
    lab = sequencer(KEEPS)
    lab.receive(LEADER, Welcome(0, 1, 0))
    with pytest.raises(RemoteError, match="is no receiver"):
        lab.receive(CLIENT, Receipt(1, 5))


# Receivers


def packet(number: int, request: int, clock: int) -> Groupcast:
    return Groupcast(1, clock, (1,), (number,), CLIENT, b"", request)


def receipts(lab: ReceiverBench) -> list[tuple[NodeId, Message]]:
    return [(to, message) for to, message in lab.take_sent() if isinstance(message, Receipt)]


def test_a_receiver_tells_a_sequencer_how_far_it_is() -> None:
    lab = receiver(KEEPS)
    lab.receive(21, packet(1, 70, 10), packet(2, 71, 11), packet(4, 73, 13))
    assert receipts(lab) == []
    lab.pass_time(KEEPS.ack_ns)
    assert receipts(lab) == [(21, Receipt(1, 2))], "number 3 is missing"
    lab.pass_time(KEEPS.suspect_ns)
    assert set(receipts(lab)) == {(21, Receipt(1, 2))}, "the first may have been lost"
    lab.pass_time(20 * KEEPS.suspect_ns)
    lab.take_sent()
    lab.pass_time(32 * KEEPS.suspect_ns)
    assert receipts(lab) == 12 * [(21, Receipt(1, 2))], "rarely, but for ever"


def test_a_number_that_is_given_up_counts_as_settled() -> None:
    lab = receiver(KEEPS)
    lab.hears("<F,1,{(0,0),(1,3),(2,0)},10>", "<G,2,{(1,1)},5>")
    assert "<D,1,3>" in lab.delivered()
    lab.pass_time(KEEPS.suspect_ns)
    assert (21, Receipt(1, 3)) in receipts(lab)


def test_a_receiver_answers_when_it_has_settled_all_of_the_sequencer() -> None:
    lab = receiver(KEEPS)
    lab.receive(21, packet(1, 70, 10))
    lab.hears("<F,2,{},90>")
    lab.receive(CLIENT, Inquiry(1, (70, 71)))
    assert [m for _, m in lab.take_sent() if isinstance(m, Outcome)] == [], "more may come"
    lab.decide(Step("removed", 1, 21, 1, 50, (0, 1, 0), complete=True))
    lab.receive(CLIENT, Inquiry(1, (70, 71)))
    assert (CLIENT, Outcome(1, (70,), (71,), ())) in lab.take_sent()


def test_a_receiver_that_missed_a_number_does_not_know() -> None:
    lab = receiver(KEEPS)
    lab.receive(21, packet(2, 70, 10))
    lab.hears("<F,2,{},90>")
    assert "<D,1,1>" in lab.delivered()
    lab.decide(Step("removed", 1, 21, 1, 50, (0, 2, 0), complete=True))
    lab.receive(CLIENT, Inquiry(1, (70, 71)))
    assert (CLIENT, Outcome(1, (70,), (), (71,))) in lab.take_sent()


def test_a_receiver_that_has_seen_more_than_was_agreed_upon_does_not_know() -> None:
    """It was outside the quorum, and may have delivered what no other receiver will."""
    lab = receiver(KEEPS)
    lab.receive(21, packet(1, 70, 10), packet(2, 71, 11))
    lab.hears("<F,2,{},90>")
    lab.decide(Step("removed", 1, 21, 1, 50, (0, 1, 0)))
    lab.receive(CLIENT, Inquiry(1, (70, 71)))
    assert (CLIENT, Outcome(1, (), (), (70, 71))) in lab.take_sent()


def test_a_receiver_that_was_restarted_does_not_know() -> None:
    options = HydraOptions(
        resend=True, durable=True, flush="periodic", flush_ns=1_000_000, patience_ns=0, repair=False
    )
    lab = receiver(options)
    lab.receive(21, packet(1, 70, 10))
    lab.hears("<F,2,{},90>")
    later = receiver(options, saved=lab.env.saved, now=1_000)
    later.decide(Step("removed", 1, 21, 1, 50, (0, 1, 0), complete=True))
    later.receive(CLIENT, Inquiry(1, (70, 71)))
    assert (CLIENT, Outcome(1, (), (), (70, 71))) in later.take_sent()


# The service


def planned_removal() -> Ensemble:
    ensemble = Ensemble(resend=True)
    ensemble.suspect(1, (0, 1))
    return ensemble


def report(ensemble: Ensemble, *nodes: NodeId) -> None:
    for node in nodes:
        ensemble.service.receive(node, Report(0, 1, 10, (0, 0, 0)))


def latest(ensemble: Ensemble) -> Step | None:
    ensemble.service.take_sent()
    ensemble.service.receive(CLIENT, Fetch(0))
    (told,) = [m for _, m in ensemble.service.take_sent() if isinstance(m, Announce)]
    return told.latest


def test_a_removal_waits_a_little_for_the_last_reports() -> None:
    ensemble = planned_removal()
    report(ensemble, *EVERYONE[:-1])
    assert latest(ensemble) is None
    report(ensemble, EVERYONE[-1])
    step = latest(ensemble)
    assert step is not None and step.complete


def test_a_removal_does_not_wait_for_long() -> None:
    ensemble = planned_removal()
    report(ensemble, *EVERYONE[:-1])
    ensemble.service.pass_time(25 * MILLISECOND)
    step = latest(ensemble)
    assert step is not None and not step.complete


def test_a_sequencer_of_which_a_sender_complains_is_removed_only_if_it_is_deaf() -> None:
    for answers in (True, False):
        ensemble = Ensemble(resend=True)
        for _ in range(8):
            ensemble.service.take_sent()
            ensemble.suspect(1, (CLIENT,))
            probes = [to for to, m in ensemble.service.take_sent() if isinstance(m, Probe)]
            assert probes == [21]
            if answers:
                ensemble.service.receive(21, Echo(0))
            ensemble.service.pass_time(5 * MILLISECOND)
        planned = ensemble.service.process._registry.planned
        assert planned == (None if answers else Plans("removed", 1, 21))


def test_a_sender_with_a_bad_link_is_not_left_alone_for_ever() -> None:
    ensemble = Ensemble(resend=True)
    for _ in range(32):
        ensemble.suspect(1, (CLIENT,))
        ensemble.service.receive(21, Echo(0))
        ensemble.service.pass_time(10 * MILLISECOND)
    assert ensemble.service.process._registry.planned == Plans("removed", 1, 21)
