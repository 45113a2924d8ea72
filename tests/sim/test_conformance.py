"""The conformance suite: passes what keeps its contract, and each clause catches what it is for."""

from collections.abc import Callable
from itertools import count

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import (
    Codec,
    Delivered,
    Deployment,
    Env,
    Explanation,
    Fault,
    Groups,
    Guarantees,
    LocalError,
    Message,
    Node,
    NodeId,
    Payload,
    Plan,
    Process,
)
from ordercast.protocols.unordered.protocol import Data, Receiver, Sender
from ordercast.scenario.swarm import MakePlan
from ordercast.sim.conformance import conformance

SEEDS = range(4)


def plans(
    receiver: Callable[[Env], Process] | None = None,
    sender: type[Sender] = Sender,
    codec: Codec | None = None,
    tolerates: tuple[Fault, ...] | None = None,
) -> MakePlan:
    """Plans of unordered multicast with one part replaced."""
    protocol = find_protocol("unordered")

    def make(deployment: Deployment) -> Plan:
        plan = protocol.deploy(deployment, protocol.options())
        nodes = tuple(
            Node(
                node.id,
                node.role,
                node.host,
                (lambda env: sender(env, plan.groups))
                if node.role == "sender"
                else receiver or (lambda env: Receiver(env, 4096)),
            )
            for node in plan.nodes
        )
        promised = plan.guarantees if tolerates is None else Guarantees(tolerates=tolerates)
        return Plan("variant", promised, nodes, plan.groups, plan.senders, codec or plan.codec)

    return make


def clauses(make_plan: MakePlan, seeds: range = SEEDS) -> set[str]:
    return {failure.clause for failure in conformance(make_plan, seeds)}


def test_unordered_multicast_passes() -> None:
    assert conformance(plans(), range(6)) == []


def test_a_contract_without_faults_is_tried_without_them() -> None:
    assert conformance(plans(tolerates=()), range(3)) == []


class Lossy(Receiver):
    """Forgets every third packet."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Data)
        if message.number % 3:
            super().on_message(source, message)


def test_calm_catches_a_message_that_does_not_arrive() -> None:
    failures = conformance(plans(lambda env: Lossy(env, 4096)), SEEDS)
    calm = [failure for failure in failures if failure.clause == "calm"]
    assert {failure.seed for failure in calm} == set(SEEDS)
    assert all("deliveries on a network without faults" in failure.message for failure in calm)


class Credulous(Receiver):
    """Delivers a duplicate again."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Data)
        self.env.deliver(Delivered(message.payload, message.groups, source))


def test_the_clause_of_a_fault_catches_what_only_that_fault_shows() -> None:
    found = clauses(plans(lambda env: Credulous(env, 1), tolerates=(Fault.DUPLICATION,)))
    assert "fault: duplication" in found
    assert "calm" not in found


def test_the_swarm_catches_it_too() -> None:
    found = clauses(plans(lambda env: Credulous(env, 1)), range(8))
    assert "swarm" in found


def test_determinism_catches_what_is_carried_from_run_to_run() -> None:
    lives = count()

    class Forgetful(Receiver):
        def __init__(self, env: Env, window: int) -> None:
            super().__init__(env, window)
            self.life = next(lives)

        def on_message(self, source: NodeId, message: Message) -> None:
            if self.life * self.life % 7 != 2:
                super().on_message(source, message)

    assert "determinism" in clauses(plans(lambda env: Forgetful(env, 4096)))


class Mutable(Message, frozen=True, tag=1):
    groups: Groups
    payload: Payload
    trail: list[int]


class Scribbler(Sender):
    """Goes on writing into what it has sent."""

    def submit(self, groups: Groups, payload: bytes) -> bool:
        message = Mutable(groups, payload, [])
        self.env.multicast(self._receivers(groups), message)
        message.trail.append(1)
        return True


class Reader(Process):
    """Delivers what nobody wrote into."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Mutable)
        if not message.trail:
            self.env.deliver(Delivered(message.payload, message.groups, source))

    def explain(self) -> Explanation:
        return Explanation({})


def test_codec_catches_a_message_that_is_changed_after_it_was_sent() -> None:
    assert "codec" in clauses(plans(Reader, Scribbler, Codec([Mutable]), tolerates=()))


class Talkative(Receiver):
    """Says something when it is asked to explain itself."""

    def explain(self) -> Explanation:
        self.env.deliver(Delivered(b"since you ask", (0,), self.env.me))
        return super().explain()


def test_explain_catches_an_explanation_that_changes_the_run() -> None:
    assert clauses(plans(lambda env: Talkative(env, 4096), tolerates=())) == {"explain"}


class Careless(Sender):
    """Takes messages to nobody."""

    def submit(self, groups: Groups, payload: bytes) -> bool:
        try:
            return super().submit(groups, payload)
        except LocalError:
            return True


def test_bad_input_catches_a_sender_that_takes_messages_to_nobody() -> None:
    failures = conformance(plans(sender=Careless, tolerates=()), range(1))
    assert {failure.clause for failure in failures} == {"bad input"}
    assert [failure.message for failure in failures] == [
        "a message to groups (99,) was accepted",
        "a message to groups () was accepted",
    ]


@pytest.mark.parametrize("seed", [0, 7])
def test_a_failure_names_its_seed(seed: int) -> None:
    failures = conformance(plans(sender=Careless, tolerates=()), [seed])
    assert {failure.seed for failure in failures} == {seed}
