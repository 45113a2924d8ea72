"""Masters that are none, or do not answer, are told in a line; and what else Spark's start relies on."""

import io
import logging
import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from ordercast.core import LocalError
from ordercast.java import quiet_home
from ordercast.pipeline import archive, package, session
from ordercast.pipeline.archive import archive_options
from ordercast.pipeline.failures import SparkFailure, in_a_line, told_in_a_line
from ordercast.pipeline.package import zip_package
from ordercast.pipeline.session import check_master


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]", "local-cluster[2,1,512]"])
def test_local_masters_are_taken_at_their_word(master: str) -> None:
    check_master(master)
    with pytest.raises(LocalError, match="is not a Spark master"):
        check_master(f"{master}!")


@pytest.mark.parametrize(
    "master", ["", "bogus", "local[0]", "local[]", "spark://", "spark://host", "spark://host:x", "yarn"]
)
def test_what_is_no_master_is_refused_before_java_starts(master: str) -> None:
    with pytest.raises(LocalError, match="is not a Spark master; use local"):
        check_master(master)


def test_of_several_masters_one_must_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(LocalError, match=r"no Spark master answers at .*: Connection refused"):
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(LocalError, match="no Spark master answers"):
        check_master("spark://127.0.0.1:99999")


IMPOSTOR = """\
import sys
from ordercast.core import LocalError
from ordercast.pipeline import session
session.START_TIMEOUT_S = 8.0
try:
    session.spark_session(sys.argv[1], quick=True)
except LocalError as error:
    print(error)
"""


def test_a_server_that_is_no_master_is_given_up_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        # The system takes connections for it, and nobody answers.
        master = f"spark://127.0.0.1:{server.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "-c", IMPOSTOR, master], capture_output=True, text=True, check=False
        )
    said = f"no Spark master answers at {master}: something accepts connections, but it is no master\n"
    assert (done.stdout, done.stderr) == (said, "")


def test_failures_in_workers_are_told_as_our_own() -> None:
    ours = PythonException("Traceback\n  File ...\nordercast.core.errors.LocalError: no room in /out\n")
    told = in_a_line(ours)
    assert isinstance(told, LocalError) and str(told) == "no room in /out"
    other = in_a_line(PythonException("Traceback\n  File ...\nKeyError: 'x'\n\n\tat org.apache\n"))
    assert isinstance(other, SparkFailure) and str(other) == "Spark failed: KeyError: 'x'"
    gone = in_a_line(Py4JNetworkError("Answer from Java side is empty"))
    assert "its Java process ended" in str(gone)
    dead = in_a_line(PythonException("Python worker exited unexpectedly (crashed): EOF"))
    assert isinstance(dead, LocalError) and "a Python worker of Spark died" in str(dead)


def test_debugging_shows_what_really_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERCAST_DEBUG", "1")
    with pytest.raises(ConnectionError), told_in_a_line():
        raise ConnectionError
    monkeypatch.delenv("ORDERCAST_DEBUG")
    with pytest.raises(LocalError, match="Spark stopped: its Java process ended"), told_in_a_line():
        raise ConnectionError


def say_in(path: str) -> None:
    """Write to the root logger as if from this file."""
    record = logging.LogRecord("root", logging.ERROR, path, 1, f"said in {path}", None, None)
    logging.getLogger().handle(record)


@contextmanager
def unconfigured() -> Iterator[None]:
    """Logging is not configured, as in most scripts; nothing may be left behind."""
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []
    try:
        yield
    finally:
        left, root.handlers = root.handlers, handlers
    assert left == []


def test_only_py4j_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with unconfigured(), session._py4j_silent():
        for path in ("/x/py4j/clientserver.py", "/x/ours.py"):
            say_in(path)
    assert capsys.readouterr().err == "said in /x/ours.py\n"


def test_a_start_that_fails_is_told_in_a_line_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def reset(_: object) -> None:
        say_in("/x/py4j/java_gateway.py")
        raise Py4JNetworkError("Error while sending or receiving")

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", reset)
    monkeypatch.setattr(session, "_kill_jvm", lambda: None)  # tests share a Spark
    told = r"Spark does not start on local\[2\]: .*its Java process ended"
    with unconfigured(), pytest.raises(LocalError, match=told):
        session.spark_session("local[2]", quick=True)
    assert capsys.readouterr().err == ""


def test_the_package_can_be_imported_from_its_zip(tmp_path: Path) -> None:
    target = zip_package(tmp_path)
    with zipfile.ZipFile(io.BytesIO(target.read_bytes())) as file:
        names = file.namelist()
    assert "ordercast/pipeline/log4j2.properties" in names
    assert not [name for name in names if "__pycache__" in name]
    code = (
        "import ordercast, ordercast.pipeline; from ordercast.catalogue import find_protocol, protocol_names;"
        "print(ordercast.__file__, *(find_protocol(name).name for name in protocol_names()))"
    )
    environment = os.environ | {"PYTHONPATH": str(target)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    file_, *protocols = done.stdout.split()
    assert file_ == f"{target}/ordercast/__init__.py"
    packages = [
        *package.PACKAGE.glob("protocols/*/__init__.py"),
        *package.PACKAGE.glob("transactions/*/__init__.py"),
        *package.PACKAGE.glob("replication/*/__init__.py"),
    ]
    assert protocols == sorted(path.parent.name for path in packages)
    other = tmp_path / "other"
    other.mkdir()
    assert zip_package(other).read_bytes() == target.read_bytes()


def test_an_archive_is_made_once_and_used_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "java"
    assert archive_options(tmp_path, home, create=False) == []
    (option,) = archive_options(tmp_path, home, create=True)
    flag, _, name = option.partition("=")
    assert flag == "-XX:ArchiveClassesAtExit" and pyspark.__version__ in name
    Path(name).write_bytes(bytes(100))
    assert archive_options(tmp_path, home, create=True) == [], "somebody is writing it"
    monkeypatch.setattr(archive, "SETTLED_S", 0.0)
    assert archive_options(tmp_path, home, create=False) == []
    assert not Path(name).exists(), "it was not whole"
    for _ in range(2):
        Path(name).write_bytes(b"\xa8\xba\x0b\xf0" + bytes(100))
        (option,) = archive_options(tmp_path, home, create=True)
        assert option == f"-XX:SharedArchiveFile={Path(name).with_suffix('')}"
        assert not Path(name).exists()
    assert archive_options(tmp_path, tmp_path / "other", create=False) == [], "each Java has its own"
    assert archive_options(Path("/dev/null/cache"), home, create=True) == [], "it only saves time"


def test_a_java_of_the_system_gets_a_face_that_warns_of_nothing(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    java = tmp_path / "java-17" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\necho "$@"\n')
    java.chmod(0o755)
    home = quiet_home(tmp_path / "java-17", environ)
    words = ["-x", "--add-modules=jdk.incubator.vector", "a b"]
    said = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True, check=True).stdout
    assert said == "-x a b\n"
    assert quiet_home(home, environ) == home
