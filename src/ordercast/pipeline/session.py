"""Starts Spark: quiet, in UTC, on loopback when it is local, with a Java that works.

A process has one Spark at a time. Asking again while it runs returns it; what belongs to the JVM
(memory, options) stays as it was first asked for.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from ordercast.pipeline.failures import told_in_a_line
from ordercast.pipeline.java import find_java

LOOPBACK = "127.0.0.1"
DRIVER_MEMORY = "3g"


def spark_session(master: str = "local[*]", app: str = "ordercast", *, quick: bool = False) -> SparkSession:
    """The running Spark, or a new one. `quick` suits tests: it starts fast and computes slower."""
    builder = SparkSession.builder.master(master).appName(app)
    for key, value in settings(master, quick=quick).items():
        builder = builder.config(key, value)
    with _environment(_jvm_environment(master)):
        return builder.getOrCreate()


@contextmanager
def running_spark(master: str = "local[*]", app: str = "ordercast") -> Iterator[SparkSession]:
    """Spark for as long as this lasts; what goes wrong in it is told in a line."""
    with told_in_a_line():
        session = spark_session(master, app)
        try:
            yield session
        finally:
            # A Spark that is gone cannot be stopped, and why it went has been told.
            with suppress(Py4JError, OSError):
                session.stop()


def settings(master: str, *, quick: bool = False) -> dict[str, str]:
    """Spark's configuration for this master, by Spark's own names."""
    # Deep query plans recurse deeply, hence the stack.
    java = [f"-Dlog4j2.configurationFile={_log_config()}", "-Duser.timezone=UTC", "-Xss8m"]
    if quick:
        java.append("-XX:TieredStopAtLevel=1")
    chosen = {
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": " ".join(java),
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC -Xss8m",
        "spark.sql.adaptive.enabled": "false" if quick else "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2" if quick else "8",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if _stays_here(master):
        chosen |= {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
    return chosen


def _stays_here(master: str) -> bool:
    """Whether driver and executors are all on this machine, so that nobody else need reach them."""
    return master.startswith("local") or urlsplit(master).hostname in {LOOPBACK, "localhost"}


def _log_config() -> str:
    return Path(__file__).with_name("log4j2.properties").as_uri()


def _jvm_environment(master: str) -> dict[str, str]:
    # Spark would run `python3` of PATH, which need not be the one that has our packages.
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    chosen = {"JAVA_HOME": str(find_java()), "PYSPARK_PYTHON": python}
    if _stays_here(master):
        chosen["SPARK_LOCAL_IP"] = LOOPBACK
    return chosen


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
