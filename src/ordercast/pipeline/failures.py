"""What goes wrong in Spark, in one line that says what to do, instead of the traces of two languages."""

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
    """A job that failed for a reason which is not the caller's."""


@contextmanager
def told_in_a_line() -> Iterator[None]:
    """Tell failures of Spark as our own errors are told; `ORDERCAST_DEBUG` lets them pass as they are."""
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
        if interrupted:  # Ctrl-C in the middle of a call to Java looks like a Java that has gone
            raise KeyboardInterrupt from error
        if os.environ.get("ORDERCAST_DEBUG"):
            raise
        raise in_a_line(error) from error
    finally:
        if here:
            signal.signal(signal.SIGINT, on_interrupt)


def in_a_line(error: Exception) -> Exception:
    """What an exception of Spark means."""
    if isinstance(error, Py4JNetworkError | ConnectionError | EOFError):
        return LocalError("Spark is gone: its Java process ended, perhaps for want of memory")
    text = _text(error)
    if ours := _OURS.search(text):
        return LocalError(ours[1])
    for sign, meaning in _MEANINGS.items():
        if sign in text:
            return LocalError(meaning)
    raised = _RAISED.findall(text)
    return SparkFailure(f"Spark could not do it: {raised[-1] if raised else text.splitlines()[0]}")


_MEANINGS = {
    "All masters are unresponsive": "the master of Spark does not answer as one; is that address right?",
    "stopped SparkContext": "Spark stopped while it was at work; does its master still run?",
    "SparkContext was shut down": "Spark stopped while it was at work; does its master still run?",
    "exited unexpectedly": "a Python worker of Spark died, perhaps for want of memory",
    "OutOfMemoryError": "Spark ran out of memory",
    "No space left on device": "there is no space left on the disk",
}
"""Signs of what is neither the caller's bad input nor a defect of ours, and what they mean."""


def _text(error: Exception) -> str:
    if isinstance(error, Py4JJavaError):
        try:
            return str(error)
        except (Py4JError, OSError):  # it asks the JVM, which may be gone by now
            return "an exception in Java"
    return str(error)
