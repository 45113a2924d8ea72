"""What remains of many epochs."""

import msgspec
import pytest

from ordercast.core import GroupId
from tests.eris.lab import OPTIONS, EpochLab
from tests.hydra_txn.lab import REPLICAS

EPOCHS = 40


@pytest.mark.parametrize("groups", [(0, 1), (0,)], ids=["busy", "idle"])
def test_ended_epochs_are_forgotten(groups: tuple[GroupId, ...]) -> None:
    """Also by a shard that is sent nothing."""
    often = msgspec.structs.replace(OPTIONS.replicas, checkpoint_every=1)
    lab = EpochLab(options=msgspec.structs.replace(OPTIONS, replicas=often))
    for epoch in range(2, EPOCHS):
        lab.call(f"in {epoch - 1}", groups, sequencer=epoch - 1)
        lab.next_epoch(epoch)
        lab.wait_ms(25)
    assert set(lab.epochs()) == {EPOCHS - 1}
    for node in REPLICAS:
        ordering, replica = lab.ordering(node), lab.replica(node)
        assert len(ordering.reception.merge.lanes) <= 3
        assert len(ordering.reception.follower.boundaries) <= 2
        assert len(replica.log.entries) <= 2
        assert not replica.book
        assert not replica.aside
    assert not lab.coordinator(41)._cases
    lab.finish()


def test_replicas_that_wait_keep_few_messages() -> None:
    """The next epoch does not begin, and its sequencer goes on stamping."""
    lab = EpochLab()
    lab.lost = lambda source, to, message: to in lab.coordinators
    lab.next_epoch(2)
    for index in range(3000):
        lab.give(lab.stamp(f"call {index}", sequencer=2), 1)
    follower = lab.ordering(1).reception.follower
    assert len(follower._strangers) == lab.own.network().strangers
