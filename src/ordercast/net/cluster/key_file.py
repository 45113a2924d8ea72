"""The secret keys that the hosts of a cluster share, in a file that only its owner may read.

The file lists keys, one a line in base64. A host seals with the first and accepts all, so a key is changed
without downtime in three steps: add the new one at the end everywhere (`add_key`), move it to the front
everywhere (`activate_key`), drop the old one everywhere (`retire_key`). Between two steps every host must
have read the file again, which `KeyFile` does for it.
"""

import base64
import binascii
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from ordercast.core import LocalError
from ordercast.net.links.keyring import Key, Keyring

SECRET_BYTES = 32
MODE = 0o600
OTHERS = 0o077

_NOTE = "# Secret keys of an ordercast cluster: the first seals, all are accepted. Never share or commit.\n"


def load_keys(path: Path) -> Keyring:
    """The keys of a file; refuses a file that other users may read."""
    text = read_private(path)
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    keys = [_parse(path, number, line) for number, line in lines if line and not line.startswith("#")]
    if not keys:
        raise LocalError(f"{path}: the file has no key")
    try:
        return Keyring.of(keys)
    except LocalError as error:
        raise LocalError(f"{path}: {error}") from error


def create_keys(path: Path, *, force: bool = False) -> Keyring:
    """Write a file with one new key; refuses to overwrite one unless forced."""
    if path.exists() and not force:
        raise LocalError(f"{path}: the key file already exists")
    ring = Keyring.of([_new_key()])
    _write(path, ring)
    return ring


def add_key(path: Path) -> Keyring:
    """Step one of a rotation: add a new key at the end, which hosts accept and do not use yet."""
    ring = load_keys(path)
    return _rewrite(path, [*ring.accepted.values(), _new_key()])


def activate_key(path: Path, key_id: int) -> Keyring:
    """Step two: seal with this key from now on, and still accept the others."""
    ring = load_keys(path)
    chosen = _chosen(path, ring, key_id)
    return _rewrite(path, [chosen, *(key for key in ring.accepted.values() if key.id != key_id)])


def retire_key(path: Path, key_id: int) -> Keyring:
    """Step three: no longer accept this key."""
    ring = load_keys(path)
    if _chosen(path, ring, key_id) is ring.active:
        raise LocalError(f"{path}: key {key_id:08x} is in use; activate another key first")
    return _rewrite(path, [key for key in ring.accepted.values() if key.id != key_id])


class KeyFile:
    """A key file that is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mark = file_mark(path)
        self.keyring = load_keys(path)

    def refresh(self) -> Keyring | None:
        """The new keys if the file has changed since the last call; an unusable file raises, once."""
        mark = file_mark(self.path)
        if mark == self._mark:
            return None
        self._mark = mark
        self.keyring = load_keys(self.path)
        return self.keyring


def file_mark(path: Path) -> tuple[int, int, int]:
    """A mark that changes with every rewrite, however fast: a rename brings a new inode."""
    try:
        status = path.stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_ino, status.st_size)


def read_private(path: Path) -> str:
    """The text of a file of secrets; refuses one that other users may read."""
    try:
        # The mode is that of the file which was opened, not of one that took its name since.
        with path.open(encoding="ascii") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & OTHERS:
                raise LocalError(
                    f"{path}: other users may read it (mode {mode & 0o777:o}); run chmod 600 {path}"
                )
            return file.read()
    except OSError as error:
        raise LocalError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        # Not chained: the error would show the bytes.
        raise LocalError(f"{path}: the file is not ASCII") from None


def _parse(path: Path, number: int, line: str) -> Key:
    with suppress(binascii.Error, ValueError):
        secret = base64.b64decode(line, validate=True)
        if len(secret) == SECRET_BYTES:
            return Key.of(secret)
    raise LocalError(f"{path}, line {number}: not a key; a key is {SECRET_BYTES} bytes in base64")


def _new_key() -> Key:
    return Key.of(secrets.token_bytes(SECRET_BYTES))


def _chosen(path: Path, ring: Keyring, key_id: int) -> Key:
    if key_id not in ring.accepted:
        known = ", ".join(f"{one:08x}" for one in ring.accepted)
        raise LocalError(f"{path}: there is no key {key_id:08x}; the keys are: {known}")
    return ring.accepted[key_id]


def _rewrite(path: Path, keys: list[Key]) -> Keyring:
    try:
        ring = Keyring.of(keys)
    except LocalError as error:
        raise LocalError(f"{path}: {error}") from error
    _write(path, ring)
    return ring


def _write(path: Path, ring: Keyring) -> None:
    """Write under another name, then rename: nobody reads half a file, and a crash leaves the old one."""
    lines = (base64.b64encode(key.secret).decode() + "\n" for key in ring.accepted.values())
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as error:
        raise LocalError(f"{path}: cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), MODE)
            file.write(_NOTE + "".join(lines))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise LocalError(f"{path}: cannot be written: {error.strerror}") from error
        raise
