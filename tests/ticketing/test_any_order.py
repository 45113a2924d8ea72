"""Random orders of everything that can happen: messages, switches, crashes, exclusions, views."""

from random import Random

import pytest

from ordercast.components.ticketing.modes import Mode
from tests.deep import deep_after
from tests.ticketing.hall import Hall


def play(seed: int, uniform: bool = False) -> tuple[Hall, dict[int, int]]:
    rng = Random(seed)
    count = rng.randint(2, 5)
    actives = rng.sample(range(count), rng.randint(1, count))
    hall = Hall(
        count,
        actives,
        uniform=uniform,
        ticket_wait_ns=rng.choice((0, 1_000_000)),
        silence_ns=rng.choice((0, 1_000_000)),
    )
    said = dict.fromkeys(range(count), 0)
    for _ in range(rng.randint(20, 150)):
        node = rng.randrange(count)
        if node not in hall.up:
            continue
        match rng.choice(
            ("say", "say", "arrive", "arrive", "arrive", "arrive", "switch", "time", "stop", "view")
        ):
            case "say":
                hall.say(node, f"{node}.{said[node]}")
                said[node] += 1
            case "arrive":
                ready = [pair for pair, channel in hall.channels.items() if channel]
                if ready:
                    hall.step(*rng.choice(ready))
            case "switch":
                switch(hall, rng, node)
            case "time":
                hall.carry()
                hall.drivers[node].pass_time(rng.choice((100_000, 2_000_000)))
            case "stop":
                if rng.random() < 0.2:
                    hall.stop()
            case "view":
                if rng.random() < 0.3:
                    change(hall, rng)
    hall.change(tuple(sorted(hall.up)))
    hall.flow()
    return hall, said


def switch(hall: Hall, rng: Random, node: int) -> None:
    member = hall.member(node)
    if member.mode is Mode.ACTIVE:
        hall.do(node, lambda m: m.go_passive())
    elif member.mode is Mode.PASSIVE:
        hall.do(node, lambda m: m.go_active() if rng.random() < 0.6 else m.change_sequencer())


def change(hall: Hall, rng: Random) -> None:
    """Somebody crashes, is excluded, comes back, or does both at once; a majority goes on."""
    members = [node for node in hall.members if node in hall.up]
    crashing = {rng.choice(members)} if rng.random() < 0.3 else set()
    leaving = {node for node in members if rng.random() < 0.2}
    coming = {node for node in hall.up if node not in hall.members and rng.random() < 0.6}
    again = {node for node in members if rng.random() < 0.1} - leaving - crashing
    stay = {node for node in members if node not in crashing | leaving | again}
    if 2 * len(stay) > len(hall.members):
        hall.crash(*crashing)
        hall.change(stay | coming | again, again)


@pytest.mark.parametrize("first", deep_after(1, range(0, 3000, 100)))
@pytest.mark.parametrize("uniform", [False, True])
def test_survivors_deliver_the_same_in_the_same_order(first: int, uniform: bool) -> None:
    for seed in range(first, first + 100):
        hall, said = play(seed, uniform)
        judge(hall, said, seed)
        if uniform:
            judge_uniform(hall, seed)


def judge(hall: Hall, said: dict[int, int], seed: int) -> None:
    """Each message is delivered once, those of a sender in order, and all of those that are up at the end."""
    log = hall.log()
    for sender, count in said.items():
        own = [int(word.split(".")[1]) for word in log if word.startswith(f"{sender}.")]
        whole = [n for n in range(count) if f"{sender}.{n}" not in hall.returned or n in own]
        expected = whole if sender in hall.up else whole[: len(own)]
        assert own == expected, f"seed {seed}: messages of node {sender} come as {own}"


def judge_uniform(hall: Hall, seed: int) -> None:
    """Nobody delivers what others do not, not even one that crashes or is excluded."""
    assert hall.returned == []
    for view, nodes in hall.went_on.items():
        if nodes:
            words = [word for seen, word in hall.take(nodes[0]) if seen == view]
            for node in hall.drivers:
                own = [word for seen, word in hall.take(node) if seen == view]
                assert own == words[: len(own)], f"seed {seed}: node {node} delivered {own} in view {view}"
