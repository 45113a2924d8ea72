"""A client of Lock-Store by hand: how long it waits when it has found a lock taken."""

import pytest

from ordercast.components.logged_shards.client import BACK_OFF
from ordercast.core import MILLISECOND, Nanos, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.testing import RecordingEnv
from ordercast.transactions.lock_store.client import TransactionClient
from ordercast.transactions.lock_store.commands import State, Told, Verb
from ordercast.transactions.lock_store.options import LockStoreOptions
from tests.logged_shards.lab import BANK, CLIENT, FAR, transfer

MEMBERS = {0: (0, 1, 2), 1: (3, 4, 5)}
OPTIONS = LockStoreOptions()
FIRST = message_id(CLIENT, 1)


def longest_waits(took: Nanos, attempts: int) -> list[Nanos]:
    """The longest waits of many clients that find a lock taken again, after attempts of this length."""
    found = [0] * attempts
    for seed in range(60):
        env = RecordingEnv(CLIENT, seed=seed)
        client = TransactionClient(env, MEMBERS, OPTIONS, BANK, answers=True)
        client.submit((0, 1), pack_bundle(FIRST, [1], [transfer(*FAR, 5)]))
        for attempt in range(attempts):
            env.now += took
            client.on_message(0, Told(Verb.LOCK, FIRST, attempt, State.LOCKED, b"", None))
            client.on_message(3, Told(Verb.LOCK, FIRST, attempt, State.BUSY, b"", None))
            wait = env.timers[f"{BACK_OFF}{FIRST}"] - env.now
            found[attempt] = max(found[attempt], wait)
            env.now += wait
            client.on_timer(f"{BACK_OFF}{FIRST}")
    return found


@pytest.mark.parametrize(
    ("took", "unit"),
    [(0, 1), (MILLISECOND // 2, 1), (6 * MILLISECOND, 6), (500 * MILLISECOND, 20)],
    ids=["at once", "soon", "late", "very late"],
)
def test_a_client_waits_as_long_as_others_hold_locks(took: Nanos, unit: int) -> None:
    """It waits for as long as its attempt took, and no longer than until it would have repeated it."""
    limits = [unit * times * MILLISECOND for times in (1, 2, 4, 8, 8, 8)]
    for wait, limit in zip(longest_waits(took, len(limits)), limits, strict=True):
        assert 0.75 * limit < wait <= limit
