"""What replicas and their clients tell each other.

Most messages name a view and a tag: they count only at a replica with the same ones.
"""

from typing import Annotated, TypeAlias

import msgspec

from ordercast.components.execution.messages import Name
from ordercast.components.execution.messages import Place as StampPlace
from ordercast.components.network_ordered.place import LogEntry, LogPlace, Natural, Slot
from ordercast.core import Message, Payload, message_types

Slots: TypeAlias = Annotated[tuple[Slot, ...], msgspec.Meta(max_length=1 << 20)]
ASKED_MAX = 1024
FewSlots: TypeAlias = Annotated[tuple[Slot, ...], msgspec.Meta(max_length=ASKED_MAX)]
"""The slots that one message asks for, or gives up."""


class Pledge(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a replica has promised to somebody outside its group: not to take the message with this number."""

    sequencer: Natural
    group: Natural
    number: Natural
    bound: Natural
    """The clock of that message is not above this."""
    is_final: bool = False
    """Whether it is decided that nobody takes it."""


Pledges: TypeAlias = Annotated[tuple[Pledge, ...], msgspec.Meta(max_length=1 << 16)]


class InView(Message, frozen=True):
    """Counts only in one view, with one tag."""

    view: Natural
    tag: Natural


class Reply(InView, frozen=True, tag=280):
    """A replica has a call in its log; the leader of the view sends the results with it."""

    slot: Slot
    first: Name
    results: Payload | None
    place: StampPlace | None


class ReadRequest(Message, frozen=True, tag=281):
    """A client asks all replicas for reads past the log."""

    call: Payload


class ReadReply(InView, frozen=True, tag=282):
    """The place that a replica's log has reached; the leader sends the results at that place with it."""

    clock: Natural
    sequencer: Natural
    first: Name
    results: Payload | None
    place: StampPlace | None


class GapRequest(InView, frozen=True, tag=283):
    """A replica lacks these slots."""

    slots: FewSlots


class Entries(InView, frozen=True, tag=284):
    """Entries that another replica asked for, and what of it this replica lacks too."""

    entries: tuple[LogEntry, ...]
    lacking: FewSlots


class GapCommit(InView, frozen=True, tag=285):
    """The leader gives these slots up."""

    slots: FewSlots


class GapCommitReply(InView, frozen=True, tag=286):
    """A replica has taken note of it."""

    slots: FewSlots


class ViewChangeRequest(Message, frozen=True, tag=287):
    """This view is to begin."""

    view: Natural


class ViewChange(InView, frozen=True, tag=288):
    """A replica's log, for the leader of a new view."""

    normal: Natural
    """The last view in which it worked normally."""
    base: LogPlace
    """It has a state here, and the log from here on."""
    place: LogPlace
    """The end of its log."""
    noops: Slots
    """The slots that were given up, from the base on."""
    pledges: Pledges = ()
    """What it has promised in views up to that one."""


class StartView(InView, frozen=True, tag=289):
    """The new leader's log, with which the view begins."""

    base: LogPlace
    place: LogPlace
    noops: Slots
    returns: tuple[tuple[Natural, Natural], ...]
    """The replicas that come back without memory with this view, and their lives."""
    setting: Payload
    """The sequencers, for those."""
    pledges: Pledges = ()
    """What the replicas of this view have promised."""


class StartViewReply(InView, frozen=True, tag=290):
    """A replica has the log of the view."""


class SyncPrepare(InView, frozen=True, tag=291):
    """The leader's log is to be certain up to a place."""

    base: LogPlace
    place: LogPlace
    noops: Slots
    is_certain: bool
    """Whether it is already, as far as the leader knows."""


class SyncReply(InView, frozen=True, tag=292):
    """A replica has the leader's log up to this place."""

    clock: Natural
    sequencer: Natural


class SyncCommit(InView, frozen=True, tag=293):
    """A majority has the leader's log up to this place."""

    clock: Natural
    sequencer: Natural


class FetchEntries(Message, frozen=True, tag=294):
    """A replica asks for entries, to have the log of another one."""

    slots: FewSlots


class BaseRequest(Message, frozen=True, tag=295):
    """A replica asks for the state at the base of another one, from this byte on."""

    clock: Natural
    sequencer: Natural
    offset: Natural


class BaseChunk(Message, frozen=True, tag=296):
    """A part of the state at the base of a replica."""

    base: LogPlace
    total: Natural
    offset: Natural
    data: Payload


class Return(Message, frozen=True, tag=297):
    """A replica that lost its memory wants to come back, in the life that it began at this time."""

    life: Natural


class StepsRequest(Message, frozen=True, tag=298):
    """A replica asks for the changes of the sequencers after a tag."""

    since: Natural


class StepsTold(Message, frozen=True, tag=299):
    """Changes of the sequencers after a tag."""

    since: Natural
    steps: Payload


MESSAGES = message_types(
    Reply, ReadRequest, ReadReply, GapRequest, Entries, GapCommit, GapCommitReply, ViewChangeRequest,
    ViewChange, StartView, StartViewReply, SyncPrepare, SyncReply, SyncCommit, FetchEntries, BaseRequest,
    BaseChunk, Return, StepsRequest, StepsTold,
)  # fmt: skip
