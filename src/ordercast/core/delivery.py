"""Deliveries: the messages, drop notifications and views that a protocol hands to the application.

A delivery either *carries* a bundle of messages or is a *notice*. Every delivery names its configuration, so
that an application can tell what happened before and after a reconfiguration.

To add a kind of delivery, add a class here, and to `CARRIERS` if it carries messages. `trace/deliveries.py`
says how each kind is recorded. Code that handles deliveries uses that table and does not name the classes.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from ordercast.core.bundle import bundle_span, pack_bundle, unpack
from ordercast.core.ids import GroupId, Groups, MessageId, NodeId


class Stamp(msgspec.Struct, frozen=True, gc=False):
    """A message's place in its protocol's own order.

    Messages compare by ``(clock, issuer)``: a time, real or logical, or a ticket, and the node that gave it.
    ``numbers`` is the multi-stamp: one number for each destination group, in the order of the message's
    groups, counted by the issuer without gaps; empty where a protocol does not number.
    """

    clock: int
    issuer: int
    numbers: tuple[int, ...] = ()


class Carrier(msgspec.Struct, frozen=True, gc=False):
    """A delivery that carries a bundle of messages of one sender."""

    payload: bytes
    groups: Groups
    sender: NodeId
    stamp: Stamp | None = None
    config: int = 0


class Delivered(Carrier, frozen=True, gc=False):
    """Messages in their place in the order."""


class OutOfOrder(Carrier, frozen=True, gc=False):
    """Messages whose place in the order had already passed, tagged as such."""


CARRIERS: tuple[type[Carrier], ...] = (Delivered, OutOfOrder)
"""All carriers, the most common first: `isinstance` is faster with them than with their base class."""


class Notice(msgspec.Struct, frozen=True, gc=False):
    """A delivery that tells a group something, and carries no message."""

    group: GroupId

    @property
    def rows(self) -> int:
        """How many rows of the trace it has; their numbers are consecutive."""
        return 1

    def singles(self) -> Iterator["Notice"]:
        """The notices of which it is made, each of which has a row in the trace."""
        yield self

    @property
    def begins_anew(self) -> bool:
        """Whether its receiver has lost its place in the group, and owes nothing of what was before."""
        return False


class Dropped(Notice, frozen=True, gc=False):
    """A drop notification: these numbers of an issuer will not be delivered to this group here."""

    issuer: int
    number: int
    """The first of the numbers."""
    config: int = 0
    count: int = 1
    """How many numbers in a row."""

    @property
    def rows(self) -> int:
        """One a number."""
        return self.count

    def singles(self) -> Iterator[Notice]:
        """One notification a number."""
        for number in range(self.number, self.number + self.count):
            yield Dropped(self.group, self.issuer, number, self.config)


ANEW = "anew"
"""The note of a view whose node starts anew with it: it has come back, or has lost its place before."""


class View(Notice, frozen=True, gc=False):
    """A view or configuration took effect for a group: its number and its members.

    If the view adds or removes an issuer, ``change`` says so, and ``stamp`` says where: the clock of the
    boundary, the issuer, and one number. For a removed issuer this is the last number that the group settles:
    every number up to it came before the view, and no number comes after the view. For an added issuer it is
    the number after which its messages count.

    In any other view, the clock of ``stamp`` may say in which state the group is when the view begins. It is
    the same at all nodes that install the view.
    """

    config: int
    members: tuple[NodeId, ...]
    note: str = ""
    change: Literal["", "added", "removed"] = ""
    stamp: Stamp | None = None

    @property
    def begins_anew(self) -> bool:
        """Whether the node that installs the view comes back as a new member."""
        return self.note == ANEW


class Joined(Notice, frozen=True, gc=False):
    """This node receives a group from a place in its order on.

    The place is a stamp or a configuration. ``stamp``: the node delivers the messages of the group whose
    stamps are above it. ``config``: the node delivers the messages of this configuration and of later ones.
    A protocol that knows neither gives no place. Members of a group from the start are not told this.
    """

    config: int | None = None
    stamp: Stamp | None = None
    note: str = ""
    """What else the protocol says about it, such as a rank."""


class Left(Notice, frozen=True, gc=False):
    """This node receives a group no longer: nothing of the group comes after this notice.

    ``stamp``: the node has delivered all messages of the group up to this stamp. ``config``: the first
    configuration that the node is not in; it has delivered all messages of earlier ones.
    """

    config: int | None = None
    stamp: Stamp | None = None
    note: str = ""


class RoleChange(Notice, frozen=True, gc=False):
    """This node takes part in the order in another way from now on: it has another role, or another node
    orders its messages."""

    role: str
    """A word of the protocol, such as "passive"."""
    sequencer: NodeId
    """The node that orders the messages of this one; perhaps this node itself."""
    config: int = 0
    note: str = ""
    """What the node believes that made it change, for a person to read."""


class StateWanted(Notice, frozen=True, gc=False):
    """Newcomers of a group need the state of the application, as it is at this place among the deliveries:
    after everything of earlier configurations, and before the first message of this one. The application
    takes a copy of its state now, and gives it (`Stateful.give_state`) now or later."""

    config: int
    newcomers: tuple[NodeId, ...]


class State(Notice, frozen=True, gc=False):
    """The state of a group at the beginning of a configuration, for a node that has just joined. It replaces
    what the application has of the group; the messages of the configuration follow."""

    config: int
    data: bytes
    """What the application of the donor gave."""
    donor: NodeId | None = None
    """Who gave it. None if nobody has a state: then the application goes on with what it has, or with
    nothing, and later newcomers get that."""


class Unconfirmed(Notice, frozen=True, gc=False):
    """Tells a sender that it is not known what becomes of some of its messages, and that they are not sent
    again: perhaps some receivers deliver them, perhaps none does. It is delivered where they were submitted,
    and gives them back as a bundle."""

    groups: Groups
    payload: bytes

    @property
    def rows(self) -> int:
        """One a message."""
        return len(unpack(self.payload))

    def singles(self) -> Iterator[Notice]:
        """One for each message."""
        for message, submitted, payload in unpack(self.payload):
            yield Unconfirmed(self.group, self.groups, pack_bundle(message, [submitted], [payload]))


class Replied(Notice, frozen=True, gc=False):
    """Answers a client: the results of some of its operations, which were one bundle."""

    payload: bytes
    """A bundle of the operations' identities, with their results as payloads."""
    stamp: Stamp | None
    """The place of the operations in the order: where they were executed first. For reads that were not
    ordered, the place after which they were executed; None if nothing was executed before them."""
    replica: NodeId
    """Who executed them."""
    read: bool = False
    """Whether they are reads, which are not delivered."""

    @property
    def rows(self) -> int:
        """One an operation."""
        return bundle_span(self.payload)[1]

    def singles(self) -> Iterator[Notice]:
        """One for each operation."""
        for message, submitted, result in unpack(self.payload):
            payload = pack_bundle(message, [submitted], [result])
            yield Replied(self.group, payload, self.stamp, self.replica, self.read)


class Checkpoint(Notice, frozen=True, gc=False):
    """The state of a service at a replica, after all operations up to a place in the order."""

    stamp: Stamp
    size: int | None
    """None, like the digest, if the state that was taken is of a later place: the replica delivers the
    operations between, and then notes the state."""
    digest: int | None
    """A check sum of the state and of the answers that are kept with it."""
    restored: bool = False
    """The replica has not executed all operations up to this place: it took the state from another replica.
    Operations up to this place that it has not delivered yet, it does not deliver."""


class Undone(Notice, frozen=True, gc=False):
    """Takes back deliveries or answers of a group: they were on a branch of its order that was discarded.

    At a replica: what this node delivered of the group after the place counts as never delivered. It goes on
    from the state of another replica. At a client: the answers that it got so far with places behind this one
    do not hold. It is not known what becomes of these operations, and they are not called again.
    """

    stamp: Stamp
    """The last place that the discarded branch has in common with the one that this node goes on with. Its
    numbers may name that one: the number and the precedence of its last view that this node knows."""


class Locked(Notice, frozen=True, gc=False):
    """From a place in its order on, a shard holds locks for a transaction. Its replicas deliver this once,
    when it is certain, in turn with the other deliveries of the shard."""

    transaction: MessageId
    """The message that asked for the locks."""
    stamp: Stamp


class Released(Notice, frozen=True, gc=False):
    """At a place in its order, a shard ends a transaction, and holds no lock for it any more. A transaction
    that was ended before it held a lock has this notice too."""

    transaction: MessageId
    stamp: Stamp
    committed: bool
    """Whether what the transaction did in this shard is in force. All its shards say the same."""


Delivery: TypeAlias = Carrier | Notice
