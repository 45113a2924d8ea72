"""Messages of publishers, sequencing nodes, subscribers and the store."""

from typing import Annotated

import msgspec

from ordercast.core import Message, Payload, message_types
from ordercast.protocols.atoms.records import (
    Entry,
    GroupPlan,
    GroupReport,
    Membership,
    Natural,
    Placed,
    Post,
)

BATCH = 64
"""The most entries or plans in one message."""
Batch = msgspec.Meta(max_length=BATCH)


# Publishers


class Publish(Message, frozen=True, tag=1):
    """A message to a group, to the first node of its path."""

    group: Natural
    version: Natural
    """The latest plan of the group that the publisher knows."""
    life: Natural
    number: Natural
    """Counted from 0 in each life of the publisher, for each group."""
    floor: Natural
    """All lower numbers have a place."""
    payload: Payload | None
    """None: a mark that takes a place, and is not delivered."""


class Receipt(Message, frozen=True, tag=2):
    """All messages of a publisher to a group with lower numbers have their places."""

    group: Natural
    life: Natural
    next: Natural


class Route(Message, frozen=True, tag=3):
    """To a publisher: who takes messages to a group, since which plan, and what it expects next."""

    group: Natural
    version: Natural
    ingress: Natural
    serial: tuple[Natural, Natural] | None = None


class Unheard(Message, frozen=True, tag=4):
    """To the store: messages to a group that has no members, as far as its publisher was told."""

    group: Natural
    life: Natural
    next: Natural


class Inquiry(Message, frozen=True, tag=5):
    """To a distributor: does this publisher's message have its place?"""

    group: Natural
    publisher: Natural


# Sequencing nodes


class Forward(Message, frozen=True, tag=10):
    """A message on its path, to the next node: `stage` counts hops, and then holders."""

    label: Natural
    seq: Natural
    """Counted on the channel between two nodes in an epoch."""
    group: Natural
    stage: Natural
    position: Natural
    entry: Placed


class Passed(Message, frozen=True, tag=11):
    """All messages of a channel with lower numbers have arrived."""

    label: Natural
    next: Natural


class Kept(Message, frozen=True, tag=12):
    """All subscribers have delivered what is before a position: forget it."""

    group: Natural
    low: Natural


class Pull(Message, frozen=True, tag=13):
    """Send a part of a group's log, if you have obeyed this plan."""

    group: Natural
    version: Natural
    start: Natural
    stop: Natural


class Entries(Message, frozen=True, tag=14):
    """Parts of a group's log, to a node or to a subscriber."""

    group: Natural
    start: Natural
    entries: Annotated[tuple[Entry, ...], Batch]


# Subscribers


class Got(Message, frozen=True, tag=20):
    """A subscriber has delivered what is before one position, and has received what is before another."""

    group: Natural
    delivered: Natural
    received: Natural


class Where(Message, frozen=True, tag=21):
    """To a subscriber: how far has it come in a group?"""

    group: Natural


# The store


class Ask(Message, frozen=True, tag=30):
    """A subscriber wants to be in a group or out of it, or (without a group) to know its memberships."""

    life: Natural
    number: Natural
    """Counted in each life of the subscriber."""
    group: Natural | None = None
    wants: bool = True


class Told(Message, frozen=True, tag=31):
    """The memberships of a subscriber in all epochs whose label is below the horizon."""

    life: Natural
    number: Natural
    """Requests up to this one are carried out or refused."""
    horizon: Natural
    memberships: tuple[Membership, ...]
    settled: bool
    """No change that concerns it is under way."""


class Alive(Message, frozen=True, tag=32):
    """A sequencing node lives, and knows all plans up to a version."""

    life: Natural
    version: Natural


class Plans(Message, frozen=True, tag=33):
    """The plans that came after a version, oldest first, and the version up to which there are no others."""

    since: Natural
    upto: Natural
    latest: Natural
    """That of the latest plan, which may come with another message."""
    plans: Annotated[tuple[GroupPlan, ...], Batch]


class Seal(Message, frozen=True, tag=34):
    """Take nothing more in these epochs, and report what there is."""

    change: Natural
    version: Natural
    """The latest plan; whoever does not know it cannot report."""
    labels: tuple[Natural, ...]


class Sealed(Message, frozen=True, tag=35):
    """A report of a sequencing node, or a part of it."""

    change: Natural
    post: Post
    labels: tuple[Natural, ...]
    reports: tuple[GroupReport, ...]


class Copy(Message, frozen=True, tag=37):
    """To a node: get a part of a sealed log from another one, so that enough nodes have it."""

    group: Natural
    version: Natural
    """The plan of the epoch that is sealed."""
    start: Natural
    stop: Natural
    source: Natural


class Lagging(Message, frozen=True, tag=36):
    """A distributor cannot keep more for a subscriber that does not answer."""

    group: Natural
    node: Natural


MESSAGES = message_types(
    Publish,
    Receipt,
    Route,
    Unheard,
    Inquiry,
    Forward,
    Passed,
    Kept,
    Pull,
    Entries,
    Got,
    Where,
    Ask,
    Told,
    Alive,
    Plans,
    Seal,
    Sealed,
    Copy,
    Lagging,
)
