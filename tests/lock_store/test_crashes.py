"""A host that crashes at any step of a transaction with Lock-Store."""

import pytest

from tests.deep import deep_after
from tests.lock_store.lab import StoreWorld
from tests.logged_shards.trouble import STORIES, a_host_crashes


@pytest.mark.parametrize("node", [0, 1, 3, StoreWorld.CLIENT], ids=["leader", "follower", "other", "client"])
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("step", deep_after(1, (5, 1)))
def test_a_host_crashes_at_any_step(step: int, story: str, node: int) -> None:
    reached = [a_host_crashes(StoreWorld(), story, node, number) for number in range(1, 100, step)]
    assert all(reached)
