"""A gateway's site without a cluster: calls are executed by a service in this process, or as a test says."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from ordercast.core import (
    Context,
    GroupId,
    OperationType,
    Refused,
    Service,
    ServiceType,
    StateMachine,
    message_id,
    operation,
    read,
)
from ordercast.net.api.open_calls import OpenCalls
from ordercast.net.gateway.site import CallLimits, GatewaySite
from ordercast.net.gateway.token_file import TokenFile
from ordercast.net.http.request import HttpRequest, RequestReader
from ordercast.net.http.response import HttpResponse
from tests.live.processes import PATIENCE_S

TOKEN = "a-token-of-the-tests"


class Till(Service):
    """A till, with operations that end in every way."""

    def __init__(self) -> None:
        self.coins = 0

    @operation
    def add(self, amount: int, note: str = "") -> int:
        """Put coins in, or take them out."""
        if self.coins + amount < 0:
            raise Refused(f"there are only {self.coins} coins")
        self.coins += amount
        return self.coins

    @operation
    def burn(self) -> None:
        raise ZeroDivisionError("ouch")

    @operation
    def spell(self, data: bytes) -> bytes:
        return data[::-1]

    @operation
    def pairs(self) -> dict[tuple[int, int], int]:
        return {(1, 2): 3}

    @read
    def get(self) -> int:
        """The coins in it."""
        return self.coins


class Calls:
    """Stands in for the calls of a client: a service of each group, in this process."""

    def __init__(self) -> None:
        self.machines: dict[GroupId, StateMachine] = {g: ServiceType.of(Till).spec().make() for g in (0, 1)}
        self.made = 0
        self.gate = asyncio.Event()
        """Answers come while it is set."""
        self.gate.set()
        self.error: Exception | None = None
        """What calls raise instead."""

    async def call(self, kind: OperationType, payload: bytes, group: GroupId) -> Any:
        self.made += 1
        result = self.machines[group].apply(payload, Context(message_id(7, self.made), 0))
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return kind.unpack_result(result)


class Visitor:
    """A client of a site, whose requests are read from bytes as a server does."""

    def __init__(self, site: GatewaySite, calls: Calls) -> None:
        self.site, self.calls = site, calls

    async def ask(self, raw: bytes) -> HttpResponse:
        """What some bytes of one request are answered."""
        reader = RequestReader(4 << 20)
        reader.feed(raw)
        head = reader.read_head()
        assert head is not None
        refused = self.site.screen(head)
        if refused is not None:
            return refused
        body = reader.read_body()
        assert body is not None and reader.buffered == 0
        return await self.site.answer(HttpRequest(head, body))

    async def post(self, path: str, body: object = b"", *lines: str, token: str = TOKEN) -> HttpResponse:
        """What a call is answered."""
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        head = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {len(content)}", *lines]
        head += [f"Authorization: Bearer {token}", "Content-Type: application/json"]
        return await self.ask("\r\n".join([*head, "", ""]).encode() + content)

    async def get(self, path: str, *lines: str) -> HttpResponse:
        """What a question is answered."""
        head = [f"GET {path} HTTP/1.1", "Host: a", f"Authorization: Bearer {TOKEN}", *lines]
        return await self.ask("\r\n".join([*head, "", ""]).encode())


def visit(folder: Path, test: Callable[[Visitor], Awaitable[None]], **limits: Any) -> None:
    """Run a test beside a site with two groups."""
    tokens = folder / "gateway.token"
    tokens.write_text(f"{TOKEN}\n")
    tokens.chmod(0o600)

    async def main() -> None:
        calls = Calls()
        groups = {"left": 0, "right": 1}
        site = GatewaySite(
            cast(OpenCalls, calls), ServiceType.of(Till), groups, TokenFile(tokens), CallLimits(**limits)
        )
        async with asyncio.timeout(PATIENCE_S):
            await test(Visitor(site, calls))

    asyncio.run(main())


def told(answer: HttpResponse) -> tuple[int, str, object]:
    """The status, the outcome and the result or the error of an answer."""
    content = msgspec.json.decode(answer.content)
    return answer.status, content["outcome"], content.get("result", content.get("error"))


async def settled(holds: Callable[[], bool]) -> None:
    """Let others go on until something holds."""
    while not holds():
        await asyncio.sleep(0)
