"""What a gateway serves: the operations of a service, by HTTP.

GET  /health                    200 while calls are taken, else 503; without a token
GET  /v1                        the service, its groups and its operations
POST /v1/GROUP/OPERATION        call an operation; the body has its arguments

A request waits for its answer no longer than `wait_s`. The call goes on after that, so that the same request,
repeated with its `Idempotency-Key`, can still learn what became of it.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ordercast.components.execution.call import OPERATION_BYTES_MAX
from ordercast.core import (
    GroupId,
    LocalError,
    Refused,
    RemoteError,
    ServiceFailed,
    ServiceType,
    Undone,
    message_name,
)
from ordercast.net.api.open_calls import OpenCalls, Unknown
from ordercast.net.gateway.answers import JSON, answered, busy, problem, refusal
from ordercast.net.gateway.arguments import JsonOperation, as_json, describe
from ordercast.net.gateway.repeats import OtherRequest, Repeats
from ordercast.net.gateway.silence import Silence
from ordercast.net.gateway.token_file import TokenFile
from ordercast.net.http.request import HttpHead, HttpRequest
from ordercast.net.http.response import HttpResponse

KEY = "idempotency-key"
LIFE = "gateway-life"
KEY_CHARS_MAX = 255
_KEY = re.compile(r"[!-~]+")
log = logging.getLogger(__name__)

_JSON_BODY = re.compile(r"application/json *(;.*)?", re.IGNORECASE)


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What clients of a gateway may take together, and how long."""

    calls: int = 1024
    """Calls under way."""
    wait_s: float = 10.0
    """How long a request waits for its answer."""
    silent_s: float = 5.0
    """After so long without any answer of a group, calls to it are refused."""
    keep_s: float = 600.0
    """How long the answer to a request with a key is kept."""
    keys: int = 100_000
    """Requests with a key that are kept."""
    kept_bytes: int = 256 << 20
    """Bytes of all these answers."""


class _Target(NamedTuple):
    """What a request calls."""

    name: str
    """The name of the group and of the operation."""
    group: GroupId
    operation: JsonOperation


class GatewaySite:
    """The operations of one service, for those who have a token."""

    def __init__(
        self,
        calls: OpenCalls,
        service: ServiceType,
        groups: Mapping[str, GroupId],
        tokens: TokenFile,
        limits: CallLimits,
    ) -> None:
        self._calls = calls
        self._groups = groups
        self._tokens = tokens
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._content = {"groups": list(groups), **describe(service)}
        self._targets = {
            f"/v1/{name}/{kind.name}": _Target(f"{name}/{kind.name}", group, JsonOperation(kind))
            for name, group in groups.items()
            for kind in service.operations.values()
        }
        self._silences = {group: Silence(limits.silent_s) for group in groups.values()}
        self._under_way: set[asyncio.Task[HttpResponse]] = set()
        self._stopping = ""
        """Why no calls are taken any more."""
        self.repeats = Repeats(limits.keys, limits.kept_bytes, limits.keep_s)
        self.life = ""
        """Changes when what clients were told before may not hold, or is forgotten."""
        self._begin_life()

    @property
    def under_way(self) -> int:
        """Calls that have no outcome yet."""
        return len(self._under_way)

    # What a server asks

    def screen(self, head: HttpHead) -> HttpResponse | None:
        """Refuse what is not a call or a question of somebody who may ask, before its body is read."""
        if head.path == "/health" and head.method in ("GET", "HEAD"):
            return self._health()  # not admitted: who has no token takes no place of those who have
        refused = self._screen(head)
        return None if refused is None else self._in_this_life(refused)

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """Call an operation, or say which there are."""
        head = request.head
        if head.headers.get(LIFE, self.life) != self.life:
            return self._in_this_life(self._of_another_life())
        if head.method != "POST":
            return self._in_this_life(HttpResponse(200, as_json(self._content) + b"\n", JSON))
        outcome = self._begin(head, request.body)
        if isinstance(outcome, HttpResponse):
            return self._in_this_life(outcome)
        done, _ = await asyncio.wait((outcome,), timeout=self._limits.wait_s)
        return outcome.result() if done else self._in_this_life(self._waiting(KEY in head.headers))

    def malformed(self, status: int, text: str) -> HttpResponse:
        """The answer to what is no request."""
        return self._in_this_life(busy(text) if status == 503 else refusal(status, text))

    # What a gateway tells

    def stop(self, why: str) -> None:
        """Take no more calls."""
        self._stopping = self._stopping or why

    def on_undone(self, undone: Undone) -> None:
        """Answers that were given do not hold any more. Nobody knows which, so none is given again."""
        text = "the answer does not hold any more: it was on a branch that was discarded"
        self._begin_life()
        self.repeats.replace(self._in_this_life(problem(504, "unknown", text)))

    # Refusals

    def _health(self) -> HttpResponse:
        well = not self._stopping
        content = {"status": "running"} if well else {"status": "stopping", "error": self._stopping}
        return HttpResponse(200 if well else 503, as_json(content) + b"\n", JSON)

    def _screen(self, head: HttpHead) -> HttpResponse | None:
        if not self._tokens.admit(head.headers.get("authorization", "")):
            text = "send a token of this gateway: Authorization: Bearer TOKEN"
            return refusal(401, text, ("WWW-Authenticate", 'Bearer realm="ordercast"'))
        if head.query:
            return refusal(400, "no query is expected: the arguments are in the body")
        if head.path == "/v1":
            return _only(head, "GET", "HEAD")
        if head.path in self._targets:
            return _only(head, "POST") or _screen_call(head)
        return refusal(404, self._missing(head.path))

    def _missing(self, path: str) -> str:
        match path.split("/"):
            case ["", "v1", group, _] if group not in self._groups:
                return f"there is no group {group[:80]!r}; the groups are: {', '.join(self._groups)}"
            case ["", "v1", _, operation]:
                known = dict.fromkeys(target.operation.kind.name for target in self._targets.values())
                return f"there is no operation {operation[:80]!r}; the operations are: {', '.join(known)}"
        return "not found; the paths are: GET /v1, POST /v1/GROUP/OPERATION"

    # Calls

    def _of_another_life(self) -> HttpResponse:
        text = (
            "this gateway has forgotten or taken back what it answered in that life: read again what you rely"
            f" on; its life is {self.life}"
        )
        return refusal(412, text)

    def _begin(self, head: HttpHead, body: bytes) -> "HttpResponse | asyncio.Future[HttpResponse]":
        """Make a call, and give its outcome; or say why it cannot be made."""
        target = self._targets[head.path]
        try:
            payload = target.operation.pack(body)
        except LocalError as error:
            return refusal(400, str(error))
        if len(payload) > OPERATION_BYTES_MAX:
            text = f"the operation has {len(payload)} bytes with its arguments; the limit is"
            return refusal(413, f"{text} {OPERATION_BYTES_MAX}")
        try:
            return self._outcome(target, payload, head.headers.get(KEY, ""))
        except OtherRequest as error:
            return refusal(409, str(error))
        except LocalError as error:
            return busy(str(error))

    def _outcome(self, target: _Target, payload: bytes, key: str) -> "asyncio.Future[HttpResponse]":
        """The outcome of a call, made now or by an earlier request; `LocalError` if it cannot be made."""
        request = target.name.encode() + b" " + payload
        if key and (found := self.repeats.find(key, request, self._loop.time())):
            return found
        self._admit(target.group)
        if key:
            self.repeats.screen()
        task = self._loop.create_task(self._perform(target, payload, key))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        if key:
            self.repeats.begin(key, request, task)
        return task

    def _admit(self, group: GroupId) -> None:
        if self._stopping:
            raise LocalError(self._stopping)
        if len(self._under_way) >= self._limits.calls:
            raise LocalError(f"{len(self._under_way)} calls are under way, and more are not taken")
        if not self._silences[group].admit(self._loop.time()):
            raise LocalError("the service does not answer: most of its replicas may be down or out of reach")

    async def _perform(self, target: _Target, payload: bytes, key: str) -> HttpResponse:
        silence = self._silences[target.group]
        number = silence.begin(self._loop.time())
        answer, called = await self._ask(target, payload)
        answer = self._in_this_life(answer)  # now: it may be taken back before it is sent
        silence.end(number, self._loop.time(), heard=called and answer.status != 504)
        if key and called:
            self.repeats.end(key, answer, self._loop.time())
        elif key:
            self.repeats.forget(key)
        return answer

    async def _ask(self, target: _Target, payload: bytes) -> tuple[HttpResponse, bool]:
        """What a call comes to, and whether it was made at all."""
        try:
            return _answered(await self._calls.call(target.operation.kind, payload, target.group)), True
        except Refused as error:
            return problem(422, "refused", str(error)), True
        except ServiceFailed as error:
            return problem(422, "failed", str(error)), True
        except RemoteError as error:
            return problem(500, "answered", str(error)), True
        except Unknown as error:
            return problem(504, "unknown", str(error), message=message_name(error.message)), True
        except LocalError as error:
            return busy(str(error)), False
        except Exception:
            log.exception("a defect of ordercast: it is not known what became of a call")
            return problem(500, "unknown", "a defect of ordercast; its log says more"), True

    def _waiting(self, keyed: bool) -> HttpResponse:
        text = (
            f"no answer came within {self._limits.wait_s:g} s: the operation may have been executed, or still"
            " will be"
        )
        if keyed:
            return problem(
                504, "waiting", f"{text}; repeat the request with its key to learn what became of it"
            )
        return problem(504, "unknown", text)

    def _begin_life(self) -> None:
        self.life = secrets.token_hex(8)

    def _in_this_life(self, answer: HttpResponse) -> HttpResponse:
        return answer._replace(headers=(*answer.headers, ("Gateway-Life", self.life)))


def _answered(result: object) -> HttpResponse:
    try:
        return answered(result)
    except LocalError as error:
        return problem(500, "answered", f"the operation was executed, but {error}")


def _only(head: HttpHead, *methods: str) -> HttpResponse | None:
    if head.method in methods:
        return None
    allowed = ", ".join(methods)
    return refusal(405, f"{head.method[:80]} is not allowed here: {allowed}", ("Allow", allowed))


def _screen_call(head: HttpHead) -> HttpResponse | None:
    if not _JSON_BODY.fullmatch(head.headers.get("content-type", "")):
        # Also what keeps web pages from calling: a browser asks first before it sends this type.
        return refusal(415, "the arguments are JSON: send Content-Type: application/json")
    key = head.headers.get(KEY)
    if key is not None and (len(key) > KEY_CHARS_MAX or not _KEY.fullmatch(key)):
        text = f"Idempotency-Key has 1 to {KEY_CHARS_MAX} visible ASCII characters, without spaces"
        return refusal(400, text)
    return None
