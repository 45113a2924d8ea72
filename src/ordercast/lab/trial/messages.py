"""What the conductor of a live scenario and its host processes tell each other."""

from typing import TypeAlias

import msgspec

from ordercast.core import Nanos, NodeId
from ordercast.net.transports.impair import Impairment


class _Order(msgspec.Struct, frozen=True, tag_field="do"):
    pass


class Begin(_Order, frozen=True, tag="begin"):
    """Let the workload begin, at this reading of the machine's monotonic clock."""

    start_ns: Nanos


class Impair(_Order, frozen=True, tag="impair"):
    """From now on let this befall datagrams."""

    impairment: Impairment


class StepClock(_Order, frozen=True, tag="step-clock"):
    """Set the clock, forward or back."""

    by_ns: Nanos


class Stop(_Order, frozen=True, tag="stop"):
    """End in good order."""


Order: TypeAlias = Begin | Impair | StepClock | Stop


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """What a host process must know of what was before it."""

    first: bool = True
    submitted: dict[NodeId, int] = {}
    """How many messages each sender of the host has submitted in earlier lives."""
    impairment: Impairment = Impairment()
    clock_step_ns: Nanos = 0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How far a host process is, counted over its life."""

    error: str = ""
    """Why it ends, if it was not asked to."""
    done: bool = False
    """Whether its senders have submitted all."""
    submitted: dict[NodeId, int] = {}
    expected: int = 0
    """Deliveries of what was submitted here, at all receivers together."""
    delivered: int = 0
    dropped: int = 0
    waiting: int = 0
    """Messages that the protocol has not taken yet."""
    lost: int = 0
    """Datagrams that came to harm on purpose, or for want of room."""
    overflowed: int = 0
    refused: int = 0
    timed_out: int = 0
    late_ns: Nanos = 0
    """How late a submission was, at most."""
