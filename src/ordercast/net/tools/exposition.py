"""Metrics over HTTP for monitoring systems: ``GET /metrics`` and ``GET /health``, and nothing else.

They change nothing, and by default they are served to this machine alone.
"""

from collections.abc import Callable

import msgspec

from ordercast.core import exception_text
from ordercast.net.http.request import HttpHead, HttpRequest
from ordercast.net.http.response import HttpResponse, text_response
from ordercast.net.http.server import HttpLimits, HttpServer
from ordercast.net.transports.address import Address

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_JSON = "application/json"

Health = Callable[[], tuple[bool, dict[str, object]]]
"""Whether the host is well, and details."""


class MetricsSite:
    """The two pages of one host."""

    def __init__(self, metrics: Callable[[], str], health: Health) -> None:
        self._metrics = metrics
        self._health = health

    def screen(self, head: HttpHead) -> HttpResponse | None:
        """Refuse what asks for more than a page."""
        if head.method not in ("GET", "HEAD"):
            text = "only GET and HEAD are allowed: GET /metrics, GET /health"
            return text_response(405, text, ("Allow", "GET, HEAD"))
        return None

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """A page."""
        path = request.head.path
        try:
            if path == "/metrics":
                return HttpResponse(200, self._metrics().encode(), _TEXT)
            if path == "/health":
                well, content = self._health()
                return HttpResponse(200 if well else 503, msgspec.json.encode(content) + b"\n", _JSON)
        except Exception as error:  # a question must never stop the host
            return text_response(500, f"a defect of ordercast: {exception_text(error)}")
        return text_response(404, "not found; the paths are: /metrics, /health")

    def malformed(self, status: int, text: str) -> HttpResponse:
        """The answer to what is no request."""
        return text_response(status, text)


def metrics_server(address: Address, metrics: Callable[[], str], health: Health) -> HttpServer:
    """A server of the metrics of one host."""
    return HttpServer(address, MetricsSite(metrics, health), HttpLimits())
