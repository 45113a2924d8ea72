"""Layers: a protocol on any other, that changes what passes through."""

from collections.abc import Mapping

import msgspec
import pytest

from ordercast.catalogue import find_protocol, protocol_names
from ordercast.core import (
    Delivered,
    Deployment,
    Dropped,
    Env,
    Explanation,
    Groups,
    LocalError,
    Member,
    Message,
    NodeId,
    Plan,
    Process,
    RemoteError,
    Wait,
)
from ordercast.core.message import PAYLOAD_BYTES_MAX
from ordercast.protocols.layer import Layer, LayerOptions, layer_protocol
from ordercast.sim import conformance
from ordercast.testing import ProcessDriver

MARK = b"<"


class Marked(Layer):
    """Puts a mark before each payload on its way down, and takes it off on its way up."""

    def wrap(self, payload: bytes) -> bytes:
        return MARK + payload

    def unwrap(self, payload: bytes) -> bytes:
        if not payload.startswith(MARK):
            raise RemoteError("a payload without a mark")
        return payload.removeprefix(MARK)


PROTOCOL = layer_protocol("marked", "Marks payloads.", Marked)


class Note(Message, frozen=True, tag=1):
    payload: bytes


class Echo(Member):
    """Delivers what it is told; takes everything; something waits."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.taken: list[tuple[Groups, bytes]] = []

    def submit(self, groups: Groups, payload: bytes) -> bool:
        self.taken.append((groups, payload))
        return True

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Note)
        self.env.deliver(Delivered(message.payload, (0,), source))
        self.env.deliver(Dropped(0, 1, 2))

    def explain(self) -> Explanation:
        return Explanation({"role": "echo"}, (Wait("one", "time", 1, b"<abc"), Wait("two", "time", 2)))


class Silent(Process):
    """No member."""

    def on_message(self, source: NodeId, message: Message) -> None:
        pass

    def explain(self) -> Explanation:
        return Explanation({})


def plan(deployment: Deployment, options: Mapping[str, object]) -> Plan:
    return PROTOCOL.deploy(deployment, msgspec.convert(options, PROTOCOL.options))


def on(below: type[Process]) -> ProcessDriver[Marked]:
    return ProcessDriver(lambda env: Marked(env, below, (Note,)))


@pytest.mark.parametrize("over", [name for name in protocol_names() if find_protocol(name).serves])
def test_a_layer_does_not_stand_between_a_service_and_its_clients(over: str) -> None:
    with pytest.raises(
        LocalError, match=f"cannot be a layer on {over}: its replicas execute what clients submit"
    ):
        plan(Deployment.disjoint(1, 3, 1), {"over": over})


@pytest.mark.parametrize("over", [name for name in protocol_names() if not find_protocol(name).serves])
def test_a_layer_keeps_the_promises_of_any_protocol_below(over: str) -> None:
    assert conformance(lambda deployment: plan(deployment, {"over": over}), range(1)) == []


def test_payloads_go_down_wrapped_and_come_up_as_they_were() -> None:
    driver = on(Echo)
    assert driver.process.submit((0,), b"abc")
    assert driver.process.below.taken == [((0,), b"<abc")]  # type: ignore[attr-defined]
    driver.receive(3, Note(b"<abc"))
    assert driver.take_delivered() == [Delivered(b"abc", (0,), 3), Dropped(0, 1, 2)]
    assert [wait.payload for wait in driver.process.explain().waits] == [b"abc", None]


def test_what_no_correct_peer_sends_is_refused() -> None:
    with pytest.raises(RemoteError, match="without a mark"):
        on(Echo).receive(3, Note(b"abc"))


def test_a_layer_refuses_what_becomes_too_long_and_what_nobody_takes() -> None:
    with pytest.raises(LocalError, match="the limit is"):
        on(Echo).process.submit((0,), bytes(PAYLOAD_BYTES_MAX))
    with pytest.raises(LocalError, match="is not a sender"):
        on(Silent).process.submit((0,), b"abc")


def test_infrastructure_stays_as_it_is() -> None:
    made = plan(Deployment.disjoint(1, 3, 1), {"over": "hydra"})
    named = {*made.senders, *made.groups[0]}
    for node in made.nodes:
        process = node.factory(ProcessDriver(Silent, me=node.id).env)
        assert isinstance(process, Marked) == (node.id in named), node.role


def test_defaults_and_actions_are_those_of_the_protocol_below() -> None:
    over_hydra = {"over": "hydra", "below": {"sequencers": 3}}
    assert PROTOCOL.action("add-sequencer", over_hydra).name == "add-sequencer"
    with pytest.raises(LocalError, match="marked has no action 'add-sequencer'; its actions are: none"):
        PROTOCOL.action("add-sequencer", {})
    written = PROTOCOL.cluster_options(over_hydra, programs=True)
    assert written == {"over": "hydra", "below": {"spares": 1, "durable": True, "sequencers": 3}}
    assert PROTOCOL.cluster_options({}, programs=True) == {}
    live = PROTOCOL.live_options(over_hydra)["below"]
    assert isinstance(live, dict)
    assert (live["flush"], live["sequencers"]) == ("nudged", 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"over": "marked"}, "marked cannot be a layer on itself"),
        ({"over": "nothing"}, "no protocol 'nothing'"),
        ({"over": "hydra", "below": {"sequencer": 3}}, "marked: options of hydra: .*sequencer"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(LocalError, match=said):
        plan(Deployment.disjoint(1, 3, 1), options)


def test_a_layer_takes_its_own_options_only() -> None:
    from ordercast.protocols.unordered import PROTOCOL as UNORDERED

    with pytest.raises(LocalError, match="takes LayerOptions"):
        PROTOCOL.deploy(Deployment.disjoint(1, 1, 1), UNORDERED.options())
    assert issubclass(PROTOCOL.options, LayerOptions)
