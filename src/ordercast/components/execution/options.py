"""Options of clients, the same in all protocols that replicate services."""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import MILLISECOND, SECOND, LocalError, Nanos

Duration: TypeAlias = Annotated[Nanos, msgspec.Meta(ge=1, le=3600 * SECOND)]


class CallOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a client calls."""

    window: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 64
    """How many calls a client has under way; each may carry many operations."""
    retry_ns: Duration = 20 * MILLISECOND
    """A client that has no answer after this time calls again; each later attempt waits twice as long, up to
    eight times this."""
    deadline_ns: Annotated[Nanos, msgspec.Meta(ge=0, le=86_400 * SECOND)] = 0
    """After this time a client gives a call up: its outcome is unknown. 0: it never does."""

    def __post_init__(self) -> None:
        if self.deadline_ns and self.deadline_ns < self.retry_ns:
            raise LocalError(
                f"deadline_ns must be 0 or at least retry_ns ({self.retry_ns}), not {self.deadline_ns}"
            )


LIVE_CALLS: dict[str, object] = {"retry_ns": 200 * MILLISECOND, "window": 256}
"""The options of clients on real machines."""
