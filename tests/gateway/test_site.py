"""What a gateway answers: every outcome of a call, every refusal, and what repeated requests get."""

import asyncio
import logging
from pathlib import Path

import msgspec
import pytest

import ordercast
from ordercast.core import LocalError, RemoteError, Stamp, message_id
from ordercast.net.api.open_calls import Unknown
from ordercast.net.http.response import HttpResponse
from tests.gateway.site_lab import TOKEN, Visitor, settled, told, visit

KEY = "Idempotency-Key: 7"


def test_arguments_come_as_an_object_an_array_or_not_at_all(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        assert told(await visitor.post("/v1/left/add", {"amount": 5})) == (200, "answered", 5)
        assert told(await visitor.post("/v1/left/add", [2, "tip"])) == (200, "answered", 7)
        assert told(await visitor.post("/v1/left/get")) == (200, "answered", 7)
        assert told(await visitor.post("/v1/right/get", [])) == (200, "answered", 0), "each group has its own"
        assert told(await visitor.post("/v1/left/spell", ["YWI="])) == (200, "answered", "YmE=")

    visit(tmp_path, test)


def test_the_operations_are_listed_with_their_types(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        answer = await visitor.get("/v1")
        content = msgspec.json.decode(answer.content)
        assert (answer.status, content["service"], content["groups"]) == (200, "Till", ["left", "right"])
        add, *_, spell = content["operations"]
        assert (add["name"], add["reads"]) == ("add", False)
        assert add["signature"] == "(amount: int, note: str = '') -> int"
        assert add["summary"] == "Put coins in, or take them out."
        assert add["parameters"] == [
            {"name": "amount", "required": True, "schema": {"type": "integer"}},
            {"name": "note", "required": False, "schema": {"type": "string"}},
        ]
        assert spell["result"] == {"type": "string", "contentEncoding": "base64"}

    visit(tmp_path, test)


def test_an_operation_that_raised_is_an_answer(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        assert told(await visitor.post("/v1/left/add", [-1])) == (422, "refused", "there are only 0 coins")
        assert told(await visitor.post("/v1/left/burn")) == (422, "failed", "ZeroDivisionError: ouch")
        status, outcome, error = told(await visitor.post("/v1/left/pairs"))
        assert (status, outcome) == (500, "answered")
        assert "the operation was executed, but the value cannot be written as JSON" in str(error)

    visit(tmp_path, test)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Unknown(message_id(3, 5), "no answer came"), (504, "unknown", "no answer came: it is not known")),
        (LocalError("no room; it was not sent"), (503, "not-called", "no room; it was not sent")),
        (RemoteError("malformed result"), (500, "answered", "malformed result")),
        (KeyError("x"), (500, "unknown", "a defect of ordercast; its log says more")),
    ],
)
def test_a_call_without_an_answer_says_what_is_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception, expected: tuple[int, str, str]
) -> None:
    async def test(visitor: Visitor) -> None:
        visitor.calls.error = error
        answer = await visitor.post("/v1/left/add", [1], KEY)
        status, outcome, text = told(answer)
        assert (status, outcome) == expected[:2] and str(text).startswith(expected[2])
        assert (("Retry-After", "1") in answer.headers) == (status == 503)
        if status == 504:
            assert msgspec.json.decode(answer.content)["message"] == "3#5"
        visitor.calls.error = None
        again = told(await visitor.post("/v1/left/add", [1], KEY))
        assert again == ((200, "answered", 2) if status == 503 else (status, outcome, text))

    with caplog.at_level(logging.CRITICAL, "ordercast.net.gateway.site"):
        visit(tmp_path, test)


BAD = [
    ("GET", "/v1/left/get", "", 405, "is not allowed here: POST"),
    ("POST", "/v1", "", 405, "is not allowed here: GET, HEAD"),
    ("DELETE", "/health", "", 404, "not found"),
    ("GET", "/", "", 404, "not found; the paths are: GET /v1, POST /v1/GROUP/OPERATION"),
    ("GET", "/v1/", "", 404, "not found"),
    ("POST", "/v2/left/get", "", 404, "not found"),
    ("POST", "/v1/up/get", "", 404, "there is no group 'up'; the groups are: left, right"),
    ("POST", "/v1/left/sub", "", 404, "there is no operation 'sub'; the operations are: add, burn, "),
    ("POST", "/v1/left/__init__", "", 404, "there is no operation"),
    ("POST", "/v1/left/get/", "", 404, "not found"),
    ("POST", "/v1/left/get?amount=1", "", 400, "no query is expected"),
    ("POST", "/v1/left/get", "", 415, "send Content-Type: application/json"),
    ("POST", "/v1/left/get", "Content-Type: text/plain", 415, "send Content-Type: application/json"),
    ("POST", "/v1/left/get", "Content-Type: application/jsonp", 415, "send Content-Type"),
    ("POST", "/v1/left/get", "Content-Type: application/json\r\nIdempotency-Key:", 400, "1 to 255 visible"),
    ("POST", "/v1/left/get", "Content-Type: application/json\r\nIdempotency-Key: a b", 400, "1 to 255"),
    (
        "POST",
        "/v1/left/get",
        f"Content-Type: application/json\r\nIdempotency-Key: {'k' * 256}",
        400,
        "1 to 255",
    ),
    ("GET", "/v1", "Gateway-Life: 0123", 412, "this gateway has forgotten or taken back"),
]


@pytest.mark.parametrize(("method", "path", "line", "status", "error"), BAD)
def test_requests_that_cannot_be_answered(
    tmp_path: Path, method: str, path: str, line: str, status: int, error: str
) -> None:
    async def test(visitor: Visitor) -> None:
        lines = [f"{method} {path} HTTP/1.1", "Host: a", f"Authorization: Bearer {TOKEN}", line]
        raw = "\r\n".join(line for line in lines if line) + "\r\n\r\n"
        got, outcome, text = told(await visitor.ask(raw.encode()))
        assert (got, outcome) == (status, "not-called") and error in str(text)
        assert visitor.calls.made == 0

    visit(tmp_path, test)


@pytest.mark.parametrize("path", ["/v1", "/v1/left/get", "/nowhere"])
@pytest.mark.parametrize("line", ["", "Authorization: Bearer", "Authorization: Basic YTpi", "Authorization:"])
def test_who_has_no_token_learns_nothing(tmp_path: Path, path: str, line: str) -> None:
    async def test(visitor: Visitor) -> None:
        lines = [f"POST {path} HTTP/1.1", "Host: a", "Content-Type: application/json", line]
        answer = await visitor.ask(("\r\n".join(filter(None, lines)) + "\r\n\r\n").encode())
        assert answer.status == 401
        assert ("WWW-Authenticate", 'Bearer realm="ordercast"') in answer.headers
        assert visitor.calls.made == 0

    visit(tmp_path, test)


def test_health_is_told_to_everybody(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        raw = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
        assert (await visitor.ask(raw)).content == b'{"status":"running"}\n'
        visitor.site.stop("the cluster is going down")
        answer = await visitor.ask(raw)
        assert answer.status == 503 and b"the cluster is going down" in answer.content
        refused = await visitor.post("/v1/left/add", [1])
        assert told(refused) == (503, "not-called", "the cluster is going down")

    visit(tmp_path, test)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ([], "'amount' is missing"),
        ({}, "'amount' is missing"),
        ({"amount": "5"}, "'amount': Expected `int`, got `str`"),
        ({"amount": 5.0}, "'amount': Expected `int`, got `float`"),
        ({"amount": True}, "'amount': Expected `int`, got `bool`"),
        ({"amount": None}, "'amount': Expected `int`, got `null`"),
        ({"amount": 1 << 70}, "wrong arguments for add"),
        ({"amount": 1, "other": 2}, "there is no parameter 'other'"),
        ([1, "a", 3], "3 values for 2 parameters"),
        (b'{"amount": 1, "amount": 2}', "a name comes twice in an object"),
        (b'{"amount": 1', "the body is not JSON with an object or an array of arguments"),
        (b"5", "the body is not JSON with an object or an array of arguments"),
        (b"[1] []", "the body is not JSON"),
        (b'["\xff"]', "the body is not JSON"),
        (b"\xef\xbb\xbf[1]", "the body is not JSON"),
        (b"[NaN]", "the body is not JSON"),
        (b"[" * 100_000, "the body is not JSON"),
        (b"[" + b"9" * 5000 + b"]", "the body is not JSON"),
        (b'[1, "\\ud800"]', "the body is not JSON"),
    ],
)
def test_wrong_arguments_are_refused_and_nothing_is_called(tmp_path: Path, body: object, error: str) -> None:
    async def test(visitor: Visitor) -> None:
        status, outcome, text = told(await visitor.post("/v1/left/add", body, KEY))
        assert (status, outcome) == (400, "not-called") and error in str(text)
        assert visitor.calls.made == 0
        assert told(await visitor.post("/v1/left/add", [1], KEY))[0] == 200, "the key is still free"

    visit(tmp_path, test)


def test_an_operation_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        status, outcome, error = told(await visitor.post("/v1/left/add", [1, "x" * (1 << 20)]))
        assert (status, outcome) == (413, "not-called") and "the limit is" in str(error)

    visit(tmp_path, test)


def test_a_repeated_request_is_called_once(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        first = await visitor.post("/v1/left/add", {"amount": 5}, KEY)
        assert await visitor.post("/v1/left/add", b'[5, ""]', KEY) == first, "the same, written otherwise"
        refused = await visitor.post("/v1/left/add", [-9], "Idempotency-Key: 8")
        await visitor.post("/v1/left/add", [100])
        assert await visitor.post("/v1/left/add", [-9], "Idempotency-Key: 8") == refused
        assert visitor.calls.made == 3 and visitor.site.repeats.answered == 2

    visit(tmp_path, test)


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/left/add", [6]), ("/v1/right/add", [5]), ("/v1/left/get", [])]
)
def test_the_key_of_another_request_is_refused(tmp_path: Path, path: str, body: object) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.post("/v1/left/add", [5], KEY)
        status, outcome, error = told(await visitor.post(path, body, KEY))
        assert (status, outcome) == (409, "not-called") and "was used for another request" in str(error)
        assert visitor.calls.made == 1

    visit(tmp_path, test)


def test_requests_that_come_while_the_first_is_under_way_wait_for_it(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        visitor.calls.gate.clear()
        asked = [asyncio.create_task(visitor.post("/v1/left/add", [5], KEY)) for _ in range(5)]
        await settled(lambda: visitor.site.repeats.answered == 4)
        visitor.calls.gate.set()
        assert {told(await one) for one in asked} == {(200, "answered", 5)}
        assert visitor.calls.made == 1

    visit(tmp_path, test)


def test_a_request_that_waited_too_long_learns_the_outcome_by_its_key(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        visitor.calls.gate.clear()
        assert told(await visitor.post("/v1/left/add", [5], KEY))[:2] == (504, "waiting")
        assert told(await visitor.post("/v1/left/add", [1]))[:2] == (504, "unknown")
        assert visitor.site.under_way == 2
        visitor.calls.gate.set()
        assert told(await visitor.post("/v1/left/add", [5], KEY)) == (200, "answered", 5)
        assert visitor.calls.made == 2

    visit(tmp_path, test, wait_s=0.01)


def test_more_calls_than_the_limit_are_refused_until_some_have_ended(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        visitor.calls.gate.clear()
        asked = [asyncio.create_task(visitor.post("/v1/left/add", [1])) for _ in range(3)]
        await settled(lambda: visitor.site.under_way == 3)
        answer = await visitor.post("/v1/left/add", [1], KEY)
        assert told(answer) == (503, "not-called", "3 calls are under way, and more are not taken")
        assert ("Retry-After", "1") in answer.headers
        visitor.calls.gate.set()
        assert [told(await one)[0] for one in asked] == [200, 200, 200]
        assert told(await visitor.post("/v1/left/add", [1], KEY)) == (200, "answered", 4)

    visit(tmp_path, test, calls=3)


def test_a_silent_group_is_not_called_and_the_others_are(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        visitor.calls.gate.clear()
        asked = asyncio.create_task(visitor.post("/v1/left/add", [1], KEY))
        await asyncio.sleep(0.1)
        status, outcome, error = told(await visitor.post("/v1/left/add", [1]))
        assert (status, outcome) == (503, "not-called") and "the service does not answer" in str(error)
        again = asyncio.create_task(visitor.post("/v1/left/add", [1], KEY))
        other = asyncio.create_task(visitor.post("/v1/right/add", [1]))
        await settled(lambda: visitor.calls.made == 2)
        visitor.calls.gate.set()
        assert told(await asked) == told(await again) == told(await other) == (200, "answered", 1)
        assert told(await visitor.post("/v1/left/add", [1])) == (200, "answered", 2)

    visit(tmp_path, test, silent_s=0.05)


def test_a_table_without_room_refuses_new_keys_and_forgets_nothing(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        for number in range(3):
            await visitor.post("/v1/left/add", [1], f"Idempotency-Key: {number}")
        status, outcome, error = told(await visitor.post("/v1/left/add", [1], "Idempotency-Key: 3"))
        assert (status, outcome) == (503, "not-called") and "is full: it has 3 requests" in str(error)
        assert told(await visitor.post("/v1/left/add", [1], "Idempotency-Key: 0")) == (200, "answered", 1)
        assert told(await visitor.post("/v1/left/add", [1])) == (200, "answered", 4), "others go on"

    visit(tmp_path, test, keys=3)


def test_a_key_is_kept_for_its_time(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        await visitor.post("/v1/left/add", [1], KEY)
        await asyncio.sleep(0.05)
        assert told(await visitor.post("/v1/left/add", [1], KEY)) == (200, "answered", 2)

    visit(tmp_path, test, keep_s=0.01)


def test_answers_that_are_taken_back_are_not_given_again(tmp_path: Path) -> None:
    def life(answer: HttpResponse) -> str:
        return dict(answer.headers)["Gateway-Life"]

    async def test(visitor: Visitor) -> None:
        first = await visitor.post("/v1/left/add", [1], KEY)
        same = f"Gateway-Life: {life(first)}"
        assert told(await visitor.post("/v1/left/add", [1], KEY, same)) == (200, "answered", 1)
        visitor.site.on_undone(ordercast.Undone(0, Stamp(9, 1)))
        assert told(await visitor.post("/v1/left/add", [1], KEY, same))[:2] == (412, "not-called")
        answer = await visitor.post("/v1/left/add", [1], KEY)
        assert told(answer)[:2] == (504, "unknown") and life(answer) != life(first)
        assert visitor.calls.made == 1

    visit(tmp_path, test)


def test_an_answer_that_is_taken_back_before_it_is_sent_is_of_the_life_before(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        visitor.calls.gate.clear()
        asked, before = asyncio.create_task(visitor.post("/v1/left/add", [1], KEY)), visitor.site.life
        await settled(lambda: visitor.calls.made == 1)
        visitor.calls.gate.set()
        await settled(lambda: not visitor.site.under_way)
        assert not asked.done()
        visitor.site.on_undone(ordercast.Undone(0, Stamp(9, 1)))
        answer = await asked
        assert told(answer) == (200, "answered", 1) and dict(answer.headers)["Gateway-Life"] == before
        assert told(await visitor.post("/v1/left/add", [1], KEY))[:2] == (504, "unknown")

    visit(tmp_path, test)


def test_what_is_no_request_is_answered_in_json(tmp_path: Path) -> None:
    async def test(visitor: Visitor) -> None:
        assert told(visitor.site.malformed(400, "not HTTP")) == (400, "not-called", "not HTTP")
        stopping = visitor.site.malformed(503, "the server is stopping")
        assert ("Retry-After", "1") in stopping.headers

    visit(tmp_path, test)
