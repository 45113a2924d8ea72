"""An archive of Spark's classes, which halves the time that Spark takes to start.

Java can keep the classes that a program has loaded, parsed and verified, in a file (AppCDS), and map that
file the next time. The first Spark of a machine writes it when it ends, in the background, to a name of its
own; a later start that finds the file finished gives it the final name. Java ignores an archive that does
not fit.
"""

import hashlib
import os
import time
from pathlib import Path

import pyspark

_MAGIC_BYTES = 4
"""Java writes the head of an archive last: while it is zero, the archive is not whole."""
SETTLED_S = 30.0
"""A new archive that did not change for so long is not being written any more."""


def archive_options(cache: Path, java_home: Path, *, create: bool) -> list[str]:
    """Java's options for using the archive; or, if there is none, for making one when Java ends."""
    # Whatever else differs (class path, build of Java) is recorded in the archive, and Java looks.
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
    """Give the archive that an earlier Spark left its final name; drop what is not whole, or too many."""
    for new in archive.parent.glob(f"{archive.name}.*"):
        if time.time() - new.stat().st_mtime < SETTLED_S:
            continue
        with new.open("rb") as file:
            whole = any(file.read(_MAGIC_BYTES))
        if whole and not archive.exists():
            new.replace(archive)
        else:
            new.unlink(missing_ok=True)
