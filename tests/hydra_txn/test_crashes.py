"""A host that crashes at any step of a transaction with HydraTxn."""

import pytest

from ordercast.components.cross_shard import ShardReplica
from ordercast.core import MILLISECOND
from tests.deep import deep_after, deep_between
from tests.hand_driven import require
from tests.logged_shards.lab import LOCK_MS, ShardsWorld
from tests.logged_shards.trouble import STORIES, a_host_crashes

OPTIONS = {"replicas": {"checkpoint_every": 1}, "coordinator": {"lock_ns": LOCK_MS * MILLISECOND}}


class TxnWorld(ShardsWorld):
    """Two shards of HydraTxn, whose clients know the sequencers."""

    SETTLE_MS = 4 * LOCK_MS

    def __init__(self) -> None:
        super().__init__("hydra_txn", options=OPTIONS)
        self.run_ms(50)

    def first(self, role: str) -> int:
        """The first host with a role."""
        return next(node.host for node in self.plan.nodes if node.role == role)

    def require_settled(self) -> None:
        """No transaction is pending in any shard."""
        for node in self.REPLICAS:
            replica = self.envs[node].process
            assert isinstance(replica, ShardReplica)
            shard = replica.ledger.executor.shard
            require(shard is not None and not shard.pending, f"node {node} holds locks")


@pytest.mark.parametrize("who", [0, 1, 3, ShardsWorld.CLIENT, "sequencer", "coordinator"])
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("number", deep_between(range(20, 80, 30)) + deep_after(0, range(1, 20)))
def test_a_host_crashes_at_any_step(number: int, story: str, who: int | str) -> None:
    world = TxnWorld()
    node = who if isinstance(who, int) else world.first(who)
    assert a_host_crashes(world, story, node, number)
