"""Every switch of section 5, with a crash or an exclusion of each member after every message of it."""

from collections.abc import Callable, Iterable
from itertools import count, cycle

import pytest

from ordercast.components.ticketing.modes import MODES, Mode, ModeEvent
from ordercast.components.ticketing.participant import Participant
from ordercast.core import NodeId
from tests.core.life_cycles import record
from tests.ticketing.hall import Hall
from tests.ticketing.test_any_order import judge

MEMBERS = 5
Switch = tuple[NodeId, Callable[[Participant], None]]


def other_sequencer(member: Participant) -> None:
    """Want the active member that is not the sequencer, because it is nearer."""
    now = member.ordering.configuration
    (wanted,) = (node for node in now.actives if now.sequencer(node) != member.sequencer)
    for _ in range(5):
        member.estimates.round_trip(wanted, 10)
    member.change_sequencer()


SWITCHES: dict[str, tuple[tuple[NodeId, ...], tuple[Switch, ...]]] = {
    "to active": ((0,), ((1, Participant.go_active),)),
    "the highest, which takes over if all active ones crash, to active": (
        (0,),
        ((4, Participant.go_active),),
    ),
    "to passive": ((0, 1), ((1, Participant.go_passive),)),
    "the last active member wants to be passive": ((0,), ((0, Participant.go_passive),)),
    "both active members want to be passive": (
        (0, 1),
        ((0, Participant.go_passive), (1, Participant.go_passive)),
    ),
    "another sequencer": ((0, 1), ((2, other_sequencer),)),
    "another sequencer for the highest": ((0, 1), ((4, other_sequencer),)),
    "another sequencer, and both that it knows leave": (
        (0, 1),
        ((2, other_sequencer), (0, Participant.go_passive), (1, Participant.go_passive)),
    ),
    "two become active": ((0,), ((2, Participant.go_active), (3, Participant.go_active))),
    "one leaves, one comes, one changes": (
        (0, 1),
        ((1, Participant.go_passive), (3, Participant.go_active), (2, other_sequencer)),
    ),
}
"""The active members at the start, and who wants what at once."""


def play(name: str, arrivals: int, strike: Callable[[Hall], None]) -> bool:
    """Switch, let so many messages arrive, and strike; returns whether so many were under way.

    Every member submits before the switch, in it, and after the strike; each survivor must deliver all.
    """
    actives, switches = SWITCHES[name]
    hall = Hall(MEMBERS, actives)
    said = dict.fromkeys(range(MEMBERS), 0)

    def say(nodes: Iterable[NodeId]) -> None:
        for node in nodes:
            hall.say(node, f"{node}.{said[node]}")
            said[node] += 1

    say(range(MEMBERS))
    for node, wish in switches:
        hall.do(node, wish)
    say(range(MEMBERS))
    whole = arrive(hall, arrivals)
    strike(hall)
    say(sorted(hall.up))
    hall.flow()
    judge(hall, said, arrivals)
    assert all(mode in ("active", "passive") for mode in hall.modes()), (arrivals, hall.modes())
    assert "active" in hall.modes()
    return whole


def arrive(hall: Hall, arrivals: int) -> bool:
    """Let so many messages arrive, in an order that no channel decides alone."""
    idle, pairs = 0, cycle(sorted(hall.channels, key=lambda pair: (pair[0] * 7 + pair[1] * 3) % 11))
    while arrivals and idle < len(hall.channels):
        arrived = hall.step(*next(pairs))
        idle = 0 if arrived else idle + 1
        arrivals -= arrived
    return not arrivals


def crash(*nodes: NodeId) -> Callable[[Hall], None]:
    """Members crash, and the others go on."""

    def strike(hall: Hall) -> None:
        hall.crash(*nodes)
        hall.change(sorted(hall.up))

    return strike


def exclude(node: NodeId) -> Callable[[Hall], None]:
    """A member is excluded, and comes back in the next view."""

    def strike(hall: Hall) -> None:
        hall.change(sorted(hall.up - {node}))
        hall.flow()
        hall.change(sorted(hall.up))

    return strike


def strikes(name: str) -> list[Callable[[Hall], None]]:
    """All that may happen: each member and all active ones crash, or a member is excluded."""
    actives, _ = SWITCHES[name]
    nodes = range(MEMBERS)
    return [crash(node) for node in nodes] + [crash(*actives)] + [exclude(node) for node in nodes]


@pytest.mark.parametrize("name", [*SWITCHES])
def test_a_switch_survives_a_crash_after_every_message(name: str) -> None:
    for strike in strikes(name):
        for arrivals in count():
            if not play(name, arrivals, strike):
                assert arrivals > 20, "the switch takes messages"
                break


def test_these_switches_take_all_transitions_but_that_of_a_stand_in_that_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = record(monkeypatch, MODES)
    for name in SWITCHES:
        for strike in strikes(name):
            for arrivals in range(0, 60, 6):
                play(name, arrivals, strike)
    assert set(MODES.table) - taken == {(Mode.TO_PASSIVE, ModeEvent.RELIEVED)}, "see test_switching"
