"""A protocol that failed: a handler of one of its processes raised an exception.

The failure is the protocol's own, not that of the driver: it names the node, the time, what the process was
handling, and the line of the protocol's code.
"""

import re
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec

from ordercast.core.errors import OrdercastError
from ordercast.core.ids import NodeId
from ordercast.core.message import Message
from ordercast.core.message_text import message_text
from ordercast.core.time import Nanos, format_ns

FAILED: Final = "protocol failed"
"""The name of the finding."""

_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
"""An address in memory differs from run to run, so it is left out of texts."""
_DRIVERS = (
    "ordercast.core", "ordercast.kernel", "ordercast.net", "ordercast.scenario", "ordercast.sim",
    "ordercast.testing", "ordercast.trace",
)  # fmt: skip
"""Packages whose code protocols only call: the line of interest is the one that called it."""


class ProtocolFailure(msgspec.Struct, frozen=True):
    """Where and why a handler of a process raised an exception."""

    node: NodeId
    time_ns: Nanos
    """True time in the simulator; the node's clock on a live host."""
    event: str
    """What the process was handling, in words."""
    error: str
    """The exception: its type and its text."""
    place: str
    """File and line of the protocol's own code."""

    def __str__(self) -> str:
        """A line that a person can read."""
        when = f"at {format_ns(self.time_ns)}"
        return f"node {self.node} failed {when} while it handled {self.event}: {self.error} ({self.place})"


class ProtocolFailed(OrdercastError):
    """Raised by a driver in place of the exception of a handler, which is its cause."""

    def __init__(self, failure: ProtocolFailure) -> None:
        super().__init__(f"{FAILED}: {failure}")
        self.failure = failure


def protocol_failed(node: NodeId, time_ns: Nanos, event: str, error: Exception) -> ProtocolFailed:
    """The error to raise when a handler has raised an exception."""
    text = _ADDRESS.sub("0x...", str(error))
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    failed = ProtocolFailed(ProtocolFailure(node, time_ns, event, what, place_of(error)))
    failed.__cause__ = error
    return failed


def packet_text(source: NodeId, message: Message) -> str:
    """What a process was handling when a message from another node arrived."""
    return f"{message_text(message)} from node {source}"


def place_of(error: BaseException) -> str:
    """The file and line where an exception left the code of a protocol, such as ``ring/member.py:40``."""
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [(frame, line) for frame, line in frames if not _is_called(frame)]
    frame, line = (own or frames)[-1]
    return f"{_file(frame)}:{line}"


def _is_called(frame: FrameType) -> bool:
    """Whether the code of a frame is a driver's or the standard library's, and not the protocol's."""
    module = str(frame.f_globals.get("__name__", ""))
    ours = any(module == name or module.startswith(f"{name}.") for name in _DRIVERS)
    return ours or module.partition(".")[0] in sys.stdlib_module_names


def _file(frame: FrameType) -> str:
    """The path of a file from its topmost package on, which is the same on every machine."""
    path = Path(frame.f_code.co_filename)
    depth = str(frame.f_globals.get("__name__", "")).count(".") + 1
    if path.name == "__init__.py":
        depth += 1
    return "/".join(path.parts[-depth:])
