"""The table of requests with a key: bounded, and it forgets nothing before its time."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ordercast.core import LocalError
from ordercast.net.gateway.repeats import ENTRY_BYTES, OtherRequest, Repeats
from ordercast.net.http.response import HttpResponse

ANSWER = HttpResponse(200, b"0123456789")


def within(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await test()

    asyncio.run(main())


def ended(repeats: Repeats, key: str, now_s: float, answer: HttpResponse = ANSWER) -> None:
    outcome = asyncio.get_running_loop().create_future()
    repeats.begin(key, b"request", outcome)
    outcome.set_result(answer)
    repeats.end(key, answer, now_s)


def test_an_answer_is_found_until_its_time_has_passed() -> None:
    async def test() -> None:
        repeats = Repeats(10, 1 << 20, 60.0)
        ended(repeats, "a", 100.0)
        ended(repeats, "b", 130.0)
        found = repeats.find("a", b"request", 159.9)
        assert found is not None and found.result() == ANSWER
        with pytest.raises(OtherRequest):
            repeats.find("a", b"other", 159.9)
        assert repeats.find("a", b"other", 160.0) is None
        assert len(repeats) == 1 and repeats.find("b", b"request", 160.0) is not None

    within(test)


def test_what_is_under_way_is_never_forgotten() -> None:
    async def test() -> None:
        repeats = Repeats(10, 1 << 20, 0.0)
        outcome = asyncio.get_running_loop().create_future()
        repeats.begin("a", b"request", outcome)
        assert repeats.find("a", b"request", 1e9) is outcome

    within(test)


def test_the_number_of_keys_is_bounded() -> None:
    async def test() -> None:
        repeats = Repeats(2, 1 << 20, 60.0)
        ended(repeats, "a", 0.0)
        repeats.screen()
        repeats.begin("b", b"request", asyncio.get_running_loop().create_future())
        with pytest.raises(LocalError, match="is full: it has 2 requests"):
            repeats.screen()
        repeats.forget("b")
        repeats.screen()
        assert repeats.find("b", b"other", 0.0) is None, "it may be used for anything again"

    within(test)


def test_the_bytes_of_answers_are_bounded_and_given_back() -> None:
    async def test() -> None:
        repeats = Repeats(1000, 10 * ENTRY_BYTES, 60.0)
        large = HttpResponse(200, b"x" * 10 * ENTRY_BYTES)
        for round_s in (0.0, 100.0, 200.0):
            repeats.find("", b"", round_s)
            repeats.screen()
            ended(repeats, "a", round_s, large)
            with pytest.raises(LocalError, match="is full"):
                repeats.screen()
        repeats.replace(ANSWER)
        repeats.screen()
        found = repeats.find("a", b"request", 200.0)
        assert found is not None and found.result() == ANSWER
        repeats.find("", b"", 300.0)
        assert len(repeats) == repeats._bytes == 0

    within(test)
