"""The properties that the explorer holds Hydra to: each on a history that breaks it alone."""

import pytest

from ordercast.core import Delivered, Deployment, Dropped, NodeId, OutOfOrder, Stamp, Unconfirmed, View
from ordercast.lab.model.explorer_hydra_properties import HydraProperties
from ordercast.lab.model.explorer_world import History, Packet
from ordercast.protocols.hydra.messages import Announce, Flush, Groupcast, Plans, Step
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.protocol import PROTOCOL

PLAN = PROTOCOL.deploy(Deployment(((0,), (1,))), HydraOptions())
PROPERTIES = HydraProperties(PLAN, 2, [b"a", b"b", b"c", b"d"], changes=1)
TWINS = HydraProperties(PROTOCOL.deploy(Deployment(((0, 1),)), HydraOptions()), 2, [b"a"], changes=0)


def message(payload: bytes, clock: int, issuer: int, *numbers: int, config: int = 0) -> Delivered:
    """To both groups if it has two numbers, else to group 0."""
    groups = (0, 1) if len(numbers) > 1 else (0,)
    return Delivered(payload, groups, 2, Stamp(clock, issuer, numbers), config)


def lost(issuer: int, number: int, config: int = 0, group: int = 0) -> Dropped:
    return Dropped(group, issuer, number, config)


def removed(issuer: int, number: int, clock: int = 9, config: int = 1) -> View:
    return View(0, config, (0,), change="removed", stamp=Stamp(clock, issuer, (number,)))


def added(issuer: int, number: int, clock: int = 9, config: int = 1) -> View:
    return View(0, config, (0,), change="added", stamp=Stamp(clock, issuer, (number,)))


A, B = message(b"a", 5, 1, 1, 1), message(b"b", 5, 2, 1, 1)

GOOD: list[History] = [
    (),
    (A, B, message(b"c", 6, 1, 2)),
    (lost(1, 1), B, lost(1, 2), message(b"c", 7, 1, 3)),
    (A, lost(2, 1), removed(2, 1), message(b"c", 12, 1, 2, config=1)),
    (A, added(3, 4), message(b"c", 12, 3, 5, config=1), lost(1, 2, config=1)),
]

BAD: dict[str, History] = {
    "global order: a at (5, 1) comes after a message at (5, 2)": (B, A),
    "local order: number 2 of sequencer 1 is settled after number 0": (message(b"c", 6, 1, 2),),
    "local order: number 1 of sequencer 1 is settled after number 1": (A, lost(1, 1)),
    "at most once: a comes again at (6, 2)": (A, message(b"a", 6, 2, 1, 1)),
    "views: number 1 of sequencer 2 is not of configuration 1": (removed(2, 0), lost(2, 1, config=1)),
    "views: number 1 of sequencer 3 is not of configuration 0": (message(b"c", 9, 3, 1),),
    "views: sequencer 2 is removed after number 0 instead of number 1": (removed(2, 1),),
    "views: sequencer 1 is added, but was there already": (added(1, 0),),
    "views: configuration 2 comes after 0": (removed(2, 0, config=2),),
    "local order: number 4 of sequencer 3 is settled after number 4": (added(3, 4), lost(3, 4, config=1)),
    "a delivery in configuration 0 names configuration 1": (lost(1, 1, config=1),),
    "a notice for group 1 came to group 0": (lost(1, 1, group=1),),
    "x was not sent to this group": (message(b"x", 5, 1, 1),),
    "Hydra does not deliver OutOfOrder": (OutOfOrder(b"a", (0,), 2),),
}


@pytest.mark.parametrize("history", GOOD)
def test_a_history_in_order_is_accepted(history: History) -> None:
    assert PROPERTIES.alone(0, history) is None


@pytest.mark.parametrize("fault", BAD)
def test_a_history_that_breaks_a_rule_is_refused(fault: str) -> None:
    found = PROPERTIES.alone(0, BAD[fault])
    assert found is not None
    assert fault in found


def test_a_message_for_another_group_is_refused() -> None:
    assert PROPERTIES.alone(1, (message(b"a", 5, 1, 1),)) == "group 1: a was not sent to this group"


AGREE: list[tuple[History, History]] = [
    ((A, B), (A, B)),
    ((A, B), (A,)),
    ((A, B), (lost(1, 1, group=1), B)),
    ((A,), (lost(2, 1, group=1), A)),
    ((A, removed(2, 0)), (removed(2, 3),)),  # the number is that of the group
]

DISAGREE: dict[str, tuple[History, History]] = {
    "b and a come in different orders": (
        (message(b"a", 5, 1, 1), message(b"b", 6, 1, 2)),
        (message(b"b", 6, 1, 2), message(b"a", 5, 1, 1)),
    ),
    "a is both Delivered": ((A,), (message(b"a", 6, 1, 1, 1),)),
    "config=1": ((A,), (removed(2, 0), message(b"a", 5, 1, 1, 1, config=1))),
    "configuration 1 is both View": ((removed(2, 0),), (removed(2, 0, clock=8),)),
    "a was delivered by one receiver; for the other it is not settled before b": ((A,), (B,)),
    "a was delivered by one receiver; for the other it is not settled before its sequencer is removed": (
        (A,),
        (removed(1, 0),),
    ),
    "c was delivered by one receiver; for the other it is before the beginning of its sequencer": (
        (added(3, 0), message(b"c", 12, 3, 1, 1, config=1)),
        (added(3, 1),),
    ),
}


@pytest.mark.parametrize(("first", "second"), AGREE)
def test_histories_that_agree_are_accepted(first: History, second: History) -> None:
    assert PROPERTIES.together(0, first, 1, second) is None
    assert PROPERTIES.together(1, second, 0, first) is None


@pytest.mark.parametrize("fault", DISAGREE)
def test_histories_that_disagree_are_refused(fault: str) -> None:
    first, second = DISAGREE[fault]
    found = PROPERTIES.together(0, first, 1, second)
    assert found is not None
    assert fault in found
    assert PROPERTIES.together(1, second, 0, first) is not None


def test_two_receivers_of_a_group_agree_on_its_last_number() -> None:
    assert TWINS.together(0, (removed(2, 1),), 1, (removed(2, 0),)) is not None
    assert TWINS.together(0, (removed(2, 1),), 1, (removed(2, 1),)) is None


STEP = Step("removed", 2, 4, 1, 9, (0, 0))
DECIDED = Packet(5, 0, Announce(1, ((1, 3),), None, STEP))
PLANNED = Packet(5, 0, Announce(0, ((1, 3), (2, 4)), Plans("removed", 2, 4), None))
FLUSH = Packet(3, 0, Flush(1, 30, (1, 0)))


def test_a_run_is_over_when_all_that_is_stamped_is_settled_in_the_last_configuration() -> None:
    settled = {0: (lost(1, 1), removed(2, 0)), 1: (removed(2, 0),)}
    assert PROPERTIES.unsettled(settled, [FLUSH, DECIDED]) is None
    assert PROPERTIES.unsettled(settled, [FLUSH, PLANNED]) == "sequencer 2 is to be removed"
    assert PROPERTIES.unsettled(settled, [FLUSH]) == "the configuration service is silent"
    assert PROPERTIES.unsettled(settled, [DECIDED]) == "sequencer 1 is silent"
    late = settled | {0: (removed(2, 0),)}
    assert (
        PROPERTIES.unsettled(late, [FLUSH, DECIDED]) == "receiver 0 has not settled number 1 of sequencer 1"
    )
    behind = settled | {1: ()}
    assert PROPERTIES.unsettled(behind, [FLUSH, DECIDED]) == "receiver 1 is in configuration 0 of 1"
    first = Packet(5, 0, Announce(0, ((1, 3), (2, 4)), None, None))
    assert PROPERTIES.unsettled(settled, [FLUSH, first]) == "only 0 of 1 configurations are decided"


def test_what_a_sender_keeps_is_told_to_each_receiver_or_to_the_sender() -> None:
    keeps = HydraProperties(PLAN, 2, [b"a"], changes=1, kept={b"a": (0, 1)})
    traffic = [FLUSH, DECIDED]
    told: dict[NodeId, History] = {0: (A, removed(2, 0)), 1: (lost(1, 1, group=1), removed(2, 0)), 2: ()}
    assert keeps.unsettled(told, traffic) is None
    silent = [Packet(3, 0, Flush(1, 30, (0, 0))), DECIDED]
    lacking: dict[NodeId, History] = {0: (removed(2, 0),), 1: (removed(2, 0),), 2: ()}
    assert keeps.unsettled(lacking, silent) == "validity: receiver 0 and the sender of a hear nothing of it"
    unconfirmed: History = (Unconfirmed(0, (0, 1), b"a"),)
    assert keeps.unsettled(lacking | {2: unconfirmed}, silent) is None
    assert keeps.alone(2, unconfirmed) is None
    assert keeps.together(0, (A,), 2, unconfirmed) is None
    assert keeps.alone(2, (A,)) == f"a sender is told {A}"
    assert keeps.alone(2, (Unconfirmed(0, (0, 1), b"x"),)) is not None


def test_what_can_be_overtaken_fades_and_nothing_else() -> None:
    assert PROPERTIES.fades(FLUSH)
    assert not PROPERTIES.fades(Packet(4, 0, Flush(3, 30, (0, 0))))
    assert PROPERTIES.fades(DECIDED)
    assert PROPERTIES.fades(DECIDED._replace(to=3))
    assert PROPERTIES.fades(PLANNED._replace(to=4))
    assert not PROPERTIES.fades(DECIDED._replace(to=4))  # it is told that it was removed
    assert not PROPERTIES.fades(Packet(3, 0, Groupcast(1, 5, (0,), (1,), 2, b"a")))
