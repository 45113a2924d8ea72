"""Answers of HTTP/1.1, as bytes."""

from http import HTTPStatus
from typing import NamedTuple

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
TEXT = "text/plain; charset=utf-8"


class HttpResponse(NamedTuple):
    """One answer."""

    status: int
    content: bytes
    kind: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers: names and values."""

    def pack(self, *, keep_alive: bool, with_content: bool = True) -> bytes:
        """The bytes of the answer; the content is left out in an answer to HEAD."""
        head = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            f"Content-Type: {self.kind}",
            f"Content-Length: {len(self.content)}",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        if not keep_alive:
            head.append("Connection: close")
        return "\r\n".join([*head, "", ""]).encode("latin-1") + (self.content if with_content else b"")


def text_response(status: int, text: str, *headers: tuple[str, str]) -> HttpResponse:
    """An answer in words."""
    return HttpResponse(status, f"{text}\n".encode(), TEXT, headers)
