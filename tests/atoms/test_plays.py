"""Each play ends with all promises kept."""

from collections.abc import Callable

import pytest

from tests.atoms.plays import PLAYS


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
def test_a_play_ends_well(play: Callable[[], set[str]]) -> None:
    assert play() == set()
