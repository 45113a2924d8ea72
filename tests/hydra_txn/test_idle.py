"""A shard that takes part in nothing, while another one loses messages."""

import pytest

from ordercast.components.cross_shard import FailureCoordinator, coordinator
from ordercast.core import MILLISECOND, Message, NodeId
from ordercast.protocols.hydra.messages import Groupcast
from tests.logged_shards.lab import ALSO_HERE, HERE, ShardsWorld, transfer

LOST = 6
OPTIONS = {"replicas": {"checkpoint_every": 1}, "coordinator": {"certain_ns": 5 * MILLISECOND}}


@pytest.mark.parametrize("few", [1, coordinator.RULINGS_FEW], ids=["beyond the limit", "below it"])
def test_decisions_are_forgotten_although_a_shard_is_idle(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "RULINGS_FEW", few)
    world = ShardsWorld("hydra_txn", options=OPTIONS)
    world.run_ms(50)

    def lost(source: NodeId, to: NodeId, message: Message) -> bool:
        return isinstance(message, Groupcast) and message.sender == world.CLIENT

    world.lost = lost
    for _ in range(LOST):
        world.call(transfer(HERE, ALSO_HERE, 1))
    world.run_ms(10)
    world.lost = lambda source, to, message: False
    world.run_ms(30)
    processes = [env.process for env in world.envs]
    coordinators = [process for process in processes if isinstance(process, FailureCoordinator)]
    assert [len(one._rulings) for one in coordinators] == [LOST] * 3
    world.run_ms(100)
    assert [len(one._rulings) for one in coordinators] == [LOST if few > 1 else 0] * 3
    assert world.violations() == []
