"""Random troubles, one after the other and together: no promise is broken, and everything goes on
afterwards."""

from random import Random
from typing import Any

import pytest

from ordercast.core import MILLISECOND, Message, NodeId
from tests.deep import deep_after
from tests.llft.lab import Lab

SEEDS = 2000
PART = 20


def options_of(rng: Random) -> dict[str, Any]:
    """Options that make many things happen in a short time."""
    return {
        "require_majority": rng.random() < 0.5,
        "replication": rng.choice(("semi-active", "semi-passive")),
        "update_every": rng.choice((1, 3)),
        "window": rng.choice((1, 4, 256)),
        "fragment_bytes": rng.choice((64, 60_000)),
        "behind_max": rng.choice((4, 1024)),
        "slow_backup": rng.choice(("wait", "remove")),
        "close_ns": rng.choice((100, 2000)) * MILLISECOND,
    }


class Storm:
    """A lab in which something happens every few milliseconds."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._options = options_of(self._rng)
        self._groups = self._rng.choice((1, 1, 2))
        self.lab = Lab(
            self._rng.choice((1, 2, 3, 3, 5)),
            groups=self._groups,
            clients=self._rng.choice((1, 2, 3)),
            **self._options,
        )
        self._calls = 0
        self.cuts = False

    def run(self) -> set[str]:
        """Let things happen; the names of the promises that were broken."""
        rng, lab = self._rng, self.lab
        doings = (
            self.call,
            self.call,
            self.crash,
            self.start,
            self.cut,
            self.heal,
            self.lose,
            self.pause,
            self.resume,
        )
        for _ in range(rng.randrange(10, 60)):
            rng.choice(doings)()
            lab.wait_ms(rng.choice((0, 1, 3, 10, 40, 120)))
        return lab.finish(uniform=not self.cuts)

    def call(self) -> None:
        """A client calls."""
        rng, lab = self._rng, self.lab
        self._calls += 1
        text = f"call{self._calls}" + "x" * rng.choice((0, 0, 200))
        lab.call(text, rng.randrange(len(lab.clients)), rng.randrange(self._groups))

    def crash(self) -> None:
        """A replica crashes, or sometimes a client."""
        node = self._any()
        if self.lab.may_crash(node) and (node not in self.lab.clients or self._rng.random() < 0.3):
            self.lab.crash(node)

    def start(self) -> None:
        """Somebody comes back."""
        down = sorted(set(self.lab.factories) - set(self.lab.drivers))
        if down:
            self.lab.start(self._rng.choice(down))

    def cut(self) -> None:
        """The network falls into two parts."""
        one = tuple(node for node in self.lab.factories if self._rng.random() < 0.5)
        other = tuple(node for node in self.lab.factories if node not in one)
        self.cuts = True
        self.lab.cut(one, other)

    def heal(self) -> None:
        """Everything arrives again."""
        self.lab.heal()

    def lose(self) -> None:
        """Some messages are lost."""
        rng, rate = self._rng, self._rng.choice((0.05, 0.2, 0.5))

        def lost(source: NodeId, to: NodeId, message: Message) -> bool:
            return rng.random() < rate

        self.cuts = self.cuts or rate > 0.1
        self.lab.lost = lost

    def pause(self) -> None:
        """Somebody stands still."""
        node = self._any()
        if node in self.lab.drivers and node not in self.lab.paused and len(self.lab.paused) < 2:
            self.cuts = True
            self.lab.pause(node)

    def resume(self) -> None:
        """All go on that stood still."""
        self.lab.resume(*list(self.lab.paused))

    def _any(self) -> NodeId:
        return self._rng.choice(list(self.lab.factories))


@pytest.mark.parametrize("first", deep_after(1, range(0, SEEDS, PART)))
def test_no_promise_is_broken_in_a_storm(first: int) -> None:
    for seed in range(first, first + PART):
        storm = Storm(seed)
        assert storm.run() == set(), f"seed {seed}: {storm.lab.details}"
