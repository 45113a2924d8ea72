"""What no correct process says of epochs is refused, and changes nothing."""

import pytest

from ordercast.core import Message, RemoteError
from ordercast.protocols.hydra.limits import CLOCK_AHEAD_MAX, NUMBERS_MAX
from ordercast.protocols.hydra.messages import Announce, Rebirth, Report, Steps
from ordercast.transactions.eris.messages import EpochRequest
from ordercast.transactions.eris.ordering import EPOCHS_MAX
from tests.eris.lab import EpochLab
from tests.hydra_txn.lab import CLIENT, SERVICE

COORDINATOR = 41


def shape(lab: EpochLab) -> tuple[object, ...]:
    """All of the coordinator and of replica 1 that a message about epochs could change."""
    coordinator, ordering = lab.coordinator(COORDINATOR), lab.ordering(1)
    return (
        coordinator.snapshot(),
        coordinator.is_changing,
        tuple(coordinator._reports.lacking),
        ordering.state(),
        ordering._heard,
    )


def refuse(to: int, source: int, message: Message, match: str) -> None:
    """Let a message come, which must be refused and leave everything as it is."""
    lab = EpochLab()
    lab.call("a")
    before = shape(lab)
    with pytest.raises(RemoteError, match=match):
        lab.drivers[to].receive(source, message)
    assert shape(lab) == before
    assert lab.drivers[to].take_sent() == []
    lab.finish("a")


@pytest.mark.parametrize(
    ("message", "match"),
    [
        (EpochRequest(EPOCHS_MAX, 22, EPOCHS_MAX), "tells of epoch"),
        (EpochRequest(3, 22, 1), "tells of epoch 3 after 1 steps"),
        (EpochRequest(0, 22, 2), "no sequencer 0"),
        (EpochRequest(2, 3, 2), "no sequencer 2 at node 3"),
        (EpochRequest(2, SERVICE[0], 2), "no sequencer 2 at node 31"),
        (Report(0, 1, 100, (1,)), "reports numbers of 1 groups"),
        (Report(0, 1, 100, (1, NUMBERS_MAX + 1)), "no sequencer reaches"),
        (Report(0, 1, 2 * CLOCK_AHEAD_MAX, (1, 1)), "no sequencer reaches"),
        (Rebirth(2 * CLOCK_AHEAD_MAX), "too far ahead"),
    ],
)
def test_a_coordinator_refuses_what_cannot_be(message: Message, match: str) -> None:
    refuse(COORDINATOR, 0, message, match)


@pytest.mark.parametrize(
    "message",
    [EpochRequest(2, 22, 2), Report(0, 1, 100, (1, 1)), Rebirth(1)],
    ids=lambda message: type(message).__name__,
)
@pytest.mark.parametrize("source", [CLIENT, 21, SERVICE[0]])
def test_a_coordinator_hears_replicas_alone(message: Message, source: int) -> None:
    refuse(COORDINATOR, source, message, "is no replica")


def test_a_coordinator_believes_the_controllers_more_than_a_replica() -> None:
    """Whoever is heard first."""
    lab = EpochLab()
    for node in lab.coordinators:
        lab.drivers[node].receive(SERVICE[0], Announce(2, ((2, 22),), None, None))
    with pytest.raises(RemoteError, match="tells of another sequencer of epoch 2"):
        lab.drivers[COORDINATOR].receive(0, EpochRequest(2, 23, 2))
    lab.drivers[COORDINATOR].receive(0, EpochRequest(3, 24, 4))
    lab.drivers[COORDINATOR].receive(SERVICE[0], Announce(4, ((3, 23),), None, None))
    assert lab.coordinator(COORDINATOR)._wanted == (3, 23)


@pytest.mark.parametrize("source", [0, 4, CLIENT, 21, SERVICE[0]])
def test_replicas_begin_an_epoch_at_the_word_of_coordinators_alone(source: int) -> None:
    lab = EpochLab()
    lab.next_epoch(2)
    steps = lab.coordinator(COORDINATOR).epochs.since(0)
    refuse(1, source, Steps(*steps), "is not of the service")


@pytest.mark.parametrize("source", [0, 4, CLIENT, 21])
def test_replicas_hear_of_an_epoch_from_controllers_alone(source: int) -> None:
    refuse(1, source, Announce(2, ((2, 22),), None, None), "is not of the service")


@pytest.mark.parametrize(
    ("epoch", "node", "steps", "match"),
    [
        (EPOCHS_MAX, 22, EPOCHS_MAX, "tells of epoch"),
        (999, 22, 2, "tells of epoch 999 after 2 steps"),
        (2, 3000, 2, "names sequencer"),
    ],
)
def test_a_replica_refuses_epochs_that_cannot_be(epoch: int, node: int, steps: int, match: str) -> None:
    refuse(1, SERVICE[0], Announce(steps, ((epoch, node),), None, None), match)


def test_it_says_who_has_not_reported() -> None:
    lab = EpochLab()
    lab.lost = lambda source, to, message: isinstance(message, Report) and source > 3
    lab.next_epoch(2)
    lab.wait_ms(3)
    (wait,) = lab.coordinator(COORDINATOR).explain_own().waits
    assert (wait.subject, wait.on) == ("epoch 2", (4, 5))
    assert "a majority" not in wait.blocker
    waits = [one for one in lab.ordering(0).waits() if one.subject == "epoch 2"]
    assert [one.on for one in waits] == [lab.coordinators]
    lab.finish()
