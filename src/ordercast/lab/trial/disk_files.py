"""Damages the files in which a host has saved its state, as a bad disk would."""

from pathlib import Path
from random import Random

from ordercast.net.host.set_aside import state_files
from ordercast.scenario.faults import DiskTrouble

FRAME_BYTES = 4096 + 24
"""A page in SQLite's write-ahead log, with its header."""


def damage_files(path: Path, what: DiskTrouble, rng: Random) -> None:
    """Damage the saved state of a host that is down."""
    files = [file for file in state_files(path) if file.exists() and file.stat().st_size]
    if not files:
        return
    if what == "wiped":
        for file in files:
            file.unlink()
        return
    logs = [file for file in files if file.name.endswith("-wal")] or files[:1]
    file = rng.choice(files) if what == "flip" else logs[0]
    content = bytearray(file.read_bytes())
    if what == "flip":
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif what == "cut":
        del content[rng.randrange(len(content)) :]
    else:
        del content[-min(FRAME_BYTES, len(content)) :]
    file.write_bytes(content)
