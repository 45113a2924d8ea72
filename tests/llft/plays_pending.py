"""Plays of states that are not settled as far as their donor knows: only the newcomer makes a majority.

It must not answer before one has them, and what is settled in the end must be told to some application.
"""

from typing import Any

from ordercast.core import NodeId
from ordercast.replication.llft.messages import Copy, Heartbeat, Progress, Request, State
from ordercast.replication.llft.notices import Notices, Pending
from ordercast.replication.llft.performing import Performer
from ordercast.replication.llft.primary import Primary
from ordercast.replication.llft.standing import Standing
from tests.llft.lab import Lab, kinds
from tests.llft.mutants import Mutant
from tests.llft.plays import Play


def lab_of(replicas: int = 3, **options: Any) -> Lab:
    """Replicas that need a majority, and one call that all know of."""
    lab = Lab(replicas, require_majority=True, **options)
    lab.call("a")
    lab.wait_ms(20)
    return lab


def come_back(lab: Lab, node: NodeId, *, forgets: bool) -> None:
    """A replica starts again and gets the state; nobody hears that it has it."""
    lab.lost = kinds(Progress)
    (lab.start_anew if forgets else lab.start)(node)
    assert lab.wait_ms(200, until=lambda: lab.standing(node) is Standing.BACKUP)


def follow(lab: Lab, node: NodeId, primary: NodeId) -> set[str]:
    """A backup misses its primary, and becomes primary with its consent; whether it answers too early."""
    lab.lost = lambda source, to, message: (
        isinstance(message, Progress) or (isinstance(message, Heartbeat) and source == primary)
    )
    assert lab.wait_ms(600, until=lambda: lab.standing(node) is Standing.PRIMARY)
    return {"early"} if "b" in lab.answers() else set()


def a_newcomer_follows_a_primary_that_has_told_nobody(
    *, forgets: bool = False, text: str = "b", **options: Any
) -> set[str]:
    """The primary has performed a call alone. It gives the state away, then follows the newcomer, and takes
    that state back: so does the third replica."""
    lab = lab_of(**options)
    lab.crash(1, 2)
    lab.call(text)
    come_back(lab, 1, forgets=forgets)
    early = follow(lab, 1, 0)
    broken = early | lab.finish()
    return broken | ({"told"} if text not in lab.delivered(1) else set())


def a_newcomer_has_calls_of_an_earlier_view(*, forgets: bool = False) -> set[str]:
    """Two replicas have performed a call, and hear no more of it from their primary. The view of one of them
    is not settled when the other loses its state."""
    lab = lab_of()
    lab.lost = kinds(Progress)
    lab.call("b")
    lab.crash(0)
    assert lab.wait_ms(200, until=lambda: lab.standing(1) is Standing.PRIMARY)
    lab.crash(2)
    come_back(lab, 2, forgets=forgets)
    return follow(lab, 2, 1) | lab.finish()


def an_earlier_life_has_told_more_than_the_primary() -> set[str]:
    """It had heard of its primary what the next primary does not know: its next life must not tell that
    again."""
    lab = lab_of()
    lab.lost = kinds(Heartbeat, source=0, to=1)
    lab.call("b")
    lab.wait_ms(10)
    assert lab.delivered(2) == ["a", "b"] and lab.delivered(1) == ["a"]
    lab.lost = kinds(Progress)
    lab.crash(0)
    assert lab.wait_ms(200, until=lambda: lab.standing(1) is Standing.PRIMARY)
    lab.crash(2)
    come_back(lab, 2, forgets=False)
    return lab.finish()


def only_a_newcomer_has_a_call() -> set[str]:
    """Its primary has crashed, and the backups lack the message: they agree to a view of the newcomer, and
    it crashes as well."""
    lab = lab_of(5)
    behind = (2, 3, 4)
    lab.crash(1)
    lab.lost = lambda source, to, message: to in behind and isinstance(message, Request | Copy)
    lab.call("b")
    lab.start(1)
    assert lab.wait_ms(200, until=lambda: lab.told(1) == ["a", "b"])
    lab.crash(0)
    assert lab.wait_ms(5000, until=lambda: lab.standing(1) is Standing.PRIMARY)
    lab.cut((1,), behind)
    lab.wait_ms(10)
    lab.crash(1)
    return lab.finish()


def the_primary_fails_while_it_gives_a_state_away() -> set[str]:
    """The newcomer has a part of it, and gets all of it from the next primary, which has told nobody."""
    lab = lab_of(5)
    lab.crash(2)
    lab.lost = kinds(Progress)
    lab.call("b" * 150_000)
    lab.start(2)
    lab.lost = lambda source, to, message: (
        isinstance(message, Progress) or (isinstance(message, State) and message.part > 0)
    )
    assert lab.wait_ms(100, until=lambda: lab.count(State) > 2)
    assert lab.standing(2) is Standing.ADMITTED
    lab.crash(0)
    lab.lost = kinds(Progress)
    assert lab.wait_ms(600, until=lambda: lab.standing(2) is Standing.BACKUP)
    assert lab.standing(1) is Standing.PRIMARY
    return lab.finish()


def an_update_is_not_settled() -> set[str]:
    """Semi-passive: a backup that has taken over a state becomes primary, and must not answer for it yet."""
    lab = lab_of(replication="semi-passive", update_every=1)
    lab.crash(2)
    lab.lost = kinds(Progress)
    lab.call("b")
    assert lab.wait_ms(100, until=lambda: lab.told(1) == ["a", "b"])
    return follow(lab, 1, 0) | lab.finish()


PENDING: tuple[Play, ...] = (
    a_newcomer_follows_a_primary_that_has_told_nobody,
    a_newcomer_has_calls_of_an_earlier_view,
    an_earlier_life_has_told_more_than_the_primary,
    only_a_newcomer_has_a_call,
    the_primary_fails_while_it_gives_a_state_away,
    an_update_is_not_settled,
)

_begin = Primary.begin


def pending_nothing(self: Notices, *args: object) -> None:
    """Give a state away without what is not settled of it."""


def hold_nothing_back(self: Performer, pending: Pending | None) -> None:
    """Let messages of a state leave at once."""
    self._outbox.clear()


def count_without_asking(self: Primary, *, synced: bool) -> None:
    """Take the members of a view as knowing all that its primary has got with its state."""
    _begin(self, synced=synced)
    self.settled = self.safe
    for peer in self.peers.values():
        peer.performed = self.safe


def no_earlier_life(self: Notices) -> int:
    """Tell all of a state, whatever an earlier life has told."""
    return 0


MUTANTS = (
    Mutant(
        "a state that does not say what is not settled",
        Notices,
        "pending",
        pending_nothing,
        a_newcomer_follows_a_primary_that_has_told_nobody,
        "told",
    ),
    Mutant(
        "an answer of a state that is not settled",
        Performer,
        "_hold_back",
        hold_nothing_back,
        a_newcomer_follows_a_primary_that_has_told_nobody,
        "early",
    ),
    Mutant(
        "an answer of an update that is not settled",
        Performer,
        "_hold_back",
        hold_nothing_back,
        an_update_is_not_settled,
        "early",
    ),
    Mutant(
        "a new primary that counts members which have not said what they have",
        Primary,
        "begin",
        count_without_asking,
        only_a_newcomer_has_a_call,
        "answers",
    ),
    Mutant(
        "a replica that forgets that it had an earlier life",
        Notices,
        "_first",
        no_earlier_life,
        an_earlier_life_has_told_more_than_the_primary,
        "integrity",
    ),
)
