"""Requests with an `Idempotency-Key`: what became of them, for those who ask again.

A request is kept from when it is called until `keep_s` after its end. A repeated one gets the same answer, or
waits for it, and is never called again. Within that time nothing is forgotten: if the table is full, new keys
are refused. So the promise holds under any load, at the price of a limit on requests with a key. Outcomes
that are certain not to have changed anything are not kept.
"""

import asyncio
from hashlib import sha256

from ordercast.core import LocalError
from ordercast.net.http.response import HttpResponse

ENTRY_BYTES = 512
"""What an entry takes besides its key and its answer, about."""


class OtherRequest(LocalError):
    """The key was used for another request."""


class Entry:
    """One request."""

    __slots__ = ("digest", "ended_s", "outcome")

    def __init__(self, digest: bytes, outcome: "asyncio.Future[HttpResponse]") -> None:
        self.digest = digest
        """What was called with which arguments."""
        self.outcome = outcome
        self.ended_s = 0.0


class Repeats:
    """The requests of a gateway that came with a key."""

    def __init__(self, keys_max: int, bytes_max: int, keep_s: float) -> None:
        self._keys_max = keys_max
        self._bytes_max = bytes_max
        self._keep_s = keep_s
        self._under_way: dict[str, Entry] = {}
        self._ended: dict[str, Entry] = {}
        """In the order of their ends."""
        self._bytes = 0
        """Of keys and answers."""
        self.answered = 0
        """How many repeated requests came."""

    def __len__(self) -> int:
        return len(self._under_way) + len(self._ended)

    def find(self, key: str, request: bytes, now_s: float) -> "asyncio.Future[HttpResponse] | None":
        """The outcome of an earlier request with this key; `OtherRequest` if that was not the same one."""
        self._expire(now_s)
        entry = self._under_way.get(key) or self._ended.get(key)
        if entry is None:
            return None
        if entry.digest != sha256(request).digest():
            raise OtherRequest("this Idempotency-Key was used for another request; take a new one")
        self.answered += 1
        return entry.outcome

    def screen(self) -> None:
        """Raise `LocalError` if no key can be taken."""
        if len(self) >= self._keys_max or self._bytes >= self._bytes_max:
            raise LocalError(
                f"the table of requests with an Idempotency-Key is full: it has {len(self)} requests with"
                f" {self._bytes} bytes of the last {self._keep_s:g} s"
            )

    def begin(self, key: str, request: bytes, outcome: "asyncio.Future[HttpResponse]") -> None:
        """Take a new request; `end` or `forget` must follow."""
        self._under_way[key] = Entry(sha256(request).digest(), outcome)
        self._bytes += ENTRY_BYTES + len(key)

    def end(self, key: str, answer: HttpResponse, now_s: float) -> None:
        """Keep the outcome of a request for those who ask again."""
        entry = self._ended[key] = self._under_way.pop(key)
        entry.ended_s = now_s
        self._bytes += len(answer.content)

    def forget(self, key: str) -> None:
        """A request was certainly not called: its key may be used again."""
        del self._under_way[key]
        self._bytes -= ENTRY_BYTES + len(key)

    def replace(self, answer: HttpResponse) -> None:
        """Answer all ended requests like this from now on, because what they were told does not hold."""
        for entry in self._ended.values():
            self._bytes += len(answer.content) - len(entry.outcome.result().content)
            entry.outcome = asyncio.get_running_loop().create_future()
            entry.outcome.set_result(answer)

    def _expire(self, now_s: float) -> None:
        while self._ended:
            key, entry = next(iter(self._ended.items()))
            if now_s - entry.ended_s < self._keep_s:
                return
            del self._ended[key]
            self._bytes -= ENTRY_BYTES + len(key) + len(entry.outcome.result().content)
