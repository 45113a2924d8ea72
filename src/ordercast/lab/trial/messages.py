"""The messages between the conductor of a live scenario and its host processes."""

from typing import TypeAlias

import msgspec

from ordercast.core import GroupId, Nanos, NodeId
from ordercast.kernel.memberships import Request
from ordercast.net.transports.impair import Impairment
from ordercast.scenario.faults import DiskTrouble


class _Order(msgspec.Struct, frozen=True, tag_field="do"):
    pass


class Begin(_Order, frozen=True, tag="begin"):
    """Begin the workload at this reading of the machine's monotonic clock."""

    start_ns: Nanos


class Impair(_Order, frozen=True, tag="impair"):
    """Impair datagrams like this from now on."""

    impairment: Impairment


class StepClock(_Order, frozen=True, tag="step-clock"):
    """Set the clock, forward or back."""

    by_ns: Nanos


class TroubleDisk(_Order, frozen=True, tag="trouble-disk"):
    """Let the disk refuse writes or be slow for a while."""

    what: DiskTrouble
    duration: Nanos


class ChangeMembers(_Order, frozen=True, tag="change-members"):
    """Let a receiver ask to join or to leave a group."""

    request: Request
    node: NodeId
    group: GroupId


class Stop(_Order, frozen=True, tag="stop"):
    """End in good order."""


Order: TypeAlias = Begin | Impair | StepClock | TroubleDisk | ChangeMembers | Stop


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """What a host process must know about earlier lives."""

    first: bool = True
    as_new: bool = False
    """Whether it comes back as a new member, without the state of its earlier lives."""
    submitted: dict[NodeId, int] = {}
    """How many messages each sender of the host has submitted in earlier lives."""
    impairment: Impairment = Impairment()
    clock_step_ns: Nanos = 0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a host process, counted over its life."""

    error: str = ""
    """The error that ends it, if there is one."""
    done: bool = False
    """Whether its senders have submitted all messages."""
    submitted: dict[NodeId, int] = {}
    expected: int = 0
    """Deliveries of messages submitted here, at all receivers together."""
    delivered: int = 0
    dropped: int = 0
    answered: int = 0
    """Answers to clients of a service, and calls of which they were told that they get none."""
    waiting: int = 0
    """Messages that the protocol has not taken yet."""
    lost: int = 0
    """Datagrams that were impaired on purpose, or dropped for lack of room."""
    overflowed: int = 0
    refused: int = 0
    timed_out: int = 0
    late_ns: Nanos = 0
    """The largest delay of a submission."""
