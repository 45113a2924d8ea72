"""States with what no application was told of: nobody is answered too early, and it is told once."""

import pytest

from tests.llft import plays_pending
from tests.llft.mutants import Mutant
from tests.llft.plays import Play
from tests.llft.plays_pending import MUTANTS, PENDING


@pytest.mark.parametrize("play", PENDING, ids=lambda play: play.__name__)
def test_promises_are_kept(play: Play) -> None:
    assert play() == set()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_breaks_a_promise(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutant.owner, mutant.attribute, mutant.value)
    assert mutant.breaks in mutant.play()


@pytest.mark.parametrize("replication", ["semi-active", "semi-passive"])
@pytest.mark.parametrize("forgets", [False, True])
def test_who_forgets_its_earlier_life_tells_too(replication: str, forgets: bool) -> None:
    play = plays_pending.a_newcomer_follows_a_primary_that_has_told_nobody
    assert play(forgets=forgets, replication=replication) == set()
    assert plays_pending.a_newcomer_has_calls_of_an_earlier_view(forgets=forgets) == set()


def test_what_is_not_settled_travels_in_parts() -> None:
    play = plays_pending.a_newcomer_follows_a_primary_that_has_told_nobody
    assert play(text="b" * 150_000) == set()
