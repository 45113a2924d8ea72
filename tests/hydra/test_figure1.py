"""The execution of Hydra's Figure 1: one receiver of group 1, sequencers 1 and 2, step by step.

Only the figure's caption is available to us, not its drawing. The notation is the caption's; the steps are
our own, chosen to show each kind of transition once. One thing differs from the printed algorithm and is
allowed by section 4.3.2: drop notifications wait until a message needs them.
"""

from typing import NamedTuple

from ordercast.core import Delivered, Dropped
from tests.hydra.lab import one_by_one, receiver

A = "<G,1,{(1,1)},10>"
B = "<G,2,{(1,1)},15>"
C = "<G,2,{(1,2),(2,1)},20>"
D = "<G,1,{(0,1),(1,3)},25>"
E = "<G,2,{(1,3)},30>"
F = "<G,1,{(1,5)},45>"
LATE = "<G,1,{(1,2)},12>"


class Transition(NamedTuple):
    """What arrives, what the buffer is then, and what was delivered."""

    arrives: str
    buffer: list[str]
    delivers: list[str]
    c_min: tuple[int, int]


FIGURE = [
    # Nothing is known of sequencer 2: buffered.
    Transition(A, [A], [], (0, 2)),
    # A later groupcast of sequencer 2 lets it go, and waits itself.
    Transition(B, [B], [A], (10, 1)),
    # A message to another group as well counts by its number for group 1.
    Transition(C, [B, C], [], (10, 1)),
    # A groupcast of sequencer 1 shows that its number 2 is missing; what was waiting for it goes.
    Transition(D, [D], ["<D,1,2>", B, C], (20, 2)),
    # The missing one comes after its notification: nothing more.
    Transition(LATE, [D], [], (20, 2)),
    # A flush without news of group 1 lets a message go, and is itself not delivered.
    Transition("<F,2,{(1,2),(2,7)},28>", [], [D], (25, 1)),
    Transition(E, [E], [], (25, 1)),
    # A flush shows that number 4 of sequencer 1 is missing.
    Transition("<F,1,{(0,1),(1,4)},40>", [], ["<D,1,4>", E], (30, 2)),
    # An older flush, and a copy of what was delivered: nothing.
    Transition("<F,1,{(0,1),(1,3)},26>", [], [], (30, 2)),
    Transition(E, [], [], (30, 2)),
    Transition(F, [F], [], (30, 2)),
    # Number 4 of sequencer 2 is lost and its clock is far ahead: notification and message in one step.
    Transition("<F,2,{(1,4),(2,7)},50>", [], ["<D,2,4>", F], (45, 1)),
]


def test_the_execution_step_by_step() -> None:
    lab = receiver()
    for step, transition in enumerate(FIGURE, 1):
        lab.hears(transition.arrives)
        assert lab.delivered() == transition.delivers, f"step {step}"
        assert lab.buffer() == transition.buffer, f"step {step}"
        assert lab.c_min() == transition.c_min, f"step {step}"


def test_the_execution_tells_of_each_number_once_and_in_order() -> None:
    lab = receiver()
    for transition in FIGURE:
        lab.hears(transition.arrives)
    settled: dict[int, list[int]] = {1: [], 2: []}
    places = []
    for delivery in one_by_one(lab.env.delivered):
        if isinstance(delivery, Dropped):
            settled[delivery.issuer].append(delivery.number)
        else:
            assert isinstance(delivery, Delivered) and delivery.stamp is not None
            settled[delivery.stamp.issuer].append(delivery.stamp.numbers[delivery.groups.index(1)])
            places.append((delivery.stamp.clock, delivery.stamp.issuer))
    assert settled == {1: [1, 2, 3, 4, 5], 2: [1, 2, 3, 4]}
    assert places == sorted(places)
