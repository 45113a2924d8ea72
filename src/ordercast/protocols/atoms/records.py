"""What the store decides and all processes share: the plan of each group.

An *epoch* is a time in which the atoms of one tree of the sequencing graph, their places and the members of
their groups do not change. It has a label; labels grow. All groups of a tree are in one epoch, and end it
together. In an epoch the counters of its atoms begin at 0, so a number is known by epoch, atom and number.

The order of a group is a *log*: positions 0, 1, 2, ... hold its messages and, for each epoch, the entry with
which it begins.
"""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.components.sequencing_graph import AtomId
from ordercast.core import NodeId, Payload

NUMBER_MAX = (1 << 53) - 1
"""No log gets so long, and no process restarts so often: nobody decodes a message with a higher number."""
Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
Stamps: TypeAlias = tuple[tuple[Natural, Natural], ...]
"""The numbers that a message has collected: atom and number, in the order of its path."""
Serial: TypeAlias = tuple[Natural, Natural]
"""Of a publisher and a group: the life of the publisher, and the number of its next message to the group."""
NOBODY: NodeId = NUMBER_MAX


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of all values below."""


class Post(Record, frozen=True):
    """One life of a sequencing node. What a node was told in an earlier life binds it no more."""

    node: Natural
    life: Natural


class Hop(Record, frozen=True):
    """A stop of a path at a sequencing node: the atoms that number the group there, in order."""

    post: Post
    atoms: tuple[Natural, ...]


class Begin(Record, frozen=True, tag=1):
    """The entry of a log with which an epoch begins, or, with `ends`, after which a group has no members."""

    label: Natural
    floor: Natural
    """Epochs that the same change began have this label or a higher one; all earlier ones have lower ones."""
    kin: tuple[Natural, ...]
    """The groups that have a subscriber in common with this one and that the same change has touched: whoever
    is in them delivers all of their earlier epochs before anything of this one."""
    atoms: tuple[tuple[AtomId, tuple[Natural, ...]], ...]
    """The atoms that number the group, each with all groups that it numbers."""
    ends: bool = False


class Placed(Record, frozen=True, tag=2):
    """A message with its place: what subscribers need to deliver it."""

    label: Natural
    stamps: Stamps
    publisher: Natural
    life: Natural
    number: Natural
    payload: Payload | None
    """None: a mark, which is not delivered."""


Entry: TypeAlias = Begin | Placed


class Part(Record, frozen=True):
    """A part of a log that a sequencing node has."""

    post: Post
    start: Natural
    stop: Natural


class Tenure(Record, frozen=True):
    """A subscriber, and where its part of the log begins and, perhaps, ends."""

    node: Natural
    start: Natural
    stop: Natural | None = None


class GroupPlan(Record, frozen=True):
    """How a group is ordered in an epoch."""

    group: Natural
    version: Natural
    """Plans of all groups have different versions; a later plan has a higher one."""
    opened: Natural
    """Of this plan and those before, the first since which the group has always had members. Messages that
    were sent by earlier plans are for nobody, and their publishers were told so."""
    bases: tuple[tuple[Natural, Natural], ...]
    """Of this plan and of those before, oldest first: version and base. Whoever has obeyed a plan knows that
    its log is in the order up to the base of the next one, and not beyond. Older plans do not matter."""
    base: Natural
    """The position of the entry that begins the epoch."""
    begin: Begin
    hops: tuple[Hop, ...]
    """The path. The first takes messages from publishers. Nobody, if the group has no members."""
    holders: tuple[Post, ...]
    """Who keeps the log: the last of the path, then those to which it passes messages on. The last of all
    sends them to the subscribers."""
    tenures: tuple[Tenure, ...]
    serials: tuple[tuple[Natural, Serial], ...]
    """Of each publisher: what is expected from it next, when the epoch begins."""
    parts: tuple[Part, ...]
    """Who has reported to have which part of the log before this epoch. Others may have more."""
    low: Natural
    """All subscribers have delivered what is before this position."""
    begins: tuple[tuple[Natural, Begin], ...] = ()
    """Earlier epochs that too few of those who have reported had begun, with their positions."""

    @property
    def label(self) -> int:
        """The epoch."""
        return self.begin.label

    @property
    def distributor(self) -> Post | None:
        """Who sends to the subscribers."""
        return self.holders[-1] if self.holders else None

    @property
    def ingress(self) -> NodeId:
        """Who takes messages from publishers."""
        return self.hops[0].post.node if self.hops else NOBODY

    def posts(self) -> frozenset[Post]:
        """Everybody on whom the epoch depends."""
        return frozenset((*(hop.post for hop in self.hops), *self.holders))


class GroupReport(Record, frozen=True):
    """What a sequencing node knows of a group whose epoch it has sealed."""

    group: Natural
    ranges: tuple[tuple[Natural, Natural], ...]
    """The parts of the log that it has."""
    next: Natural
    """The position after the last that it took in this epoch; 0 if it is no holder in this epoch."""
    low: Natural
    serials: tuple[tuple[Natural, Serial], ...]
    gone: tuple[Natural, ...] = ()
    """Former subscribers that have delivered their part."""


class Membership(Record, frozen=True):
    """Of a subscriber: a group that it is in, from which position on, and until which, if that is known."""

    group: Natural
    label: Natural
    """The first epoch in which it is a member."""
    start: Natural
    out: Natural | None = None
    """The first epoch in which it is no member any more."""
    stop: Natural | None = None
    lost: bool = False
    """It was too far behind: what it has not delivered is not kept for it."""
