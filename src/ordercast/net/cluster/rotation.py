"""Changes the key of a running cluster, in steps that keep all hosts able to talk to each other.

First all hosts accept the new key, then all seal with it, then all drop the old one. An interrupted rotation
leaves a file with several keys that all hosts may use; the next rotation replaces them all.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from ordercast.core import HostId, LocalError
from ordercast.net.cluster.key_file import activate_key, add_key, load_keys, retire_key
from ordercast.net.links.keyring import Keyring

POLL_S = 0.1
TIMEOUT_S = 30.0

Step: TypeAlias = Literal["add", "activate", "retire"]
Known = Callable[[], Mapping[HostId, list[str]]]
"""Asks all running hosts for the names of the keys they accept; the one they seal with comes first."""


def key_name(key: int) -> str:
    """The name of a key for people: its identity, which reveals nothing of its secret."""
    return f"{key:08x}"


def rotate(path: Path, known: Known, tell: Callable[[str], None], timeout_s: float = TIMEOUT_S) -> Keyring:
    """Replace all keys of a file by a new one, and wait after each step for all running hosts."""
    old = list(load_keys(path).accepted)
    new = next(key for key in add_key(path).accepted if key not in old)
    _await(known, "accept the new key", lambda keys: key_name(new) in keys, timeout_s)
    tell("step 1 of 3: all hosts accept the new key")
    ring = activate_key(path, new)
    _await(known, "seal with the new key", lambda keys: keys[:1] == [key_name(new)], timeout_s)
    tell("step 2 of 3: all hosts seal with the new key")
    for key in old:
        ring = retire_key(path, key)
    _await(known, "drop the old key", lambda keys: keys == [key_name(new)], timeout_s)
    tell("step 3 of 3: no host accepts the old key")
    return ring


def step(path: Path, which: Step) -> Keyring:
    """One step by hand, for hosts on other machines; copy the file to all hosts after each step."""
    ring = load_keys(path)
    match which:
        case "add":
            return add_key(path)
        case "activate":
            if len(ring.accepted) == 1:
                raise LocalError(f"{path}: the file has only one key; add another first")
            return activate_key(path, list(ring.accepted)[-1])  # the one that was added last
        case "retire":
            for key in [key for key in ring.accepted if key != ring.active.id]:
                ring = retire_key(path, key)
            return ring


def _await(known: Known, what: str, holds: Callable[[list[str]], bool], timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while behind := [str(host) for host, keys in known().items() if not holds(keys)]:
        if time.monotonic() > end:
            hosts = f"host{'' if len(behind) == 1 else 's'} {', '.join(behind)}"
            raise LocalError(
                f"{hosts} did not {what} within {timeout_s:g} s; all hosts still understand each other: "
                "repair this, then rotate again"
            )
        time.sleep(POLL_S)
