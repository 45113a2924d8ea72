"""Storms: everything at once, at random, and at the end all promises are kept."""

from random import Random
from typing import Any

import pytest

from ordercast.core import Message, NodeId
from ordercast.protocols.atoms.sites import PLACEMENTS
from tests.atoms.lab import Lab
from tests.deep import deep_after
from tests.hand_driven import nothing

PART = 4
STEPS = 60


class Storm:
    """A lab in which a random thing happens at each step."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        receivers = self.rng.choice((3, 4, 5))
        self.groups = self.rng.choice((2, 3, 4))
        members = [
            tuple(node for node in range(receivers) if self.rng.random() < 0.6) for _ in range(self.groups)
        ]
        members[0] = tuple(range(receivers))
        self.lab = Lab(*members, publishers=2, joiners=1, **self._options())
        self.receivers = tuple(range(receivers + 1))
        self.texts = 0

    def _options(self) -> dict[str, Any]:
        nodes = self.rng.choice((2, 3, 4))
        return {
            "nodes": nodes,
            "store": self.rng.choice((1, 3)),
            "copies": self.rng.choice((1, 2, 2)),
            "grouping": self.rng.choice(PLACEMENTS),
            "causal": self.rng.random() < 0.2,
            "window": self.rng.choice((2, 64)),
        }

    def run(self) -> set[str]:
        """All steps, and the promises that are broken at the end."""
        for _ in range(STEPS):
            self.rng.choice(
                (self._submit, self._submit, self._move, self._crash, self._network, self._wait)
            )()
        for node in self.receivers:
            if node not in self.lab.drivers:
                self.lab.start(node)
        return self.lab.finish(3000)

    def _submit(self) -> None:
        for _ in range(self.rng.choice((1, 3))):
            publisher = self.rng.randrange(2)
            if self.lab.publishers[publisher] in self.lab.drivers:
                self.texts += 1
                self.lab.submit(f"m{self.texts}", self.rng.randrange(self.groups), publisher)

    def _move(self) -> None:
        node, group = self.rng.choice(self.receivers), self.rng.randrange(self.groups)
        if node in self.lab.drivers and group:  # group 0 keeps its members
            move = self.lab.leave if self.lab.history.is_in(node, group) else self.lab.join
            move(node, group)

    def _crash(self) -> None:
        node = self.rng.choice((*self.lab.factories, *self.lab.nodes))
        if node not in self.lab.drivers:
            self.lab.start(node)
        elif self.rng.random() < 0.5:
            self.lab.crash(node)

    def _network(self) -> None:
        lab, rng = self.lab, self.rng
        loss, delay = rng.choice((0.0, 0.0, 0.05, 0.3)), rng.choice((0.0, 0.1, 0.3))
        cut = rng.choice((None, None, *lab.factories))

        def lost(source: NodeId, to: NodeId, message: Message) -> bool:
            return rng.random() < loss or (cut in (source, to) and source != to)

        lab.lost = lost
        held = rng.sample(lab.held, len(lab.held))
        lab.held, lab.hold = [], nothing
        for told in held:  # in another order than they were sent
            lab.give(*told)
        lab.pump()
        lab.hold = lambda source, to, message: source != to and rng.random() < delay

    def _wait(self) -> None:
        self.lab.wait_ms(self.rng.choice((1, 5, 20, 60)))


@pytest.mark.parametrize("first", deep_after(2, range(0, 400, PART)))
def test_all_promises_are_kept_in_a_storm(first: int) -> None:
    for seed in range(first, first + PART):
        assert Storm(seed).run() == set(), f"seed {seed}"
