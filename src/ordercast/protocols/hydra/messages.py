"""What the processes of Hydra send each other.

A *sequencer* here is named by its number in the configuration (the paper's sequencer id), not by the node
that it runs on: each life of a node has a number of its own, and none is used twice (section 4.4).
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from ordercast.core import Message, Numbered, Payload, message_types

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Clock: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""A sequencer's clock, well below `NEVER`."""
GROUPS_MAX = 4096
Numbers: TypeAlias = Annotated[tuple[Natural, ...], msgspec.Meta(max_length=GROUPS_MAX)]
Destinations: TypeAlias = Annotated[tuple[Natural, ...], msgspec.Meta(min_length=1, max_length=GROUPS_MAX)]

NOBODY = 0
"""The number of a sequencer that has none yet."""
NEVER = (1 << 63) - 1
"""The clock of a final flush: infinity (section 4.4)."""


class Request(Message, frozen=True, tag=1):
    """From a sender to a sequencer: stamp this and pass it on.

    It names the sequencer's number, so that a copy which comes late is not stamped by a later life.
    """

    sequencer: Natural
    number: Natural
    """The sender's own, to recognise copies."""
    groups: Destinations
    payload: Payload


class Groupcast(Message, frozen=True, tag=2):
    """A stamped message on its way to the receivers of its groups (Algorithm 1)."""

    sequencer: Natural
    clock: Clock
    groups: Destinations
    numbers: Destinations
    """The multi-stamp: one number a group, in the order of `groups`."""
    sender: Natural
    payload: Payload
    request: Natural = 0
    """The sender's number of the request, if senders keep what they send."""

    def numbered(self) -> Numbered:
        """Its stamp."""
        return self.sequencer, self.clock, self.groups, self.numbers


class Flush(Message, frozen=True, tag=3):
    """A sequencer's clock, and the last number of every group at that time (section 4.3.3)."""

    sequencer: Natural
    clock: Clock
    numbers: Numbers


class Flushes(Message, frozen=True, tag=4):
    """What an aggregator knows of all sequencers, in one packet (section 4.6.2)."""

    flushes: tuple[Flush, ...]


class Solicit(Message, frozen=True, tag=5):
    """A receiver asks for a flush, as soon as the clock is above this one (section 4.6.1)."""

    sequencer: Natural
    """Of which sequencer; `NOBODY` asks an aggregator for all of them."""
    clock: Clock


class Probe(Message, frozen=True, tag=6):
    """A sender asks a sequencer for an echo, to see how congested the way is. Or the configuration service
    does, to see whether the sequencer is deaf."""

    sent: Natural


class Echo(Message, frozen=True, tag=7):
    """The answer to a probe."""

    sent: Natural


class Nudge(Message, frozen=True, tag=8):
    """A sequencer tells others that it has stamped: receivers of these groups need a clock above this one."""

    clock: Clock
    groups: Destinations


class Nudged(Message, frozen=True, tag=9):
    """The answer to a nudge: the receivers of these groups are told this clock."""

    clock: Clock
    groups: Destinations


class Ask(Message, frozen=True, tag=10):
    """A receiver asks for packets that it lacks: these numbers of a sequencer for a group."""

    sequencer: Natural
    group: Natural
    first: Natural
    last: Natural


class Found(Message, frozen=True, tag=11):
    """The answer to `Ask`: a packet that was kept."""

    packet: Groupcast

    def numbered(self) -> Numbered:
        """The stamp of the packet."""
        return self.packet.numbered()


class Gone(Message, frozen=True, tag=12):
    """The answer to `Ask` where no packet is kept: these numbers are not here."""

    sequencer: Natural
    group: Natural
    first: Natural
    last: Natural


class Stamped(Message, frozen=True, tag=13):
    """A sequencer tells a sender which of its requests it has stamped, and which are safe: a majority of the
    receivers of each group has them."""

    sequencer: Natural
    numbers: Numbers
    safe: Numbers


class Receipt(Message, frozen=True, tag=16):
    """A receiver tells a sequencer that it has all packets to its group up to this number, or has given up on
    those that it lacks."""

    sequencer: Natural
    front: Natural


class Refresh(Message, frozen=True, tag=17):
    """A receiver that lost its state asks a sequencer how far it is now, in its present life."""

    sequencer: Natural
    life: Natural


class Refreshed(Message, frozen=True, tag=18):
    """The answer to `Refresh`: no earlier life of the receiver can know of anything above this flush."""

    life: Natural
    flush: Flush


class Inquiry(Message, frozen=True, tag=14):
    """A sender asks a receiver what became of its requests to a sequencer that was removed."""

    sequencer: Natural
    numbers: Numbers


class Outcome(Message, frozen=True, tag=15):
    """The answer to `Inquiry`, when the receiver has settled all numbers of the sequencer."""

    sequencer: Natural
    came: Numbers
    """It has delivered these."""
    absent: Numbers
    """These are not among the messages of the sequencer, and never will be."""
    unknown: Numbers
    """These may be among the messages that this receiver lacks."""


class Step(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One decided step of the sequence of configurations."""

    change: Literal["added", "removed", "void", "reborn"]
    """A void step is an addition that was given up. With a reborn step a receiver without its state becomes a
    new member; what is planned stays planned. Both make no configuration."""
    sequencer: Natural
    node: Natural
    """The node of the sequencer, or the receiver that is reborn."""
    config: Natural
    """The number of the configuration that it leads to."""
    clock: Natural
    """Where it takes effect in the order of messages."""
    numbers: Numbers
    """For each group, the last number before an addition, or the last of a removed sequencer."""
    complete: bool = False
    """Whether all receivers had reported, not only a quorum of each group. Then none of them has delivered or
    will deliver anything of a removed sequencer above these numbers."""

    @property
    def configures(self) -> bool:
        """Whether it makes a new configuration."""
        return self.change in ("added", "removed")


class Plans(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The step that the configuration service is about to take."""

    change: Literal["added", "removed"]
    sequencer: Natural
    node: Natural


class Announce(Message, frozen=True, tag=20):
    """The state of the configuration service, from its leader to everybody, again and again."""

    steps: Natural
    """How many steps are decided."""
    active: tuple[tuple[Natural, Natural], ...]
    """The sequencers of the latest configuration and their nodes."""
    planned: Plans | None
    latest: Step | None
    """The last of the decided steps, which spares most receivers a `Fetch`."""
    silent: Numbers = ()
    """Those of the active that senders should leave alone: they have not asked for their number yet and stamp
    nothing before they have, or are about to be removed, or the leader has heard nothing of them yet."""

    def closes(self) -> tuple[int, ...]:
        """The sequencer whose removal is planned, and the one that was removed last."""
        news = (self.planned, self.latest)
        return tuple(one.sequencer for one in news if one is not None and one.change == "removed")


class Fetch(Message, frozen=True, tag=21):
    """A receiver or a sender asks for the decided steps from this one on, counted from 0."""

    start: Natural


class Steps(Message, frozen=True, tag=22):
    """Decided steps in a row."""

    start: Natural
    steps: tuple[Step, ...]

    def closes(self) -> tuple[int, ...]:
        """The sequencers that were removed."""
        return tuple(step.sequencer for step in self.steps if step.change == "removed")


class Suspect(Message, frozen=True, tag=23):
    """A receiver has heard nothing of some sequencers for too long, or they do not stamp what a sender sends
    them."""

    sequencers: Numbers


class Report(Message, frozen=True, tag=24):
    """A receiver's answer to a planned step: what it has seen of the sequencer.

    For a removal the highest clock and, for all groups, the highest numbers; for an addition a flush of the
    new sequencer above everything that the receiver has delivered.
    """

    step: Natural
    sequencer: Natural
    clock: Clock
    numbers: Numbers


class BlindReport(Message, frozen=True, tag=29):
    """The answer to a planned removal of a receiver that lost its state: it cannot know what its earlier life
    had of the sequencer, which does not answer any more."""

    step: Natural
    sequencer: Natural


class Join(Message, frozen=True, tag=25):
    """A sequencer asks for a number, for the life that it began at this reading of its clock."""

    life: Natural


class Welcome(Message, frozen=True, tag=26):
    """The number of a sequencer for its present life."""

    life: Natural
    sequencer: Natural
    since: Natural
    """From this many steps on, a configuration without it means that it was removed."""


class Rebirth(Message, frozen=True, tag=27):
    """A receiver that lost its state wants to be a new member, in the life that it began at this reading of
    its clock."""

    life: Natural


class Revived(Message, frozen=True, tag=28):
    """The rebirth of a receiver is decided. It begins in this configuration."""

    life: Natural
    steps: Natural
    config: Natural
    clock: Natural
    """With the next, the place of the last step in the order of messages."""
    sequencer: Natural
    newest: Natural
    """The highest number that any sequencer has had."""
    active: tuple[tuple[Natural, Natural], ...]


MESSAGES = message_types(
    Request,
    Groupcast,
    Flush,
    Flushes,
    Solicit,
    Probe,
    Echo,
    Nudge,
    Nudged,
    Ask,
    Found,
    Gone,
    Stamped,
    Inquiry,
    Outcome,
    Receipt,
    Refresh,
    Refreshed,
    Announce,
    Fetch,
    Steps,
    Suspect,
    Report,
    BlindReport,
    Join,
    Welcome,
    Rebirth,
    Revived,
)
