"""The life of a live host: its stages, the steps between them, and what happens when it fails.

    NEW -> STARTING -> RUNNING -> STOPPED
               |          |          ^
               |          +> FAILED -+   an error that no process expects
               +---------------------+   the start did not succeed

Events are handled and effects leave in `RUNNING` only. A host lives once.
"""

import logging
from collections.abc import Callable, Mapping
from enum import Enum

from ordercast.core import HostId, LocalError, ProtocolFailed
from ordercast.net.metrics.metrics import Metrics

_log = logging.getLogger("ordercast")


class Stage(Enum):
    """A stage in the life of a host."""

    NEW = "new"
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    STOPPED = "stopped"


NEXT: Mapping[Stage, frozenset[Stage]] = {
    Stage.NEW: frozenset({Stage.STARTING}),
    Stage.STARTING: frozenset({Stage.RUNNING, Stage.STOPPED}),
    Stage.RUNNING: frozenset({Stage.FAILED, Stage.STOPPED}),
    Stage.FAILED: frozenset({Stage.STOPPED}),
    Stage.STOPPED: frozenset(),
}

RUNNING = Stage.RUNNING


class Life:
    """The stage of one host, and what ended it."""

    __slots__ = ("_host", "_listeners", "_metrics", "failure", "stage")

    def __init__(self, host: HostId, metrics: Metrics) -> None:
        self._host = host
        self._metrics = metrics
        self._listeners: list[Callable[[BaseException], None]] = []
        self.stage = Stage.NEW
        self.failure: BaseException | None = None

    def step(self, to: Stage) -> None:
        """Go on to another stage; `LocalError` if there is no such step."""
        if to not in NEXT[self.stage]:
            raise LocalError(f"a host that is {self.stage.value} cannot become {to.value}")
        self.stage = to

    def on_failure(self, listener: Callable[[BaseException], None]) -> None:
        """Call a listener when the host fails."""
        self._listeners.append(listener)

    def attempt(self, action: Callable[..., None], *args: object) -> None:
        """Run an action if the host is running; the host fails if the action raises."""
        if self.stage is RUNNING:
            try:
                action(*args)
            except Exception as error:
                self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Stop taking part, because the state of the host is unknown after this error."""
        if self.stage is not RUNNING:
            return
        if isinstance(error, LocalError):  # a disk that fails, or a host that is not let in
            _log.critical("host %d stops: %s", self._host, error)
        elif isinstance(error, ProtocolFailed):
            _log.critical("host %d stops: %s", self._host, error, exc_info=error.__cause__)
        else:
            _log.critical("host %d stops because of a defect", self._host, exc_info=error)
        self.step(Stage.FAILED)
        self.failure = error
        self._metrics.handler_errors += 1
        for tell in self._listeners:
            tell(error)
