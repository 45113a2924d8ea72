"""What becomes of messages that shards lose, one story each."""

from collections.abc import Callable

import pytest

from ordercast.core import Message, NodeId
from tests.deep import deep_between
from tests.hydra_txn import plays


@pytest.mark.parametrize("play", plays.PLAYS, ids=lambda play: play.__name__)
def test_promises_are_kept(play: Callable[[], None]) -> None:
    play()


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("kind", plays.TOLD)
def test_one_kind_of_message_is_lost_for_a_while(kind: type[Message], is_there: bool) -> None:
    plays.one_kind_is_lost_for_a_while(kind, is_there=is_there)


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("kind", plays.TOLD)
def test_one_message_is_lost(kind: type[Message], number: int, is_there: bool) -> None:
    plays.first_of_a_kind_is_lost(kind, number, is_there=is_there)


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("node", [None, 0, 1, 3, 4], ids=["chief", "0", "1", "3", "4"])
@pytest.mark.parametrize("number", deep_between(range(1, 33, 5)))
def test_a_process_crashes_on_the_way_to_a_decision(number: int, node: NodeId | None, is_there: bool) -> None:
    assert plays.a_process_crashes(number, node, is_there=is_there)
