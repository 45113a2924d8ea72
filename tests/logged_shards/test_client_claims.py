"""What no correct shard tells a client is refused, and its call goes on."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ordercast.components.logged_shards import ShardsClient
from ordercast.components.logged_shards.client import BACK_OFF
from ordercast.core import Message, NodeId, RemoteError, Replied, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.testing import RecordingEnv
from ordercast.transactions.granola import messages as granola
from ordercast.transactions.granola.client import GranolaClient
from ordercast.transactions.granola.options import GranolaOptions
from ordercast.transactions.lock_store import commands as lock_store
from ordercast.transactions.lock_store.client import TransactionClient
from ordercast.transactions.lock_store.commands import Verb
from ordercast.transactions.lock_store.options import LockStoreOptions
from tests.logged_shards.lab import BANK, CLIENT, FAR, transfer

MEMBERS = {0: (0, 1, 2), 1: (3, 4, 5)}
FIRST, OTHER = message_id(CLIENT, 1), message_id(CLIENT, 2)
PLACE = (7, 1, ())
ATTEMPT_MAX = (1 << 31) - 1


class Kind(NamedTuple):
    """A protocol whose client is tried."""

    client: Callable[..., ShardsClient[Any]]
    options: object
    executed: Callable[[bytes], Message]
    """A shard has executed the call, with these results."""
    again: Callable[[int], Message]
    """This attempt has no effect."""


def granola_executed(results: bytes) -> Message:
    return granola.Told(FIRST, 0, granola.State.EXECUTED, results, PLACE)


def lock_store_executed(results: bytes) -> Message:
    return lock_store.Told(Verb.COMMIT, FIRST, 0, lock_store.State.COMMITTED, results, PLACE)


KINDS = {
    "granola": Kind(
        GranolaClient,
        GranolaOptions(),
        granola_executed,
        lambda attempt: granola.Told(FIRST, attempt, granola.State.CONFLICT, b"", None),
    ),
    "lock_store": Kind(
        TransactionClient,
        LockStoreOptions(),
        lock_store_executed,
        lambda attempt: lock_store.Told(Verb.LOCK, FIRST, attempt, lock_store.State.ABORTED, b"", None),
    ),
}


def results_of(first: int, *results: bytes) -> bytes:
    return pack_bundle(first, [1] * len(results), results)


def calling(kind: Kind) -> tuple[RecordingEnv, ShardsClient[Any]]:
    """A client with a call to both shards."""
    env = RecordingEnv(CLIENT)
    client = kind.client(env, MEMBERS, kind.options, BANK, answers=True)
    client.on_start({})
    assert client.submit((0, 1), pack_bundle(FIRST, [1], [transfer(*FAR, 5)]))
    return env, client


def asked_again(env: RecordingEnv, client: ShardsClient[Any]) -> set[NodeId]:
    """Whom a client asks when it repeats its call."""
    env.sent.clear()
    env.now = env.timers["calls"]
    client.on_timer("calls")
    return {node for node, _ in env.sent}


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.mark.parametrize(
    ("results", "match"),
    [
        (b"garbage", "shorter than its head"),
        (results_of(OTHER, b"\0"), "with other results"),
        (results_of(FIRST, b"\0", b"\0"), "with other results"),
    ],
    ids=["no results", "of another call", "too many"],
)
def test_a_shard_that_answers_something_else_is_asked_again(kind: Kind, results: bytes, match: str) -> None:
    """Whichever shard answers first; the call has its answer when both have told theirs."""
    for wrong, right in ((0, 3), (3, 0)):
        env, client = calling(kind)
        with pytest.raises(RemoteError, match=match):
            client.on_message(wrong, kind.executed(results))
        client.on_message(right, kind.executed(results_of(FIRST, b"\0")))
        assert asked_again(env, client) == set(MEMBERS[wrong // 3])
        client.on_message(wrong, kind.executed(results_of(FIRST, b"\0")))
        assert [type(one) for one in env.delivered] == [Replied]


@pytest.mark.parametrize("attempt", [1, ATTEMPT_MAX])
def test_no_attempt_is_skipped(kind: Kind, attempt: int) -> None:
    """After the last number that an attempt can have, no shard would understand the client any more."""
    env, client = calling(kind)
    with pytest.raises(RemoteError, match="which was not made"):
        client.on_message(0, kind.again(attempt))
    assert not any(name.startswith(BACK_OFF) for name in env.timers)
    assert asked_again(env, client) == {node for nodes in MEMBERS.values() for node in nodes}
    client.on_message(0, kind.again(0))
    assert client.rounds[FIRST].attempt == 1


def test_it_waits_for_votes_of_shards_that_there_are() -> None:
    """Otherwise it could not explain what it waits for."""
    _, client = calling(KINDS["granola"])
    with pytest.raises(RemoteError, match="there are not so many"):
        client.on_message(0, granola.Told(FIRST, 0, granola.State.WAITING, b"", None, (1, 7)))
    (wait,) = client.explain().waits
    assert wait.on == (0, 1, 2, 3, 4, 5)
