"""A protocol's promises as data: the conformance suite and the checks read them.

Terms follow the usual ones of total order broadcast: *integrity* (nothing twice, nothing made up),
*agreement* (what one delivers, all deliver), *validity* (what a correct sender submits is delivered),
*uniform* (the promise covers what nodes did before they crashed).
"""

from enum import StrEnum

import msgspec


class Order(StrEnum):
    """Between which messages a common order is promised."""

    NONE = "none"
    GROUP = "group"
    """One order within each group."""
    OVERLAPS = "overlapping-groups"
    """So it is, and for any two groups, the receivers in both deliver the messages of both in one order."""
    ACROSS = "across-groups"
    """One order within each group, and the orders of all groups together have no cycle."""


class Agreement(StrEnum):
    """Which receivers get a message that one receiver got."""

    NONE = "none"
    NOTIFIED = "message-or-notification"
    PROBABILISTIC = "probabilistic"
    ALL = "all"


class Causality(StrEnum):
    """How delivery respects the order of sending."""

    NONE = "none"
    FIFO = "fifo"
    CAUSAL = "causal"


class Gaps(StrEnum):
    """What a receiver learns of a message that it does not get."""

    SILENT = "silent"
    NOTIFIED = "notified"
    NEVER = "never"


class Partition(StrEnum):
    """What happens while the network is cut in two."""

    EACH_SIDE_CONTINUES = "each-side-continues"
    MAJORITY_CONTINUES = "majority-continues"
    BLOCKS = "blocks"
    SIDE_BRANCHES_DISCARDED = "side-branches-discarded"
    """Each side goes on. When sides meet again, the branch of one survives, and the others are taken back
    (`Undone`). What else is promised holds within the branch that survives."""


class Membership(StrEnum):
    """How the receivers of a group may change while a protocol runs."""

    FIXED = "fixed"
    """They do not: a group has the same receivers from the start to the end."""
    VIEWS = "views"
    """Receivers join and leave. All members of a group agree on its views, which list its members."""
    SUBSCRIPTIONS = "subscriptions"
    """Receivers join and leave, each at a place in the order of the group. Nobody needs a list of them."""


class Consistency(StrEnum):
    """What the clients of a replicated service can rely on."""

    NONE = "none"
    SERIALIZABLE = "serializable"
    """The results are those of some order of all operations that keeps the order of each client."""
    STRICT_SERIALIZABLE = "strict-serializable"
    """So they are, and an operation that began after another had ended comes after it, over all shards."""
    LINEARIZABLE = "linearizable"
    """So they are, for each service by itself."""


class Fault(StrEnum):
    """What may happen to a run; a promise holds under the faults that it names."""

    LOSS = "loss"
    DUPLICATION = "duplication"
    REORDERING = "reordering"
    PARTITION = "partition"
    CRASH = "crash"
    RESTART = "restart"
    AMNESIA = "amnesia"
    PAUSE = "pause"
    CLOCK = "clock"
    DISK = "disk"
    """Saved state is damaged or lost, or cannot be written. A host whose disk fails stops. One that finds its
    state damaged comes back as a new member if all its nodes may forget, and otherwise stays down."""


class Crashes(StrEnum):
    """How many receivers may be down for good while the others go on.

    A minority is one of each group, or one of the receivers of all groups together.
    """

    NONE = "none"
    ONE = "one"
    """One of each group, if another one is left."""
    MINORITY = "minority"
    MINORITY_OF_ALL = "minority-of-all"
    ALL_BUT_ONE = "all-but-one"
    """All of each group but one."""
    ANY = "any"


class Guarantees(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a protocol promises, and under which faults."""

    integrity: bool = True
    order: Order = Order.NONE
    agreement: Agreement = Agreement.NONE
    uniform: bool = False
    validity: bool = False
    causality: Causality = Causality.NONE
    gaps: Gaps = Gaps.SILENT
    views: bool = False
    out_of_order: bool = False
    """Messages whose place in the order has passed may be delivered, tagged as such."""
    partition: Partition = Partition.EACH_SIDE_CONTINUES
    crashes: Crashes = Crashes.ANY
    groups_max: int | None = None
    """The most groups that one message may go to; None if it may go to all."""
    tolerates: tuple[Fault, ...] = ()
    membership: Membership = Membership.FIXED
    state_transfer: bool = False
    """A node that joins a group gets the state that the applications of the others have then."""
    consistency: Consistency = Consistency.NONE
    """For a protocol that replicates services: what their clients can rely on."""

    @property
    def churns(self) -> bool:
        """Whether any number of processes may come and go. One that comes back with an empty disk then stands
        for another process in the place of the old one, without a past. Elsewhere it is the same member,
        which lost its state and knows that."""
        return self.crashes is Crashes.ANY
