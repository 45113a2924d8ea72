"""An archive of Spark's classes, which halves the time that Spark takes to start.

Java can keep the classes that a program has loaded, parsed and verified, in a file (AppCDS), and map that
file the next time. When the first Spark of a machine ends, it writes the file in the background, under a
temporary name. A later start that finds the file finished gives it the final name. Java ignores an archive
that does not fit.
"""

import hashlib
import os
import time
from pathlib import Path

import pyspark

_MAGIC_BYTES = 4
"""Java writes the head of an archive last: while the head is zero, the archive is not complete."""
SETTLED_S = 30.0
"""A new archive that did not change for this long is no longer being written."""


def archive_options(cache: Path, java_home: Path, *, create: bool) -> list[str]:
    """Java's options to use the archive; or, if there is none, to write one when Java ends."""
    # Java checks all other differences (class path, build of Java) itself; they are recorded in the archive.
    key = hashlib.sha256(f"{java_home}\n{pyspark.__file__}".encode()).hexdigest()[:12]
    archive = cache / f"spark-{pyspark.__version__}-{key}.jsa"
    try:
        _promote(archive)
        if archive.exists():
            return [f"-XX:SharedArchiveFile={archive}"]
        if not create or list(archive.parent.glob(f"{archive.name}.*")):
            return []
        cache.mkdir(parents=True, exist_ok=True)
    except OSError:
        return []  # it only saves time
    return [f"-XX:ArchiveClassesAtExit={archive}.{os.getpid()}"]


def _promote(archive: Path) -> None:
    """Rename the archive of an earlier Spark to its final name; remove incomplete and surplus ones."""
    for new in archive.parent.glob(f"{archive.name}.*"):
        if time.time() - new.stat().st_mtime < SETTLED_S:
            continue
        with new.open("rb") as file:
            whole = any(file.read(_MAGIC_BYTES))
        if whole and not archive.exists():
            new.replace(archive)
        else:
            new.unlink(missing_ok=True)
