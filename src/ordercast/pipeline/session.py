"""Starts Spark: quiet, in UTC, on loopback when it is local, with a Java that works.

A process has one Spark at a time. Asking again while it runs returns it; what belongs to the JVM
(memory, options) keeps its first settings. On a cluster, this package is sent to the executors; they need
its dependencies and the same version of Python.
"""

import atexit
import logging
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ordercast.core.errors import LocalError
from ordercast.java import cache_folder, find_java, quiet_home
from ordercast.pipeline.archive import archive_options
from ordercast.pipeline.failures import in_a_line, told_in_a_line
from ordercast.pipeline.package import zip_package

LOOPBACK = "127.0.0.1"
DRIVER_MEMORY = "3g"
EXECUTOR_MEMORY = "1g"
"""Of an executor's JVM, which only hands rows over; its Python workers take theirs beside it."""
CONNECT_TIMEOUT_S = 5.0
START_TIMEOUT_S = 50.0
"""How long a cluster may take to answer; Spark itself tries for a minute. On a busy machine Java alone takes
half of that to start. A local Spark may take as long as the machine makes it."""
EXECUTOR_TIMEOUT_S = 60.0

_MASTER = re.compile(
    r"local|local\[([1-9]\d*|\*)(,\d+)?\]|local-cluster\[\d+,\d+,\d+\]|spark://[^/\s]+:\d+(,[^/\s]+:\d+)*"
)
# A worker judges one run after another in arrays of the same sizes. Memory that is given back to the system
# in between costs more to get again, page by page, than the arithmetic on it.
_WORKER_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}
_shipped: set[str] = set()
"""Applications that this package has been sent to."""


@contextmanager
def running_spark(
    master: str = "local[*]", app: str = "ordercast", *, quick: bool = False
) -> Iterator[SparkSession]:
    """Run Spark during this context. Failures become one-line errors, and Ctrl-C stops Spark."""
    with told_in_a_line(), _py4j_silent():
        session = spark_session(master, app, quick=quick)
        # This server would print a traceback when Java dies, which is told in a line anyway.
        session.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
        try:
            yield session
        finally:
            # A Spark that is gone cannot be stopped, and why it went has been told.
            with suppress(Py4JError, OSError):
                session.stop()


def spark_session(master: str = "local[*]", app: str = "ordercast", *, quick: bool = False) -> SparkSession:
    """The running Spark, or a new one. `quick` suits tests: it starts fast and computes slower."""
    check_master(master)
    environment = _jvm_environment(master)
    chosen = settings(master, quick=quick)
    archive = archive_options(cache_folder(), Path(environment["JAVA_HOME"]), create=not quick)
    chosen["spark.driver.extraJavaOptions"] += "".join(f" {option}" for option in archive)
    builder = SparkSession.builder.master(master).appName(app)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with _environment(environment), _py4j_silent(), _in_time(master), _interrupt_held():
        session = builder.getOrCreate()
    if not _is_local(master) and session.sparkContext.applicationId not in _shipped:
        _await_executor(session.sparkContext, master)
        _ship(session.sparkContext)
    return session


def check_master(master: str) -> None:
    """Before Java starts, refuse an address that is no master or where no master answers."""
    if not _MASTER.fullmatch(master):
        raise LocalError(f"'{master}' is not a Spark master; use local[2], local[*] or spark://HOST:PORT")
    if not master.startswith("spark://"):
        return
    reason = ""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            # One of several is enough: the others may stand by.
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S):
                return
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
    raise LocalError(f"no Spark master answers at {master}: {reason}")


def settings(master: str, *, quick: bool = False) -> dict[str, str]:
    """Spark's configuration for this master, by Spark's own names."""
    log = "error" if os.environ.get("ORDERCAST_DEBUG") else "off"
    java = [
        f"-Dlog4j2.configurationFile={_log_config()}",
        f"-Dordercast.log={log}",
        "-Duser.timezone=UTC",
        "-Xlog:disable",  # Java's own warnings would go to standard output
        "-Xss8m",  # deep query plans recurse deeply
    ]
    if quick:
        java.append("-XX:TieredStopAtLevel=1")
    chosen = {
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC -Xss8m",
        "spark.executor.memory": EXECUTOR_MEMORY,
        "spark.python.worker.reuse": "true",
        "spark.sql.adaptive.enabled": "false" if quick else "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2" if quick else "8",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **{f"spark.executorEnv.{name}": value for name, value in _WORKER_ENVIRONMENT.items()},
    }
    if _stays_here(master):
        chosen |= {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
    return chosen


def _is_local(master: str) -> bool:
    """Whether the executor is the driver's own JVM."""
    return master.startswith("local") and not master.startswith("local-cluster")


def _stays_here(master: str) -> bool:
    """Whether driver and executors are all on this machine, so that no other machine must reach them."""
    if master.startswith("local"):
        return True
    # Of several masters, the first decides: they are on machines of one network.
    return urlsplit(master.split(",")[0]).hostname in {LOOPBACK, "localhost"}


def _log_config() -> str:
    return Path(__file__).with_name("log4j2.properties").as_uri()


def _jvm_environment(master: str) -> dict[str, str]:
    # Spark would run `python3` of PATH, which need not be the one that has our packages.
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    chosen = {"JAVA_HOME": str(quiet_home(find_java())), "PYSPARK_PYTHON": python}
    if _stays_here(master):
        chosen["SPARK_LOCAL_IP"] = LOOPBACK
    return chosen


class _NotPy4J(logging.Handler):
    """Passes on all log records except those of py4j, as Python does if logging is not configured."""

    def emit(self, record: logging.LogRecord) -> None:
        if "py4j" not in Path(record.pathname).parts and logging.lastResort:
            logging.lastResort.handle(record)


@contextmanager
def _py4j_silent() -> Iterator[None]:
    """Hide the tracebacks that py4j writes to the root logger: py4j raises all these errors too."""
    root, handler = logging.getLogger(), _NotPy4J()
    if root.handlers:  # the application has configured logging
        yield
        return
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change the environment that the JVM inherits, and put it back once the JVM has started."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _interrupt_held() -> Iterator[None]:
    """Delay Ctrl-C until Java is up: if PySpark is interrupted earlier, it leaves a Java process behind.

    Afterwards the previous handler of Ctrl-C is active again. PySpark's own handler would call Java during
    another call to Java.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return
    came = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: came.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came.is_set():
        raise KeyboardInterrupt


@contextmanager
def _in_time(master: str) -> Iterator[None]:
    """Give up on an address that accepts a connection and never answers: Spark would try for a minute."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        _kill_jvm()

    timer = threading.Timer(START_TIMEOUT_S, give_up)
    timer.daemon = True
    if not _is_local(master):
        timer.start()
    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        _kill_jvm()
        if os.environ.get("ORDERCAST_DEBUG"):
            raise
        if late.is_set():
            what = f"no Spark master answers at {master}: something accepts connections, but it is no master"
        else:
            what = f"Spark does not start on {master}: {in_a_line(error)}"
        raise LocalError(what) from error
    finally:
        timer.cancel()


def _kill_jvm() -> None:
    """End the Java process that PySpark has started, and let it start another one the next time."""
    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None


def _await_executor(context: SparkContext, master: str) -> None:
    """Check that the cluster starts an executor; otherwise Spark would wait without an error."""
    end = time.monotonic() + EXECUTOR_TIMEOUT_S
    status = context._jsc.sc().getExecutorMemoryStatus
    while status().size() < 2:  # the driver counts as one
        if time.monotonic() > end:
            context.stop()
            room = f"a worker with a core and {EXECUTOR_MEMORY} of memory free"
            raise LocalError(f"{master} starts no executor; it needs {room}")
        time.sleep(0.1)


def _ship(context: SparkContext) -> None:
    """Send this package to the executors, present and future."""
    folder = Path(tempfile.mkdtemp(prefix="ordercast-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    context.addPyFile(str(zip_package(folder)))
    _shipped.add(context.applicationId)
