"""The answers of a gateway: a status for programs that know HTTP, and an outcome that says what happened.

status                       | outcome    | was the operation executed?
-----------------------------|------------|-------------------------------------------------
200                          | answered   | yes, once: `result`
422                          | refused    | yes; the service refused it: `error`
422                          | failed     | yes; it raised another exception: `error`
500                          | answered   | yes; its result cannot be written as JSON: `error`
504                          | waiting    | not known yet; the gateway still waits for it
504                          | unknown    | nobody knows: it was, it will be, or never will be
500                          | unknown    | a defect of ordercast
4xx otherwise, and 503       | not-called | no, by this request
"""

from typing import Literal, TypeAlias

from ordercast.net.gateway.arguments import as_json
from ordercast.net.http.response import HttpResponse

JSON = "application/json"
RETRY_AFTER = ("Retry-After", "1")

Outcome: TypeAlias = Literal["answered", "refused", "failed", "waiting", "unknown", "not-called"]


def answered(result: object) -> HttpResponse:
    """An operation gave a value; `LocalError` if JSON cannot say it."""
    return HttpResponse(200, as_json({"outcome": "answered", "result": result}) + b"\n", JSON)


def problem(status: int, outcome: Outcome, error: str, **more: str) -> HttpResponse:
    """An answer with an error."""
    return HttpResponse(status, as_json({"outcome": outcome, "error": error, **more}) + b"\n", JSON)


def refusal(status: int, error: str, *headers: tuple[str, str]) -> HttpResponse:
    """An answer to a request by which nothing was called."""
    return problem(status, "not-called", error)._replace(headers=headers)


def busy(error: str) -> HttpResponse:
    """An answer to a request that may be repeated soon."""
    return refusal(503, error, RETRY_AFTER)
