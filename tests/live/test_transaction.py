"""A general transaction as a program sees it: what it may touch, and how it ends, without a cluster."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from ordercast import Abort, Refused
from ordercast.core import Groups, LocalError
from ordercast.core.general import DONE, Conclude, Prepare, pack_values, read_general
from ordercast.net.api.open_calls import OpenCalls, Unknown
from ordercast.net.api.transaction import Transacting

MESSAGE = 77


class Shards:
    """Answers both halves, and keeps what it was sent."""

    def __init__(self, **values: object) -> None:
        self.sent: list[Prepare | Conclude | None] = []
        self.prepared = pack_values({key: msgspec.msgpack.encode(value) for key, value in values.items()})
        self.ended: bytes | Exception = DONE

    def shards_of(self, payload: bytes) -> Groups:
        return (0, 1)

    async def prepare(self, payload: bytes) -> tuple[int, bytes]:
        self.sent.append(read_general(payload))
        return MESSAGE, self.prepared

    async def conclude(self, payload: bytes) -> bytes:
        self.sent.append(read_general(payload))
        if isinstance(self.ended, Exception):
            raise self.ended
        return self.ended

    @property
    def end(self) -> Conclude:
        (end,) = self.sent[1:]
        assert isinstance(end, Conclude) and end.transaction == MESSAGE and end.groups == (0, 1)
        return end

    def begin(self, *writes: str, reads: tuple[str, ...] = ()) -> Transacting:
        return Transacting(cast(OpenCalls, self), writes, reads)


def written(end: Conclude) -> dict[str, Any]:
    return {key: value and msgspec.msgpack.decode(value) for key, value in end.values.items()}


def test_leaving_the_block_writes() -> None:
    shards = Shards(alice=50, old=1)

    async def use() -> None:
        async with shards.begin("alice", "bob", "old", reads=("carol",)) as t:
            assert t["alice"] == 50 and "bob" not in t and t.get("carol", 3) == 3
            t["alice"] -= 30
            t["bob"] = t.get("bob", 0) + 30
            assert t["bob"] == 30
            del t["old"]
            with pytest.raises(KeyError):
                t["old"]

    asyncio.run(use())
    assert shards.sent[0] == Prepare(("alice", "bob", "old"), ("carol",))
    assert shards.end.commits and written(shards.end) == {"alice": 20, "bob": 30, "old": None}


def test_an_exception_aborts_and_comes_through_and_abort_does_not() -> None:
    for raised, comes in ((ValueError("mine"), True), (Abort(), False)):
        shards = Shards()

        async def use(shards: Shards = shards, raised: Exception = raised) -> None:
            async with shards.begin("alice") as t:
                t["alice"] = 1
                raise raised

        if comes:
            with pytest.raises(ValueError, match="mine"):
                asyncio.run(use())
        else:
            asyncio.run(use())
        assert not shards.end.commits and not shards.end.values


def test_what_was_not_locked_is_refused_and_the_transaction_aborted() -> None:
    async def write_unlocked(t: Any) -> None:
        t["bob"] = 1

    async def write_read_only(t: Any) -> None:
        t["carol"] = 1

    async def write_none(t: Any) -> None:
        t["alice"] = None

    async def read_unlocked(t: Any) -> None:
        t.get("bob")

    for touch, text in (
        (write_unlocked, "has not locked the key 'bob'"),
        (write_read_only, "has locked the key 'carol' for reading only"),
        (write_none, "None cannot be the value of 'alice'"),
        (read_unlocked, "has not locked the key 'bob'"),
    ):
        shards = Shards()

        async def use(shards: Shards = shards, touch: Any = touch) -> None:
            async with shards.begin("alice", reads=("carol",)) as t:
                await touch(t)

        with pytest.raises(LocalError, match=text):
            asyncio.run(use())
        assert not shards.end.commits


def test_a_value_that_cannot_be_sent_aborts() -> None:
    shards = Shards()

    async def use() -> None:
        async with shards.begin("alice") as t:
            t["alice"] = object()

    with pytest.raises(LocalError, match="a value cannot be written"):
        asyncio.run(use())
    assert not shards.end.commits


def test_nothing_goes_on_after_the_end() -> None:
    shards = Shards(alice=1)

    async def use() -> None:
        transacting = shards.begin("alice")
        async with transacting as t:
            pass
        for touch in (lambda: t["alice"], lambda: t.get("alice"), lambda: t.__setitem__("alice", 1)):
            with pytest.raises(LocalError, match="the transaction has ended"):
                touch()
        with pytest.raises(LocalError, match="can be entered once"):
            await transacting.__aenter__()

    asyncio.run(use())


def test_the_program_is_told_if_the_shards_had_ended_it() -> None:
    shards = Shards()
    shards.ended = b"\x01the transaction had ended before"

    async def use() -> None:
        async with shards.begin("alice") as t:
            t["alice"] = 1

    with pytest.raises(Refused, match="had ended before"):
        asyncio.run(use())


def test_a_shard_that_refuses_the_locks_frees_those_of_the_others() -> None:
    shards = Shards()
    shards.prepared = b"\x01too many"

    async def use() -> None:
        async with shards.begin("alice"):
            raise AssertionError

    with pytest.raises(Refused, match="too many"):
        asyncio.run(use())
    assert not shards.end.commits


def test_an_abort_that_nobody_answers_hides_no_exception() -> None:
    shards = Shards()
    shards.ended = Unknown(MESSAGE, "no answer came")

    async def use() -> None:
        async with shards.begin("alice"):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        asyncio.run(use())
