"""Unordered multicast (Hydra section 7.1): receivers deliver what comes, when it comes, once.

A sender numbers its packets and multicasts them to the receivers of all destination groups. A receiver
keeps, for each sender, a window of the numbers it has seen: a duplicate within the window is recognised,
and a packet that comes later than the whole window is dropped, so the memory is bounded and nothing is
delivered twice. Numbers start at the sender's clock, which never runs backwards, so a restarted sender
does not reuse them. A receiver that restarts remembers nothing and counts as a new receiver.
"""

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Annotated, TypeAlias

import msgspec

from ordercast.core import (
    MILLISECOND,
    SECOND,
    Codec,
    Crashes,
    Delivered,
    Deployment,
    Env,
    Explanation,
    Fault,
    GroupId,
    Groups,
    Guarantees,
    LocalError,
    Member,
    Message,
    Nanos,
    Node,
    NodeId,
    Options,
    Pace,
    Partition,
    Payload,
    Plan,
    Process,
    Protocol,
    RemoteError,
    Seen,
    message_types,
)

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Group: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
GROUPS_MAX = 4096

MEMORY_MIN = 256
"""With so many numbers in memory, a receiver recognises what was only overtaken."""

NUMBERS_AHEAD_MAX = 366 * 86_400 * SECOND
"""A sender counts from its clock at its start, at less than one a nanosecond. Clocks are wrong, but not by a
year."""

GUARANTEES = Guarantees(
    partition=Partition.EACH_SIDE_CONTINUES,
    crashes=Crashes.ANY,
    tolerates=(
        Fault.LOSS,
        Fault.DUPLICATION,
        Fault.REORDERING,
        Fault.PARTITION,
        Fault.CRASH,
        Fault.AMNESIA,
        Fault.PAUSE,
        Fault.CLOCK,
        Fault.DISK,
    ),
)


class UnorderedOptions(Options, frozen=True):
    """Options of unordered multicast."""

    window: int = 4096
    """How many numbers of each sender a receiver remembers, to recognise duplicates."""

    def __post_init__(self) -> None:
        if not 1 <= self.window <= 1 << 20:
            raise LocalError(f"window must be between 1 and {1 << 20}, got {self.window}")


class Data(Message, frozen=True, tag=1):
    """A message on its way."""

    number: Number
    groups: Annotated[tuple[Group, ...], msgspec.Meta(min_length=1, max_length=GROUPS_MAX)]
    payload: Payload


MESSAGES = message_types(Data)


class Sender(Member):
    """Multicasts at once."""

    def __init__(self, env: Env, receivers: Mapping[GroupId, tuple[NodeId, ...]]) -> None:
        super().__init__(env)
        self._members = receivers
        self._targets: dict[Groups, tuple[NodeId, ...]] = {}
        self._number = 0

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Begin above every number that an earlier life can have used."""
        self._number = self.env.now

    def submit(self, groups: Groups, payload: bytes) -> bool:
        """Send to the receivers of these groups; there is no window that could be full."""
        self._number += 1
        self.env.multicast(self._receivers(groups), Data(self._number, groups, payload))
        return True

    def _receivers(self, groups: Groups) -> tuple[NodeId, ...]:
        if groups not in self._targets:
            unknown = [group for group in groups if group not in self._members]
            if unknown or not groups:
                raise LocalError(
                    f"cannot send to groups {groups}: "
                    + (f"there is no group {unknown[0]}" if unknown else "none is named")
                )
            receivers = {node for group in groups for node in self._members[group]}
            self._targets[groups] = tuple(sorted(receivers))
        return self._targets[groups]

    def on_message(self, source: NodeId, message: Message) -> None:
        """Senders receive nothing."""

    def explain(self) -> Explanation:
        """Nothing ever waits."""
        return Explanation({"role": "sender", "last number": self._number})


class Receiver(Process):
    """Delivers at once what it has not seen."""

    def __init__(self, env: Env, window: int) -> None:
        super().__init__(env)
        self._window = window
        self._seen: dict[NodeId, Seen] = {}

    def on_message(self, source: NodeId, message: Message) -> None:
        """Deliver, unless it is a duplicate."""
        if not isinstance(message, Data):
            return
        if message.number > self.env.now + NUMBERS_AHEAD_MAX:  # all later ones would look old
            raise RemoteError(f"node {source} cannot have reached number {message.number}")
        seen = self._seen.get(source)
        if seen is None:
            seen = self._seen[source] = Seen(self._window)
        if seen.admit(message.number):
            self.env.deliver(Delivered(message.payload, message.groups, source))

    def explain(self) -> Explanation:
        """Nothing ever waits."""
        return Explanation({"role": "receiver", "senders heard": len(self._seen)})


def pace(options: UnorderedOptions, delay: Nanos) -> Pace | None:
    """A message takes one way; a busy host may add a little.

    A receiver with a short memory takes what was overtaken for a copy, so nothing is promised of it.
    """
    if options.window < MEMORY_MIN:
        return None
    return Pace(2 * delay + 10 * MILLISECOND, 2 * delay + 10 * MILLISECOND)


def deploy(deployment: Deployment, options: Options) -> Plan:
    """Receivers and senders; nothing between them."""
    if not isinstance(options, UnorderedOptions):
        raise LocalError(f"unordered takes UnorderedOptions, not {type(options).__name__}")
    groups = dict(enumerate(deployment.groups))
    senders = deployment.sender_ids()
    nodes = [
        Node(node, "receiver", node, lambda env: Receiver(env, options.window))
        for node in range(deployment.receivers)
    ]
    nodes += [
        Node(node, "sender", deployment.sender_host(node), lambda env: Sender(env, groups))
        for node in senders
    ]
    return Plan(
        "unordered", GUARANTEES, tuple(nodes), groups, senders, Codec(MESSAGES), partial(pace, options)
    )


def vary(rng: Random) -> dict[str, object]:
    """Options for a seed of the swarm: a memory of one number too."""
    return {"window": rng.choice((1, MEMORY_MIN, 4096))}


PROTOCOL = Protocol(
    name="unordered",
    summary="Deliver at once, promise no order: the ceiling that ordering is measured against.",
    paper="Hydra (NSDI 2023), section 7.1",
    guarantees=GUARANTEES,
    options=UnorderedOptions,
    deploy=deploy,
    roles=("receiver", "sender"),
    vary=vary,
)
