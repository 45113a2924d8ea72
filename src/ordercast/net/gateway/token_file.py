"""The tokens by which a gateway knows its clients, in a file that only its owner may read.

The file lists tokens, one a line; each is accepted. So a token is changed without downtime: add the new one,
have all clients use it, remove the old one. A running gateway reads the file again when it has changed.
"""

import hmac
import logging
import os
import re
import secrets
from hashlib import sha256
from pathlib import Path

from ordercast.core import LocalError
from ordercast.net.cluster.key_file import MODE, file_mark, read_private

TOKEN_BYTES = 32
TOKEN_CHARS_MIN, TOKEN_CHARS_MAX = 16, 1024

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What a bearer token may be (RFC 6750)."""
_SCHEME = "bearer "
_NOTE = "# Tokens of an ordercast gateway, one a line: clients send one of them. Never commit.\n"

log = logging.getLogger(__name__)


def create_tokens(path: Path) -> None:
    """Write a file with one new token; `LocalError` if there is one."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{_NOTE}{secrets.token_urlsafe(TOKEN_BYTES)}\n")
    except OSError as error:
        raise LocalError(f"{path}: cannot be written: {error.strerror}") from error


class TokenFile:
    """The tokens of a file, of which only digests are kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mark = file_mark(path)
        self._digests = load_digests(path)

    def refresh(self) -> None:
        """Read the file again if it has changed; if it cannot be used, the old tokens stay valid."""
        mark = file_mark(self.path)
        if mark == self._mark:
            return
        self._mark = mark
        try:
            self._digests = load_digests(self.path)
        except LocalError as error:
            log.error("the old tokens stay valid: %s", error)
        else:
            log.info("read the tokens again: there are %d", len(self._digests))

    def admit(self, authorization: str) -> bool:
        """Whether the header of a request has one of the tokens; that takes the same time for any text."""
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            return False
        given = sha256(authorization[len(_SCHEME) :].strip(" ").encode()).digest()
        return sum(hmac.compare_digest(given, known) for known in self._digests) > 0


def load_digests(path: Path) -> tuple[bytes, ...]:
    """The digests of the tokens in a file; errors name a line, and never show a token."""
    lines = ((number, line.strip()) for number, line in enumerate(read_private(path).splitlines(), 1))
    found = tuple(_digest(path, number, line) for number, line in lines if line and line[0] != "#")
    if not found:
        raise LocalError(f"{path}: the file has no token")
    return found


def _digest(path: Path, number: int, line: str) -> bytes:
    if not TOKEN_CHARS_MIN <= len(line) <= TOKEN_CHARS_MAX or not _TOKEN.fullmatch(line):
        raise LocalError(
            f"{path}, line {number}: not a token; a token has {TOKEN_CHARS_MIN} to {TOKEN_CHARS_MAX}"
            " letters, digits and characters of -._~+/, and may end with ="
        )
    return sha256(line.encode()).digest()
