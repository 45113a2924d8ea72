"""Algorithm 1 for one event, with rounds in step and nothing shared with the code under test."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Spread:
    """What became of an event."""

    balls: int
    """That arrived with a ttl below TTL."""
    lacking: tuple[int, ...]
    """After each round, how many processes that were there all the time do not know it."""
    witnesses: int
    """How many processes were there all the time."""


def spread(rng: Random, n: int, fanout: int, ttl: int, loss: float = 0.0, leaving: int = 0) -> Spread:
    """Broadcast at process 0, which stays; in each round `leaving` others are replaced by newcomers."""
    next_ball = {0: 0}
    knows = {0}
    stayed = set(range(n))
    balls = 0
    lacking = []
    while next_ball:
        thrown = [(process, age + 1) for process, age in next_ball.items()]
        next_ball = {}
        for process, age in thrown:
            for other in rng.sample(range(n - 1), fanout):
                target = other + (other >= process)
                if rng.random() >= loss and age < ttl:
                    balls += 1
                    next_ball[target] = max(age, next_ball.get(target, 0))
                    knows.add(target)
        for process in rng.sample(range(1, n), leaving):
            next_ball.pop(process, None)
            knows.discard(process)
            stayed.discard(process)
        lacking.append(len(stayed - knows))
    return Spread(balls, tuple(lacking), len(stayed))
