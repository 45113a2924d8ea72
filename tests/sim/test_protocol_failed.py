"""A handler that raises is a finding of its own: it names node, time, event, exception and line."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ordercast.catalogue import find_protocol
from ordercast.core import (
    FAILED,
    Delivered,
    Deployment,
    Env,
    Explanation,
    Groups,
    LocalError,
    Message,
    NodeId,
    Plan,
    Process,
)
from ordercast.judge import audit, judge, may_be_parted
from ordercast.protocols.unordered.protocol import Data, Receiver, Sender
from ordercast.scenario.spec import Scenario, WorkloadSpec
from ordercast.sim.conformance import conformance
from ordercast.sim.run import Run, simulate
from ordercast.trace import Kind, events_of, find_runs

HERE = "tests/sim/test_protocol_failed.py:"
SCENARIO = Scenario(protocol="unordered", workload=WorkloadSpec(messages=10))


class Careless(Receiver):
    """Believes that no message has the number 5."""

    def on_message(self, source: NodeId, message: Message) -> None:
        """Look up what is not there."""
        assert isinstance(message, Data)
        if message.number == 5:
            [].pop()
        super().on_message(source, message)


class Impatient(Receiver):
    """Has a timer that it does not know."""

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Set it."""
        super().on_start(saved)
        self.env.set_timer("alarm", 3_000_000)

    def on_timer(self, name: str) -> None:
        """Not known."""
        raise KeyError(name)


class Misrouting(Receiver):
    """Sends to a node that does not exist."""

    def on_message(self, source: NodeId, message: Message) -> None:
        """Answer nobody."""
        self.env.send(-1, message)


class Stillborn(Receiver):
    """Does not start."""

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Fail without a word."""
        raise ZeroDivisionError


class Mute(Receiver):
    """Cannot explain itself."""

    def explain(self) -> Explanation:
        """Fail."""
        raise RuntimeError("no words")


class Refusing(Sender):
    """Fails when a message is submitted."""

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Divide."""
        raise OverflowError("too much")


def broken(make: Callable[[Env], Process], role: str = "receiver") -> Callable[[Deployment], Plan]:
    """Plans of unordered multicast in which the first node of a role is of another make."""
    protocol = find_protocol("unordered")

    def plan(deployment: Deployment) -> Plan:
        whole = protocol.deploy(deployment, protocol.options())
        chosen = next(node.id for node in whole.nodes if node.role == role)
        nodes = (replace(node, factory=make) if node.id == chosen else node for node in whole.nodes)
        return replace(whole, nodes=tuple(nodes))

    return plan


def receiver(make: type[Receiver]) -> Callable[[Deployment], Plan]:
    """The first receiver is of another make."""
    return broken(lambda env: make(env, 4096))


def run_of(make_plan: Callable[[Deployment], Plan]) -> Run:
    """A run of ten messages to three receivers."""
    return simulate(SCENARIO, make_plan(SCENARIO.deployment()))


@pytest.mark.parametrize(
    ("make", "event", "error"),
    [
        (Careless, "Data(number=5, groups=[0], payload=<3#4>) from node 3", "IndexError: pop from empty"),
        (Impatient, "its timer 'alarm'", "KeyError: 'alarm'"),
        (Misrouting, "from node 3", "LocalError: node 0 sends to node -1"),
        (Stillborn, "its start", "ZeroDivisionError"),
        (Mute, "a call of explain()", "RuntimeError: no words"),
    ],
)
def test_a_handler_that_raises_is_a_finding_of_its_own(make: type[Receiver], event: str, error: str) -> None:
    run = run_of(receiver(make))
    (found,) = run.violations
    assert (found.property, found.nodes, found.messages) == (FAILED, (0,), ())
    assert found.headline() == FAILED
    assert found.detail.startswith("node 0 failed at ")
    for part in (event, error, HERE):
        assert part in found.detail
    assert not run.description.complete and run.hindrance == "the protocol failed"
    assert run.summary().ending == FAILED


def test_a_submission_that_raises_is_a_finding_unless_the_protocol_refuses_it() -> None:
    (found,) = run_of(broken(lambda env: Refusing(env, {0: (0, 1, 2)}), "sender")).violations
    assert "node 3 failed" in found.detail and "a submission: OverflowError: too much" in found.detail

    class Strict(Sender):
        def submit(self, groups: Groups, payload: bytes) -> bool:
            raise LocalError("not these groups")

    with pytest.raises(LocalError, match="not these groups"):
        run_of(broken(lambda env: Strict(env, {0: (0, 1, 2)}), "sender"))


def test_the_run_up_to_the_failure_is_kept_and_judged(tmp_path: Path) -> None:
    run = run_of(receiver(Careless))
    delivered = [event for event in run.events() if event.kind is Kind.DELIVER and event.node == 0]
    assert len(delivered) == 4, "numbers 1 to 4 came before number 5"
    assert run.duration_ns == run.violations[0].times_ns[0]
    run.write(tmp_path)
    (stored,) = find_runs(tmp_path)
    assert judge(stored.description, events_of(stored.table())) == run.violations
    assert audit(stored.description, stored.table()).violations == run.violations
    assert not may_be_parted(stored.description)


def test_what_was_broken_before_the_failure_is_told_too() -> None:
    class Repeating(Careless):
        """Delivers number 2 twice."""

        def on_message(self, source: NodeId, message: Message) -> None:
            super().on_message(source, message)
            assert isinstance(message, Data)
            if message.number == 2:
                self.env.deliver(Delivered(message.payload, message.groups, source))

    assert [found.property for found in run_of(receiver(Repeating)).violations] == ["integrity", FAILED]


def test_the_same_seed_fails_in_the_same_way() -> None:
    assert run_of(receiver(Careless)).violations == run_of(receiver(Careless)).violations


def test_conformance_names_the_failure() -> None:
    found = conformance(receiver(Stillborn), range(1))
    assert {failure.property for failure in found} >= {FAILED}
    assert "exception" not in {failure.property for failure in found}
    assert all(HERE in failure.message for failure in found if failure.property == FAILED)
