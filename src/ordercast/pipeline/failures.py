"""Turns failures of Spark into one line that says what to do, instead of tracebacks of two languages."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from ordercast.core import LocalError

# The last line of a traceback that came from a Python worker.
_OURS = re.compile(r"^\s*ordercast\.core\.errors\.(?:Local|Remote)Error: (.+)$", re.MULTILINE)
_RAISED = re.compile(r"^\s*(?:[\w.]+\.)?(\w+(?:Error|Exception)\b.*)$", re.MULTILINE)


class SparkFailure(Exception):
    """A job that failed, but not because of the caller's input."""


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """Convert failures of Spark into our own errors; with `ORDERCAST_DEBUG` they stay as they are."""
    interrupted = False
    on_interrupt = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        if callable(on_interrupt):
            on_interrupt(number, frame)

    here = threading.current_thread() is threading.main_thread() and callable(on_interrupt)
    if here:
        signal.signal(signal.SIGINT, note)
    try:
        yield
    except (Py4JError, PySparkException, ConnectionError, EOFError) as error:
        if interrupted:  # Ctrl-C during a call to Java looks like a Java process that has exited
            raise KeyboardInterrupt from error
        if os.environ.get("ORDERCAST_DEBUG"):
            raise
        raise in_a_line(error) from error
    finally:
        if here:
            signal.signal(signal.SIGINT, on_interrupt)


def in_a_line(error: Exception) -> Exception:
    """The meaning of an exception of Spark, as our own error."""
    if isinstance(error, Py4JNetworkError | ConnectionError | EOFError):
        return LocalError("Spark stopped: its Java process ended, perhaps because memory ran out")
    text = _text(error)
    if ours := _OURS.search(text):
        return LocalError(ours[1])
    for sign, meaning in _MEANINGS.items():
        if sign in text:
            return LocalError(meaning)
    raised = _RAISED.findall(text)
    return SparkFailure(f"Spark failed: {raised[-1] if raised else text.splitlines()[0]}")


_MEANINGS = {
    "All masters are unresponsive": "the Spark master does not answer; check its address",
    "stopped SparkContext": "Spark stopped during the job; check that its master still runs",
    "SparkContext was shut down": "Spark stopped during the job; check that its master still runs",
    "exited unexpectedly": "a Python worker of Spark died, perhaps because memory ran out",
    "OutOfMemoryError": "Spark ran out of memory",
    "No space left on device": "the disk is full",
}
"""Texts in failures that are neither bad input nor our defects, and their meanings."""


def _text(error: Exception) -> str:
    if isinstance(error, Py4JJavaError):
        try:
            return str(error)
        except (Py4JError, OSError):  # it asks the JVM, which may be gone by now
            return "an exception in Java"
    return str(error)
