"""What waits for an application: the soft limit slows senders down, the hard one ends it with a word."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from ordercast.core import Delivered, Dropped, LocalError
from ordercast.core.bundle import Bundle
from ordercast.net.api.inbox import HARD, NOTICE_BYTES, Inbox, SlowConsumer
from ordercast.net.host.delivered import DeliveredBundle
from tests.live.processes import PATIENCE_S

SOFT = 10_000
T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, PATIENCE_S))


def bundle(size: int = 900) -> DeliveredBundle:
    payload = b"x" * size
    return DeliveredBundle(Delivered(payload, (0,), 3, None, 0), Bundle(1, (1,), [payload]), 1)


class Strain:
    """Takes down when senders are asked to slow down, and when no more."""

    def __init__(self) -> None:
        self.said: list[bool] = []
        self.inbox = Inbox(SOFT, self.said.append)


def test_what_is_put_is_got_in_order() -> None:
    async def act() -> None:
        inbox = Strain().inbox
        put = [bundle(size) for size in (1, 2, 3)] + [Dropped(0, 1, 5, 0)]
        for delivered in put:
            inbox.put(delivered)
        assert [await inbox.get() for _ in put] == put
        assert inbox.waiting == 0

    run(act())


def test_above_the_soft_limit_senders_are_slowed_down_until_half_of_it_is_taken() -> None:
    made = Strain()
    for _ in range(10):
        made.inbox.put(bundle(SOFT // 10 - NOTICE_BYTES))
    assert made.said == []
    made.inbox.put(bundle())
    assert made.said == [True]
    made.inbox.put(bundle())
    assert made.said == [True], "once is enough"
    while made.inbox.waiting > SOFT // 2:
        assert made.said == [True]
        assert made.inbox.get_nowait() is not None
    assert made.said == [True, False]


def test_notices_have_a_weight_too() -> None:
    made = Strain()
    for number in range(SOFT // NOTICE_BYTES + 1):
        made.inbox.put(Dropped(0, 1, number, 0))
    assert made.said == [True]


def test_at_the_hard_limit_the_application_gets_what_is_there_and_then_is_told() -> None:
    async def act() -> None:
        made = Strain()
        for _ in range(2 * HARD):
            made.inbox.put(bundle(SOFT - NOTICE_BYTES))
        for _ in range(HARD):
            assert isinstance(await made.inbox.get(), DeliveredBundle)
        for _ in range(2):
            with pytest.raises(SlowConsumer, match="join again"):
                await made.inbox.get()
        assert made.said == [True, False], "nobody is held up by one that is cut off"
        assert issubclass(SlowConsumer, LocalError)

    run(act())


def test_a_closed_inbox_gives_what_it_has_and_then_nothing() -> None:
    async def act() -> None:
        made = Strain()
        made.inbox.put(bundle())
        made.inbox.close()
        made.inbox.put(bundle())
        assert isinstance(await made.inbox.get(), DeliveredBundle)
        assert await made.inbox.get() is None
        assert made.inbox.get_nowait() is None

    run(act())


def test_the_first_reason_to_close_is_the_one_that_is_told() -> None:
    async def act() -> None:
        made = Strain()
        made.inbox.close(LocalError("the first"))
        made.inbox.close(LocalError("the second"))
        with pytest.raises(LocalError, match="the first"):
            await made.inbox.get()

    run(act())


@pytest.mark.parametrize("end", [None, LocalError("the end")])
def test_closing_wakes_those_who_wait(end: Exception | None) -> None:
    async def act() -> None:
        made = Strain()
        waiting = [asyncio.create_task(made.inbox.get()) for _ in range(3)]
        await asyncio.sleep(0)
        made.inbox.close(end)
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert found == [end, end, end]

    run(act())


def test_a_get_that_is_cancelled_loses_nothing() -> None:
    async def act() -> None:
        inbox = Strain().inbox
        got: list[int] = []
        for size in range(1, 200):
            waiting = asyncio.create_task(inbox.get())
            await asyncio.sleep(0)
            if size % 3 == 0:
                waiting.cancel()  # before it comes
            inbox.put(bundle(size))
            if size % 3 == 1:
                waiting.cancel()  # just after it has come
            delivered, *_ = await asyncio.gather(waiting, return_exceptions=True)
            if isinstance(delivered, DeliveredBundle):
                got.append(len(delivered.delivery.payload))
        while (delivered := inbox.get_nowait()) is not None:
            assert isinstance(delivered, DeliveredBundle)
            got.append(len(delivered.delivery.payload))
        assert got == list(range(1, 200))

    run(act())
