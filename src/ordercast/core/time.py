"""Time is an integer number of nanoseconds, always an argument and never a call."""

from typing import TypeAlias

Nanos: TypeAlias = int

MICROSECOND: Nanos = 1_000
MILLISECOND: Nanos = 1_000_000
SECOND: Nanos = 1_000_000_000


TIME_OF_DAY: Nanos = 10**16
"""Larger numbers are not durations but readings of a real clock, where small differences matter."""


def format_ns(duration: Nanos, digits: int = 6) -> str:
    """A duration in the unit that a person would choose: ``1.25 ms``; a time of day with all its digits."""
    if abs(duration) >= TIME_OF_DAY:
        return f"{duration / SECOND:.6f} s"
    for unit, name in ((SECOND, "s"), (MILLISECOND, "ms"), (MICROSECOND, "us")):
        if abs(duration) >= unit:
            return f"{duration / unit:.{digits}g} {name}"
    return f"{duration} ns"
