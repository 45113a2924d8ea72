"""Events: the rows of a trace in memory, the same for simulated and live runs.

`docs/trace.md` documents every column. Rows of one node are in the order in which they happened there;
all rows of a simulated run are in order of time.
"""

from enum import StrEnum
from typing import NamedTuple

from ordercast.core import GroupId, Groups, MessageId, Nanos, NodeId, format_ns, message_name


class Kind(StrEnum):
    """What happened."""

    SUBMIT = "submit"
    DELIVER = "deliver"
    OUT_OF_ORDER = "out-of-order"
    DROP = "drop"
    VIEW = "view"
    UNCONFIRMED = "unconfirmed"
    JOIN = "join"
    LEAVE = "leave"
    JOINED = "joined"
    LEFT = "left"
    ROLE = "role"
    STATE_WANTED = "state-wanted"
    GIVE_STATE = "give-state"
    STATE = "state"
    REPLY = "reply"
    CHECKPOINT = "checkpoint"
    CRASH = "crash"
    RECOVER = "recover"
    COMPLETE = "complete"
    SEND = "send"
    RECEIVE = "receive"
    LOSE = "lose"
    UNDONE = "undone"
    LOCKED = "locked"
    RELEASED = "released"


PACKETS = (Kind.SEND, Kind.RECEIVE, Kind.LOSE)
"""The kinds of packet rows: there are many, and no property is about them."""
SAVED = "saved"
"""Label of a recovery with the state that the node had saved."""
LOST = "lost"
"""Label of a recovery without the saved state: the node counts as a new one."""
PROBE = "probe"
"""Label of a submission that tests, after all faults are over, whether messages are delivered."""
ADDED = "added"
"""Label of a view that adds the issuer of its stamp: numbers after the stamp's number count."""
REMOVED = "removed"
"""Label of a view that removes the issuer of its stamp: the group settles all up to the stamp's number."""


READ = "read"
"""Label of a submission that is a read of a service, and of its reply: nobody delivers it."""
COMMITTED = "committed"
"""Label of the end of a transaction whose effects are in force."""
ABORTED = "aborted"
"""Label of the end of a transaction that changed nothing."""
RESTORED = "restored"
"""Label of a checkpoint whose state came from another replica."""
TALLY = "tally"
"""Label of a state that is the tally of what was delivered (`tally.py`), as applications of tests give it."""


class Fate(StrEnum):
    """What had become of the packet of a drop notification; the label of its row in a simulated run."""

    LOST = "lost"
    """It was sent, and never came."""
    LATE = "late"
    """It came after the notification."""
    REFUSED = "refused"
    """It had come, but the receiver need not have kept it: its place in the order had passed, its issuer was
    not added yet or was being removed, or the receiver held as many packets as it may."""
    RECEIVED = "received"
    """It had come, and nothing excuses the notification."""
    UNSENT = "unsent"
    """Nobody had sent such a packet."""


UNFOUNDED = (Fate.RECEIVED, Fate.UNSENT)
"""The fates of packets for which a drop notification has no reason."""


class Event(NamedTuple):
    """One row of a trace."""

    time_ns: Nanos
    clock_ns: Nanos
    node: NodeId
    kind: Kind
    message: MessageId | None = None
    groups: Groups | None = None
    numbers: tuple[int, ...] | None = None
    submitted_ns: Nanos | None = None
    stamp_clock: int | None = None
    stamp_issuer: int | None = None
    config: int | None = None
    members: tuple[NodeId, ...] | None = None
    peer: NodeId | None = None
    size: int | None = None
    digest: int | None = None
    label: str | None = None

    def slots(self) -> tuple[tuple[GroupId, int], ...]:
        """The (group, number) pairs that the issuer gave to this message or notification."""
        return tuple(zip(self.groups or (), self.numbers or (), strict=False))

    def __str__(self) -> str:
        """A line that a person can read."""
        what = [f"{format_ns(self.time_ns):>14}  node {self.node:<4} {self.kind:<12}"]
        if self.message is not None:
            what.append(message_name(self.message))
        if self.groups is not None:
            what.append("to groups " + ",".join(map(str, self.groups)))
        if self.stamp_clock is not None:
            what.append(f"stamp ({self.stamp_clock}, {self.stamp_issuer})")
        elif self.stamp_issuer is not None:
            what.append(f"issuer {self.stamp_issuer}")
        if self.numbers:
            what.append("numbers " + ",".join(map(str, self.numbers)))
        if self.members is not None:
            what.append(f"config {self.config} members {','.join(map(str, self.members))}")
        if self.peer is not None:
            word = {Kind.SEND: "to", Kind.LOSE: "to", Kind.ROLE: "ordered by"}.get(self.kind, "from")
            what.append(f"{word} node {self.peer}")
        if self.label:
            what.append(self.label)
        return "  ".join(what)
