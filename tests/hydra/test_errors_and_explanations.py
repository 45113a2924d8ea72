"""What no correct peer sends, what no caller should ask for, and what Hydra says when asked why."""

from contextlib import suppress

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import Deployment, LocalError, Message, NodeId, Options, RemoteError
from ordercast.protocols.hydra import PROTOCOL, HydraOptions
from ordercast.protocols.hydra.messages import (
    MESSAGES,
    Announce,
    Ask,
    BlindReport,
    Echo,
    Fetch,
    Flush,
    Flushes,
    Found,
    Gone,
    Groupcast,
    Inquiry,
    Join,
    Nudge,
    Nudged,
    Outcome,
    Probe,
    Rebirth,
    Receipt,
    Refresh,
    Refreshed,
    Report,
    Request,
    Revived,
    Solicit,
    Stamped,
    Step,
    Steps,
    Suspect,
    Welcome,
)
from ordercast.protocols.hydra.protocol import deploy
from tests.hydra.ensemble import Ensemble
from tests.hydra.lab import (
    CLIENT,
    LEADER,
    SEQUENCERS,
    ReceiverBench,
    added,
    aggregator,
    planning,
    receiver,
    removed,
    sender,
    sequencer,
)

HARMLESS: tuple[Message, ...] = (
    Request(9, 1, (0,), b""),
    Flush(9, 1, (0, 0, 0)),
    Flushes(()),
    Solicit(9, 1),
    Probe(1),
    Echo(0),
    Nudge(1, (0,)),
    Nudged(1, (0,)),
    Ask(9, 1, 1, 1),
    Found(Groupcast(9, 1, (1,), (1,), CLIENT, b"")),
    Gone(9, 1, 1, 1),
    Stamped(9, (1,), ()),
    Receipt(9, 1),
    Inquiry(9, (1,)),
    Outcome(9, (1,), (), ()),
    Announce(0, (), None, None),
    Fetch(0),
    Steps(0, ()),
    Suspect((9,)),
    Join(0),
    Welcome(9, 9, 9),
    BlindReport(9, 9),
    Rebirth(9),
    Revived(9, 9, 9, 9, 9, 9, ()),
    Refresh(9, 9),
    Refreshed(9, Flush(9, 1, (0, 0, 0))),
)
"""Well-formed messages, most of which are for somebody else."""


def cast(groups: tuple[int, ...], numbers: tuple[int, ...]) -> Groupcast:
    return Groupcast(1, 10, groups, numbers, CLIENT, b"")


@pytest.mark.parametrize(
    "message",
    [
        cast((0,), (1,)),
        cast((1,), (1, 2)),
        cast((0, 1), (1,)),
        cast((1, 3), (1, 1)),
        cast((5, 1), (1, 1)),
        Flush(1, 10, (0, 0)),
        Flush(1, 10, (0, 0, 0, 0)),
        Flushes((Flush(1, 10, (0, 0)),)),
        Steps(0, (Step("removed", 1, 21, 1, 10, (0, 0)),)),
        Steps(0, (Step("added", 3, 23, 1, 10, (0, 0, 0, 0)),)),
    ],
    ids=str,
)
def test_a_receiver_refuses_what_does_not_fit_its_groups_and_is_unchanged(message: Message) -> None:
    lab = receiver()
    lab.hears("<G,1,{(1,1)},5>")
    with pytest.raises(RemoteError):
        lab.receive(21, message)
    assert lab.buffer() == ["<G,1,{(1,1)},5>"]
    assert lab.gives("<F,2,{(1,0)},20>") == ["<G,1,{(1,1)},5>"]


def test_an_announced_step_that_does_not_fit_is_refused_too() -> None:
    lab = receiver()
    lab.hears("<G,1,{(1,1)},5>", "<F,2,{(1,0)},6>")
    with pytest.raises(RemoteError):
        lab.receive(LEADER, Announce(1, (), None, Step("removed", 1, 21, 1, 10, (0,))))
    assert lab.gives("<G,1,{(1,2)},10>", "<F,2,{(1,0)},20>")[-1] == "<G,1,{(1,2)},10>"


@pytest.mark.parametrize("numbers", [(), (1,), (1, 2, 3, 4)])
def test_the_service_refuses_reports_of_other_groups(numbers: tuple[int, ...]) -> None:
    ensemble = Ensemble()
    with pytest.raises(RemoteError, match="node 0 reports"):
        ensemble.service.receive(0, Report(0, 1, 10, numbers))


def test_the_service_refuses_reports_of_nodes_that_are_no_receivers() -> None:
    ensemble = Ensemble()
    with pytest.raises(RemoteError):
        ensemble.service.receive(CLIENT, Report(0, 1, 10, (0, 0, 0)))


@pytest.mark.parametrize("message", HARMLESS, ids=lambda message: type(message).__name__)
def test_a_message_that_is_for_somebody_else_does_no_harm(message: Message) -> None:
    lab = receiver()
    lab.receive(LEADER, message)
    assert lab.gives("<G,1,{(1,1)},10>", "<F,2,{(1,0)},20>") == ["<G,1,{(1,1)},10>"]
    for other in (sequencer(), sender(), aggregator()):
        before = other.process.explain()
        with suppress(RemoteError):
            other.receive(LEADER, message)
        assert other.process.explain().state["role"] == before.state["role"]
        assert all(type(reply) in MESSAGES for _, reply in other.take_sent())


def test_every_message_type_is_covered_here() -> None:
    covered = {type(message) for message in HARMLESS} | {Groupcast, Report}
    assert covered == set(MESSAGES)


def test_the_protocol_is_found_by_name() -> None:
    assert find_protocol("hydra") is PROTOCOL


def test_a_receiver_is_in_one_group() -> None:
    with pytest.raises(LocalError, match="needs disjoint groups, but receiver 1 is in 0 and 1"):
        deploy(Deployment(((0, 1), (1, 2))), HydraOptions())


def test_options_are_its_own() -> None:
    with pytest.raises(LocalError, match="HydraOptions, not Options"):
        deploy(Deployment.disjoint(1, 3, 1), Options())


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"sequencers": 0}, "together must be 1 to"),
        ({"sequencers": -1, "spares": 5}, "together must be 1 to"),
        ({"window": 0}, "must be positive"),
        ({"suspect_ns": 0}, "must be positive"),
        ({"patience_ns": -1}, "must not be negative"),
        ({"replicas": 2}, "an odd number"),
        ({"suspect_ns": 5_000_000}, "longer than heartbeat_ns"),
    ],
)
def test_options_that_make_no_sense_are_refused(changes: dict[str, int], complaint: str) -> None:
    with pytest.raises(LocalError, match=complaint):
        HydraOptions(**changes)  # type: ignore[arg-type]


def test_roles_and_hosts() -> None:
    options = HydraOptions(sequencers=3, spares=1, kind="switch", pipelines=2, flush="aggregated", rack=2)
    plan = deploy(Deployment.disjoint(1, 3, 2), options)
    roles: dict[str, list[NodeId]] = {}
    for node in plan.nodes:
        roles.setdefault(node.role, []).append(node.host)
    assert roles == {
        "receiver": [0, 1, 2],
        "sender": [3, 4],
        "switch": [5, 5, 7, 7],
        "aggregator": [9, 10],
        "configuration": [11, 12, 13],
    }


def test_there_are_only_so_many_groups() -> None:
    with pytest.raises(LocalError, match="at most 4096 groups"):
        deploy(Deployment.disjoint(1, 1, 1), HydraOptions(virtual_groups=4096))


def test_virtual_groups_have_numbers_and_no_receivers() -> None:
    plan = deploy(Deployment.disjoint(1, 3, 1), HydraOptions(virtual_groups=2))
    assert plan.groups == {0: (0, 1, 2), 1: (), 2: ()}


# Explanations


def waits(lab: ReceiverBench) -> dict[str, tuple[str, int]]:
    return {subject: (blocker, since) for subject, blocker, since in lab.waits()}


def test_it_names_the_sequencer_waited_for_and_since_when() -> None:
    lab = receiver()
    lab.env.now = 700
    lab.hears("<F,2,{(1,0)},8>", "<G,1,{(1,1)},10>")
    lab.env.now = 900
    assert waits(lab) == {
        "message 1 of sequencer 1": ("the clock of sequencer 2, which is at 8 and must reach 10", 700),
    }


def test_it_gives_the_payload_of_each_packet_that_it_holds() -> None:
    lab = receiver()
    lab.receive(SEQUENCERS[1], Groupcast(1, 10, (1,), (1,), CLIENT, b"next"))
    lab.receive(SEQUENCERS[1], Groupcast(1, 40, (1,), (4,), CLIENT, b"early"))
    told = {wait.subject: wait.payload for wait in lab.process.explain().waits}
    assert told == {
        "message 1 of sequencer 1": b"next",
        "message 4 of sequencer 1 at clock 40": b"early",
    }


def test_it_names_all_sequencers_that_are_behind_the_slowest_first() -> None:
    lab = receiver(initial={1: 21, 2: 22, 3: 23})
    lab.hears("<F,2,{(1,0)},8>", "<F,3,{(1,0)},5>", "<G,1,{(1,1)},10>")
    ((blocker, _),) = waits(lab).values()
    assert (
        blocker
        == "the clock of sequencer 3, which is at 5 and must reach 10; the clock of sequencer 2 is at 8"
    )


def test_it_names_missing_numbers() -> None:
    lab = receiver()
    lab.hears("<G,1,{(1,1)},10>")
    lab.env.now = 50
    lab.hears("<G,1,{(1,4)},40>")
    told = waits(lab)
    assert told["message 4 of sequencer 1 at clock 40"] == (
        "numbers 2, 3 of sequencer 1, which are missing",
        50,
    )


def test_it_names_a_long_run_of_missing_numbers_by_its_ends() -> None:
    lab = receiver()
    lab.hears("<G,1,{(1,100)},40>")
    ((blocker, _),) = waits(lab).values()
    assert blocker == "numbers 1 to 99 of sequencer 1, which are missing"


def test_it_names_the_missing_number_of_another_sequencer_that_holds_a_message_up() -> None:
    lab = receiver(HydraOptions(flush="periodic", flush_ns=1_000_000, patience_ns=500))
    lab.hears("<G,1,{(1,2)},20>", "<G,2,{(1,1)},10>")
    told = waits(lab)
    assert (
        told["message 1 of sequencer 2"][0] == "number 1 of sequencer 1, which is missing; its clock is at 20"
    )
    assert told["message 2 of sequencer 1 at clock 20"][0] == "number 1 of sequencer 1, which is missing"


def test_it_says_that_a_sequencer_is_being_removed_or_added() -> None:
    lab = receiver()
    lab.hears("<G,1,{(1,1)},10>")
    lab.plan("removed", 2)
    told = waits(lab)
    blocker = "the clock of sequencer 2 (it is being removed), which is at 0 and must reach 10"
    assert told["message 1 of sequencer 1"][0] == blocker
    assert told["step 1 (sequencer 2 removed)"] == ("reports from a quorum of every group", 0)
    other = receiver(initial={1: 21})
    other.receive(LEADER, planning("added", 3))
    assert waits(other) == {"step 1 (sequencer 3 added)": ("a flush from this sequencer", 0)}
    other.hears("<F,3,{(1,0)},5>", "<G,1,{(1,1)},10>")
    assert waits(other)["message 1 of sequencer 1"][0] == (
        "the clock of sequencer 3 (it is being added), which is at 5 and must reach 10"
    )


def test_its_state_names_group_configuration_and_sequencers() -> None:
    lab = receiver()
    lab.decide(removed(1, 0, (0, 0, 0)), added(3, 5, config=2))
    lab.hears("<F,2,{(1,0)},9>", "<F,3,{(1,0)},9>", "<G,2,{(1,1)},20>")
    state = lab.process.explain().state
    named = [state[key] for key in ("group", "configuration", "sequencers", "packets held")]
    assert named == [1, 2, "2, 3", 1]


def test_the_service_names_the_receivers_whose_reports_are_lacking() -> None:
    ensemble = Ensemble()
    ensemble.suspect(1, (0, 1, 3, 4))
    ensemble.exchange(without=(2, 6, 7))
    ((subject, blocker, _),) = ensemble.service.waits()
    assert subject == "step 1 (sequencer 1 removed)"
    assert blocker == "a report from nodes 2, 6, 7"
