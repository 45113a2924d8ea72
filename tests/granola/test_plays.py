"""What becomes of transactions when messages, leaders and clients are lost, one story each."""

from collections.abc import Callable

import pytest

from ordercast.components.logged_service.messages import Redirect
from ordercast.core import Message
from ordercast.transactions.granola.messages import Ask, Request, Told, Vote
from tests.deep import deep_after
from tests.granola import trouble
from tests.granola.general_plays import GENERAL_PLAYS
from tests.granola.lab import GranolaWorld
from tests.granola.plays import PLAYS
from tests.logged_shards.trouble import STORIES, a_host_crashes

KINDS = (Request, Vote, Told, Ask, Redirect)


@pytest.mark.parametrize("play", (*PLAYS, *GENERAL_PLAYS), ids=lambda play: play.__name__)
def test_promises_are_kept(play: Callable[[], None]) -> None:
    play()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("story", STORIES)
def test_one_kind_of_message_is_lost_for_a_while(story: str, kind: type[Message]) -> None:
    trouble.a_kind_is_lost_for_a_while(story, kind)


@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("kind", (Request, Vote, Told))
@pytest.mark.parametrize("story", STORIES)
def test_one_message_is_lost(story: str, kind: type[Message], number: int) -> None:
    trouble.one_message_is_lost(story, kind, number)


@pytest.mark.parametrize("node", [0, 1, 3, 6])
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("step", deep_after(1, (3, 1)))
def test_a_host_crashes_at_any_step(step: int, story: str, node: int) -> None:
    reached = [a_host_crashes(GranolaWorld(), story, node, number) for number in range(1, 60, step)]
    assert all(reached)
