"""A submission: one message that a sender submits, planned or recorded."""

from collections.abc import Container
from typing import NamedTuple

from ordercast.core import Groups, LocalError, Nanos, NodeId


class Submission(NamedTuple):
    """A message that a sender submits at a time after the start of a run."""

    at_ns: Nanos
    sender: NodeId
    groups: Groups
    size: int
    payload: bytes | None = None
    """The operation, if it goes to a service."""
    read: bool = False
    """Whether it is a read of a service."""


def numbered_payload(number: int, size: int) -> bytes:
    """The bytes of a message: its number, cut to the size, then zeros."""
    return number.to_bytes(8, "little")[:size] + bytes(max(0, size - 8))


def check_submission(submission: Submission, senders: Container[NodeId], groups: Container[int]) -> None:
    """Raise `LocalError` if the plan does not have the sender or a group of a submission."""
    if submission.sender not in senders:
        raise LocalError(
            f"the trace has a submission of node {submission.sender}, which is not a sender here"
        )
    unknown = [group for group in submission.groups if group not in groups]
    if unknown or not submission.groups:
        raise LocalError(f"the trace has a submission to groups {submission.groups}, which do not exist here")
