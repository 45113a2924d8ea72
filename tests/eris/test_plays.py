"""What becomes of epochs that end, one story each."""

from collections.abc import Callable

import pytest

from ordercast.core import Message, NodeId
from tests.deep import deep_between
from tests.eris import losses, plays
from tests.eris.lab import ABOUT_EPOCHS
from tests.hydra_txn.plays import TOLD


@pytest.mark.parametrize("play", plays.PLAYS, ids=lambda play: play.__name__)
def test_promises_are_kept(play: Callable[[], None]) -> None:
    play()


@pytest.mark.parametrize("kind", (*ABOUT_EPOCHS, *TOLD))
def test_one_kind_of_message_is_lost_for_a_while(kind: type[Message]) -> None:
    losses.one_kind_is_lost_for_a_while(kind)


@pytest.mark.parametrize("number", deep_between(range(1, 19, 2)))
@pytest.mark.parametrize("kind", (*ABOUT_EPOCHS, *TOLD))
def test_one_message_is_lost(kind: type[Message], number: int) -> None:
    losses.first_of_a_kind_is_lost(kind, number)


@pytest.mark.parametrize("node", [None, 0, 1, 3, 4], ids=["chief", "0", "1", "3", "4"])
@pytest.mark.parametrize("number", deep_between(range(1, 41, 3)))
def test_a_process_crashes_on_the_way_to_an_epoch(number: int, node: NodeId | None) -> None:
    assert losses.a_process_crashes(number, node)
