"""Plays of replicas that join and leave, and what breaks in them if a rule of the seats is left out."""

from typing import Any

from ordercast.replication.llft.messages import Progress
from ordercast.replication.llft.orders import SeatOrder
from ordercast.replication.llft.replica import Replica
from ordercast.replication.llft.seating import Seating
from ordercast.replication.llft.seats import Seats
from tests.llft.lab import Lab
from tests.llft.mutants import Mutant
from tests.llft.plays import Play


def joined(lab: Lab, *nodes: int) -> Lab:
    """Receivers join, and have joined."""
    for node in nodes:
        lab.join(node)
        lab.wait_ms(30)
    return lab


def a_newcomer_hears_what_was_before_its_place() -> set[str]:
    """It performs calls before it has a seat; its application hears only of those after."""
    lab = Lab(joiners=1)
    lab.join(3)
    for text in "abcdef":
        lab.call(text)
        lab.wait_ms(2)
    lab.wait_ms(30)
    return lab.finish()


def both_halves_of_those_with_a_seat() -> set[str]:
    """Two have joined three: a majority of the three alone is none. The two are cut off with the third."""
    lab = joined(Lab(joiners=2, clients=2, require_majority=True), 3, 4)
    lab.cut((0, 1, 5), (2, 3, 4, 6))
    lab.wait_ms(400)
    lab.call("left", 0)
    lab.call("right", 1)
    lab.wait_ms(60)
    return lab.finish()


def a_majority_of_those_who_are_left() -> set[str]:
    """Two of five have left: the three are as many as there must be to lose one."""
    lab = joined(Lab(joiners=2, require_majority=True), 3, 4)
    for node in (0, 3):
        lab.leave(node)
        lab.wait_ms(100)
    lab.crash(1)
    lab.wait_ms(120)
    lab.call("a")
    if not lab.wait_ms(60, until=lambda: bool(lab.answers())):
        return {"validity"}
    return lab.finish()


def everybody_leaves() -> set[str]:
    """All but one: the last one stays until there is another, for nobody else has the state."""
    lab = Lab(2, joiners=1)
    lab.call("a")
    lab.leave(0)
    lab.leave(1)
    lab.wait_ms(200)
    lab.call("b")
    joined(lab, 2)
    lab.wait_ms(200)
    lab.call("c")
    return lab.finish()


def a_backup_leaves_before_its_last_call_is_certain() -> set[str]:
    """It waits until it has delivered what is before its place, and the others have that too."""
    lab = Lab()
    lab.lost = lambda source, to, message: isinstance(message, Progress) and source == 1
    lab.call("a")
    lab.leave(2)
    lab.wait_ms(15)
    lab.heal()
    lab.wait_ms(30)
    heard = [one.text for part in lab.history.lives[2].stretches for one in part]
    return lab.finish() | ({"agreement"} if heard != ["a"] else set())


def a_newcomer_crashes_before_it_has_joined() -> set[str]:
    """It has a seat and does not know it. In its next life it gives that back, and then joins after all."""
    lab = Lab(joiners=1, require_majority=True)
    lab.join(3)
    lab.wait_ms(60, until=lambda: 3 in lab.replica(0).performer.seats.since)
    lab.crash(3)
    lab.start(3)
    lab.wait_ms(30)
    if 3 in lab.replica(0).performer.seats.since:
        return {"joining"}
    return joined(lab, 3).finish()


SEATED: tuple[Play, ...] = (
    a_newcomer_hears_what_was_before_its_place,
    both_halves_of_those_with_a_seat,
    a_majority_of_those_who_are_left,
    everybody_leaves,
    a_backup_leaves_before_its_last_call_is_certain,
    a_newcomer_crashes_before_it_has_joined,
)

_restore = Seats.restore


def speak_at_once(self: Seats, *args: Any) -> None:
    """Tell the application of everything as soon as there is a state."""
    _restore(self, *args)
    self.silent, self.told = False, True


def majority_of_three(self: Replica, seats: object) -> int:
    """Two, as at the start."""
    return 2


def majority_of_five(self: Replica, seats: object) -> int:
    """Three, as many as there must be of all who ever had a seat."""
    return 3


def change_alone(self: Seating, node: int, *, joins: bool) -> None:
    """Let the last one go too."""
    self._replica.primary.append(SeatOrder(node, joins))


def go_at_once(self: Seating) -> None:
    """Go without a look at what is settled, or who has the state."""
    seats, notices = self._replica.performer.seats, self._replica.performer.notices
    notices.confirmed = notices.settled = max(seats.left_at or 0, notices.settled)
    self.left = True
    self._env.save("started", b"")


def say_nothing(self: object, *args: object) -> None:
    """Keep a seat that is not used."""


MUTANTS = (
    Mutant(
        "a newcomer that delivers before it has joined",
        Seats,
        "restore",
        speak_at_once,
        a_newcomer_hears_what_was_before_its_place,
        "tenure",
    ),
    Mutant(
        "a majority of the first members",
        Replica,
        "majority_of",
        majority_of_three,
        both_halves_of_those_with_a_seat,
        "answers",
    ),
    Mutant(
        "a majority of all who ever had a seat",
        Replica,
        "majority_of",
        majority_of_five,
        a_majority_of_those_who_are_left,
        "validity",
    ),
    Mutant(
        "a last member that leaves",
        Seating,
        "conclude",
        go_at_once,
        everybody_leaves,
        "validity",
        also=((Seating, "_change", change_alone),),
    ),
    Mutant(
        "a backup that leaves without what is before its place",
        Seating,
        "conclude",
        go_at_once,
        a_backup_leaves_before_its_last_call_is_certain,
        "agreement",
    ),
    Mutant(
        "a seat that is never given back",
        Seating,
        "on_ask",
        say_nothing,
        a_newcomer_crashes_before_it_has_joined,
        "joining",
    ),
)
