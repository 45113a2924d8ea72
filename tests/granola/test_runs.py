"""Whole runs without faults: every workload, reads, and a service without shards."""

import pytest

from ordercast.components.consensus.messages import Commit, Heard
from ordercast.core import Message, NodeId
from ordercast.scenario import Scenario
from ordercast.sim import simulate
from ordercast.trace import READ, Kind
from tests.granola.lab import GranolaWorld
from tests.logged_shards.lab import ALSO_HERE, FAR, HERE, transfer


@pytest.mark.parametrize("conflicts_max", [0, 2, 1000])
@pytest.mark.parametrize("service", ["bank", "ycsb", "ycsb_two", "ycsb_zipf", "retwis", "list_append"])
def test_every_workload(service: str, conflicts_max: int) -> None:
    options = {"conflicts_max": conflicts_max}
    run = simulate(
        Scenario(protocol="granola", service=service, groups=3, senders=3, seed=5, options=options)
    )
    assert run.violations == [] and run.description.complete
    assert run.ending == "settled"


def test_a_service_without_shards_and_its_reads() -> None:
    run = simulate(Scenario(protocol="granola", service="kv", groups=2, senders=3, seed=5))
    assert run.violations == [] and run.ending == "settled"
    read = {event.message for event in run.events() if event.kind is Kind.SUBMIT and event.label == READ}
    assert read and read <= {event.message for event in run.events() if event.kind is Kind.REPLY}


@pytest.mark.parametrize(("groups", "packets"), [((HERE, ALSO_HERE), 6), (FAR, 12)])
def test_what_a_transaction_costs_a_leader(groups: tuple[str, str], packets: int) -> None:
    """Without heartbeats, and without commit notices, which ride on the next Accept of a busy leader."""
    world = GranolaWorld()
    carried: list[Message] = []

    def count(source: NodeId, to: NodeId, message: Message) -> bool:
        if 0 in (source, to) and not isinstance(message, Commit | Heard):
            carried.append(message)
        return False

    world.lost = count
    message = world.call(transfer(*groups, 5))
    world.run_ms(5)
    assert world.answered(message)
    assert len(carried) == packets


def test_reads_of_several_shards_need_no_votes() -> None:
    """A transaction is no read, so the shards say that it failed; but they do say so."""
    world = GranolaWorld()
    answers = []
    for _ in range(2):
        message = world.submit(world.CLIENT, (0, 1), transfer(*FAR, 5), READ)
        assert message is not None
        world.run_ms(20)
        answers.append(world.calls.results.get(message))
        assert not world.deliverers(message) and not world.records(0)
    assert all(answer is not None and b"not a read" in answer for answer in answers)
