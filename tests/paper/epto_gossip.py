"""Algorithm 1 for one event, in step or not, with nothing shared with the code under test."""

from dataclasses import dataclass
from heapq import heappop, heappush
from math import ceil
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


def spread_out_of_step(rng: Random, n: int, fanout: int, ttl: int, latency: float) -> tuple[int, int]:
    """How many balls arrive in time, and how many processes lack the event, if rounds begin at random.

    A round lasts 1. A ball takes half the latency at least, and the latency at most.
    """
    phases = [rng.random() for _ in range(n)]
    next_ball = {0: 0}
    knows = {0}
    balls = 0
    agenda = [(phases[0], 0, 0)]  # when, at whom, and the ttl of a ball that arrives; 0: its round
    while agenda:
        now, process, age = heappop(agenda)
        if age:
            if process not in next_ball:
                heappush(agenda, (phases[process] + max(0, ceil(now - phases[process])), process, 0))
            balls += 1
            next_ball[process] = max(age, next_ball.get(process, 0))
            knows.add(process)
            continue
        age = next_ball.pop(process) + 1
        for other in rng.sample(range(n - 1), fanout):
            delay = latency * rng.uniform(0.5, 1)
            if age < ttl:
                heappush(agenda, (now + delay, other + (other >= process), age))
    return balls, n - len(knows)
