"""Failures of replicas, clients and the network, one story each: no promise is broken."""

import pytest

from tests.llft import plays
from tests.llft.plays import PLAYS, Play
from tests.llft.plays_pending import PENDING
from tests.llft.plays_semi_passive import SEMI_PASSIVE


@pytest.mark.parametrize("play", (*PLAYS, *SEMI_PASSIVE, *PENDING), ids=lambda play: play.__name__)
def test_promises_are_kept(play: Play) -> None:
    assert play() == set()


def test_two_propose_at_once_with_a_majority() -> None:
    assert plays.two_propose_at_once(majority=True) == set()


def test_a_slow_backup_is_removed() -> None:
    assert plays.backups_are_slow("remove") == set()


def test_backups_follow_a_proposal_with_another_number() -> None:
    assert plays.a_view_begins_with_the_number_of_a_proposal(replicas=6) == set()
