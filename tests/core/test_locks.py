"""Locks: queues on keys, shared and exclusive, in the order of the requests."""

from random import Random

from ordercast.core import Keys
from ordercast.core.locks import Locks


def writes(*keys: str) -> Keys:
    return Keys(keys, ())


def reads(*keys: str) -> Keys:
    return Keys((), keys)


def test_one_owner_excludes_the_next() -> None:
    locks = Locks()
    assert locks.ask(1, writes("a"))
    assert not locks.ask(2, writes("a"))
    assert not locks.ask(3, reads("a"))
    assert locks.leave(1) == [2]
    assert locks.leave(2) == [3]
    assert locks.leave(3) == []
    assert not locks.owners


def test_readers_share_until_a_writer_waits() -> None:
    locks = Locks()
    assert locks.ask(1, reads("a"))
    assert locks.ask(2, reads("a"))
    assert not locks.ask(3, writes("a"))
    assert not locks.ask(4, reads("a")), "who came after a writer must not overtake it"
    assert locks.leave(1) == []
    assert locks.leave(2) == [3]
    assert locks.leave(3) == [4]


def test_who_gives_up_waiting_makes_way() -> None:
    locks = Locks()
    locks.ask(1, reads("a"))
    locks.ask(2, writes("a"))
    locks.ask(3, reads("a"))
    assert locks.leave(2) == [3]
    assert locks.holds(1)
    assert locks.holds(3)


def test_an_owner_waits_for_all_of_its_keys() -> None:
    locks = Locks()
    locks.ask(1, writes("a"))
    locks.ask(2, writes("b"))
    assert not locks.ask(3, writes("a", "b"))
    assert locks.leave(1) == []
    assert locks.leave(2) == [3]


def test_those_who_get_their_locks_together_come_in_the_order_in_which_they_asked() -> None:
    locks = Locks()
    locks.ask(1, writes("a", "b", "c"))
    for owner, key in ((9, "c"), (5, "a"), (7, "b")):
        locks.ask(owner, writes(key))
    assert locks.leave(1) == [9, 5, 7]


def test_free_says_whether_a_request_would_be_granted() -> None:
    """Random requests and departures; and whoever holds excludes all others, whoever waits is behind one."""
    rng = Random(5)
    locks, names = Locks(), ["a", "b", "c", "d"]
    for owner in range(2000):
        drawn = rng.sample(names, rng.randint(1, 3))
        keys = Keys(tuple(drawn[:1]), tuple(drawn[1:])) if rng.random() < 0.5 else reads(*drawn)
        free = locks.free(keys)
        assert locks.ask(owner, keys) == free
        while len(locks.owners) > rng.randint(0, 6):
            locks.leave(rng.choice(list(locks.owners)))
        _check(locks)
    for owner in list(locks.owners):
        locks.leave(owner)
    assert locks.free(writes(*names))


def _check(locks: Locks) -> None:
    earlier: list[tuple[int, Keys]] = []
    for owner, keys in locks.owners.items():
        blocked = any(
            set(keys.writes) & set(other.all) or set(keys.reads) & set(other.writes) for _, other in earlier
        )
        assert locks.holds(owner) == (not blocked)
        earlier.append((owner, keys))
