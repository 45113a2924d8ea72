"""Bad input: users get a `LocalError`, claims of peers a `RemoteError`, and nothing changes."""

from typing import Any

import msgspec
import pytest

from ordercast.core import Deployment, LocalError, Message, NodeId, Options, RemoteError
from ordercast.core.message import PAYLOAD_BYTES_MAX
from ordercast.protocols.atoms import PROTOCOL
from ordercast.protocols.atoms.commands import decode
from ordercast.protocols.atoms.messages import (
    BATCH,
    Alive,
    Entries,
    Forward,
    Got,
    Kept,
    Passed,
    Plans,
    Publish,
    Pull,
    Receipt,
    Route,
    Seal,
    Sealed,
    Told,
    Where,
)
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.protocol import deploy
from ordercast.protocols.atoms.records import NUMBER_MAX, Begin, GroupReport, Placed, Post
from tests.atoms.lab import Lab

ENTRY = Placed(1, (), 4, 1, 0, b"lie")
STORE, STRANGER = 8, 99
NODE, OTHER_NODE = 5, 6


def lab() -> Lab:
    """Subscribers 0 to 3, publisher 4, nodes 5 to 7, and the store 8; some messages are on their way."""
    found = Lab((0, 1, 2), (1, 2, 3))
    for group in (0, 1):
        found.submit(f"m{group}", group)
    assert (found.publishers, found.nodes, found.store) == ((4,), (5, 6, 7), (8,))
    return found


def shape(found: Lab, node: NodeId) -> tuple[object, ...]:
    """What a process has saved, and what it says about itself."""
    told = found.process(node).explain()
    return dict(found.drivers[node].env.saved), told.state, found.drivers[node].env.delivered.copy()


def refuse(found: Lab, source: NodeId, to: NodeId, message: Message, match: str) -> None:
    before = shape(found, to)
    with pytest.raises(RemoteError, match=match):
        found.drivers[to].receive(source, message)
    assert shape(found, to) == before
    assert found.drivers[to].take_sent() == []
    assert found.finish() == set()


# Users


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"nodes": 0}, "must be positive"),
        ({"store": 0}, "must be positive"),
        ({"copies": 0}, "must be positive"),
        ({"window": 0}, "must be positive"),
        ({"history": 0}, "must be positive"),
        ({"retry_ns": 0}, "must be positive"),
        ({"heartbeat_ns": 0}, "must be positive"),
        ({"copies": 4}, "copies is 4, but there are only 3 nodes"),
        ({"suspect_ns": 5_000_000}, "suspect_ns must be above heartbeat_ns"),
        ({"grouping": "none"}, "there is no grouping 'none'; there are: apart"),
    ],
)
def test_options_that_cannot_be_are_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(LocalError, match=match):
        AtomsOptions(**changes)


def test_the_options_of_another_protocol_are_refused() -> None:
    with pytest.raises(LocalError, match="atoms takes AtomsOptions, not Options"):
        deploy(Deployment(((0, 1),)), Options())


@pytest.mark.parametrize(
    ("groups", "payload", "match"),
    [
        ((0, 1), b"", "one group, not to 2"),
        ((), b"", "one group, not to 0"),
        ((7,), b"", "there is no group 7"),
        ((0,), bytes(PAYLOAD_BYTES_MAX + 1), "the limit is"),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused(groups: Any, payload: bytes, match: str) -> None:
    found = lab()
    before = shape(found, 4)
    with pytest.raises(LocalError, match=match):
        found.process(4).submit(groups, payload)
    assert shape(found, 4) == before
    assert found.drivers[4].take_sent() == []


def test_a_full_window_takes_nothing_more() -> None:
    found = Lab((0, 1), window=2)
    found.lost = lambda source, to, message: True
    assert [found.submit(text) for text in ("a", "b", "c")] == [True, True, False]
    assert found.process(found.publishers[0]).in_doubt == 2
    found.lost = lambda source, to, message: False
    found.wait_ms(100)
    assert found.submit("d")
    assert found.finish() == set()
    assert found.log(0) == ["a", "b", "d"]


# Peers


@pytest.mark.parametrize(
    ("source", "to", "message", "match"),
    [
        (NODE, OTHER_NODE, Plans(0, 9, 9, ()), "is no store, but sent Plans"),
        (STRANGER, NODE, Seal(1, 1, ()), "is no store, but sent Seal"),
        (1, 0, Told(1, 0, 9, (), True), "is no store, but sent Told"),
        (1, 0, Entries(0, 0, ()), "is no sequencing node, but sent Entries"),
        (1, 0, Where(0), "is no sequencing node, but sent Where"),
        (1, NODE, Forward(1, 0, 0, 1, 1, ENTRY), "is no sequencing node, but sent Forward"),
        (1, NODE, Pull(0, 1, 0, 1), "is no sequencing node, but sent Pull"),
        (1, NODE, Kept(0, 1), "is no sequencing node, but sent Kept"),
        (1, STORE, Alive(9, 9), "is no sequencing node, but sent Alive"),
        (1, STORE, Sealed(1, Post(1, 1), (), ()), "is no sequencing node, but sent Sealed"),
        (NODE, 0, Entries(9, 0, ()), "names group 9, which does not exist"),
        (4, NODE, Publish(9, 1, 1, 0, 0, b""), "names group 9, which does not exist"),
        (NODE, 4, Receipt(9, 1, 1), "names group 9, which does not exist"),
        (0, NODE, Got(0, 3, 2), "has delivered more than it has received"),
        (4, NODE, Publish(0, 1, 1, 3, 4, b""), "sends number 3, but needs no answer below 4"),
        (NODE, 4, Route(0, 9, STRANGER), "names node 99, which is no sequencing node"),
        (STORE, NODE, Plans(5, 4, 4, ()), "sends plans from 5 to 4 of 4"),
        (STORE, NODE, Plans(2, 4, 3, ()), "sends plans from 2 to 4 of 3"),
        (NODE, STORE, Sealed(1, Post(OTHER_NODE, 1), (), ()), "in the name of node 6"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Message) else "",
)
def test_what_no_correct_peer_sends_is_refused(
    source: NodeId, to: NodeId, message: Message, match: str
) -> None:
    refuse(lab(), source, to, message, match)


def test_a_message_on_a_wrong_way_is_refused() -> None:
    found = lab()
    plan = found.registry().plans[0]
    last, before = plan.holders[-1].node, plan.holders[-2].node
    stage = len(plan.hops) + len(plan.holders) - 2
    other = next(node for node in found.nodes if node not in (last, before))
    entry = msgspec.structs.replace(ENTRY, label=plan.label)
    for source, where, position, match in (
        (other, stage, 2, "on a wrong way"),
        (before, stage + 1, 2, "on a wrong way"),
        (before, 0, 2, "on a wrong way"),
        (before, stage, plan.base, f"sent position {plan.base} of epoch {plan.label}"),
    ):
        with pytest.raises(RemoteError, match=match):
            seq = 1 if source == before else 0
            found.drivers[last].receive(source, Forward(plan.label, seq, 0, where, position, entry))
        found = lab()
    assert found.finish() == set()


def test_a_report_that_contradicts_its_plan_is_refused() -> None:
    found = lab()
    found.join(3, 0)
    found.wait_ms(50)
    found.lost = lambda source, to, message: isinstance(message, Sealed)
    found.leave(3, 0)
    found.wait_ms(5)
    plan = found.registry().plans[0]
    post = plan.holders[-1]
    assert plan.base > 0
    lie = Sealed(found.registry().change + 1, post, (plan.label,), (GroupReport(0, (), plan.base, 0, ()),))
    with pytest.raises(RemoteError, match=f"reports position {plan.base} of epoch {plan.label}"):
        found.drivers[STORE].receive(post.node, lie)
    assert found.process(STORE)._reports.final(plan) is None
    assert found.finish() == set()


@pytest.mark.parametrize(
    "message",
    [
        Got(0, NUMBER_MAX + 1, NUMBER_MAX + 1),
        Passed(NUMBER_MAX + 1, 0),
        Alive(1, NUMBER_MAX + 1),
        Kept(0, NUMBER_MAX + 1),
        Got(0, -1, 0),
        Entries(0, 0, (Begin(1, 1, (), ((0, (NUMBER_MAX + 1,)),)),)),
        Entries(0, 0, (ENTRY,) * (BATCH + 1)),
        Plans(0, NUMBER_MAX + 1, NUMBER_MAX + 1, ()),
    ],
    ids=lambda message: type(message).__name__,
)
def test_numbers_that_cannot_be_are_not_decoded(message: Message) -> None:
    codec = PROTOCOL.deploy(Deployment(((0, 1),)), AtomsOptions()).codec
    with pytest.raises(RemoteError):
        codec.decode(codec.encode(message))


@pytest.mark.parametrize("value", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x91\x09", b"\xff" * 40])
def test_a_value_of_the_log_that_is_no_command_is_refused(value: bytes) -> None:
    with pytest.raises(RemoteError, match="not a command of the store"):
        decode(value)


def test_the_store_passes_over_a_value_that_is_no_command() -> None:
    found = lab()
    found.process(STORE)._log.propose(b"\xc1")
    found._collect(STORE)
    found.wait_ms(20)
    assert found.process(STORE).explain().state["commands refused"] == 1
    assert found.finish() == set()
