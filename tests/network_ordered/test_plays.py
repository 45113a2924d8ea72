"""Failures of replicas, sequencers and the network, one story each."""

from collections.abc import Callable

import pytest

from tests.network_ordered import plays
from tests.network_ordered.plays_catching_up import CATCHING_UP
from tests.network_ordered.plays_deaf import DEAF
from tests.network_ordered.plays_logs import LOGS
from tests.network_ordered.plays_reports import REPORTS
from tests.network_ordered.plays_traps import TRAPS

ALL = (*plays.PLAYS, *TRAPS, *REPORTS, *LOGS, *CATCHING_UP, *DEAF)


@pytest.mark.parametrize("play", ALL, ids=lambda play: play.__name__)
def test_promises_are_kept(play: Callable[[], None]) -> None:
    play()


@pytest.mark.parametrize("acked", [False, True])
def test_a_leader_dies_while_it_gives_up(acked: bool) -> None:
    plays.a_leader_dies_while_it_gives_up(acked)
