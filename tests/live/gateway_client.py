"""A client of a gateway, as a program outside would be: HTTP by the standard library, and nothing of ours."""

import http.client
import json
import ssl
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Told(NamedTuple):
    """An answer."""

    status: int
    content: dict[str, Any]
    life: str

    @property
    def result(self) -> Any:
        """The result of an operation that was answered."""
        assert (self.status, self.content["outcome"]) == (200, "answered"), self
        return self.content["result"]


class Outsider:
    """One connection to a gateway."""

    def __init__(self, url: str, tokens: Path, *, trusted: Path | None = None) -> None:
        parts = urlsplit(url)
        address, timeout = (parts.hostname or "", parts.port), 300.0
        self._connection = (
            http.client.HTTPConnection(*address, timeout=timeout)
            if trusted is None
            else http.client.HTTPSConnection(
                *address, timeout=timeout, context=ssl.create_default_context(cafile=str(trusted))
            )
        )
        self._base = parts.path
        (self._token,) = [line for line in tokens.read_text().splitlines() if not line.startswith("#")]

    def call(self, path: str, *args: object, key: str = "", life: str = "") -> Told:
        """Call an operation."""
        headers = {"Content-Type": "application/json"}
        headers |= {"Idempotency-Key": key} if key else {}
        headers |= {"Gateway-Life": life} if life else {}
        return self.ask("POST", f"{self._base}/{path}", json.dumps(args), headers)

    def ask(self, method: str, path: str, body: str = "", headers: dict[str, str] | None = None) -> Told:
        """Send a request; a connection that the gateway has closed is opened again."""
        headers = {"Authorization": f"Bearer {self._token}", **(headers or {})}
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except BaseException:
            self._connection.close()
            raise
        return Told(answer.status, json.loads(content), answer.headers["Gateway-Life"])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
