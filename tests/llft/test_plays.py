"""Failures of replicas, clients and the network, one story each: no promise is broken."""

import pytest

from tests.llft import plays
from tests.llft.plays import PLAYS, Play


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
def test_promises_are_kept(play: Play) -> None:
    assert play() == set()


def test_two_propose_at_once_with_a_majority() -> None:
    assert plays.two_propose_at_once(majority=True) == set()


def test_a_slow_backup_is_removed() -> None:
    assert plays.backups_are_slow("remove") == set()
