"""Which part of a replica a message of another replica is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.components.network_ordered.messages import (
    BaseChunk,
    BaseRequest,
    Entries,
    FetchEntries,
    GapCommit,
    GapCommitReply,
    GapRequest,
    InView,
    Return,
    StartView,
    StartViewReply,
    StepsRequest,
    StepsTold,
    SyncCommit,
    SyncPrepare,
    SyncReply,
    ViewChange,
    ViewChangeRequest,
)
from ordercast.components.network_ordered.views import RETURNING
from ordercast.core import RemoteError, named

if TYPE_CHECKING:
    from ordercast.components.network_ordered.replica import NetworkReplica
    from ordercast.core import Message, NodeId


class Inbox:
    """The messages of other replicas, by when they count."""

    def __init__(self, replica: NetworkReplica) -> None:
        self._replica = replica

    def on_message(self, source: NodeId, message: Message) -> None:
        """Hand the message to the part that it is for."""
        replica = self._replica
        replica.views.hear(source)
        if replica.views.status is RETURNING:
            self._on_returning(source, message)
        elif isinstance(message, InView):
            self._on_in_view(source, message)
        else:
            self._on_any_time(source, message)

    def _on_any_time(self, source: NodeId, message: Message) -> None:
        """Messages that count in every view."""
        replica = self._replica
        match message:
            case ViewChangeRequest():
                replica.views.change(message.view)
            case FetchEntries():
                replica.supply.on_fetch(source, message)
            case BaseRequest():
                replica.supply.on_state_request(source, message)
            case BaseChunk():
                replica.catch_up.on_chunk(source, message)
            case Return():
                replica.views.on_return(source, message)
            case StepsRequest():
                replica.supply.tell_steps(source, message.since)
            case StepsTold():
                replica.ordering.take_steps(message.since, message.steps)
            case _:
                raise RemoteError(f"node {source} sent {named(message)} to a replica")

    def _on_returning(self, source: NodeId, message: Message) -> None:
        """Without memory, this replica only takes: a view that takes it in, and the log of that view."""
        replica = self._replica
        match message:
            case StartView():
                replica.views.on_start_view_returning(source, message)
            case BaseChunk():
                replica.catch_up.on_chunk(source, message)
            case Entries():
                replica.catch_up.on_entries(message.entries)

    def _on_in_view(self, source: NodeId, message: InView) -> None:
        """Messages that count in one view and with one tag."""
        replica = self._replica
        if isinstance(message, Entries):
            replica.catch_up.on_entries(message.entries)
        if message.view < replica.view:
            replica.env.send(source, ViewChangeRequest(replica.view))
        elif message.tag < replica.tag:
            replica.supply.tell_steps(source, message.tag)
        elif message.tag > replica.tag:
            replica.env.send(source, StepsRequest(replica.tag))
        elif isinstance(message, StartView):
            replica.views.on_start_view(source, message)
        else:
            replica.views.change(message.view)
            self._on_current(source, message)

    def _on_current(self, source: NodeId, message: InView) -> None:
        """Messages of the present view with the present tag."""
        replica = self._replica
        if isinstance(message, ViewChange):
            replica.views.on_vote(source, message)
        if not replica.is_normal:
            return
        match message:
            case GapRequest():
                replica.gaps.on_request(source, message)
            case Entries():
                replica.gaps.on_entries(source, message)
            case GapCommit():
                replica.gaps.on_commit(source, message)
            case GapCommitReply():
                replica.gaps.on_commit_reply(source, message)
            case SyncPrepare():
                replica.syncs.on_prepare(source, message)
            case SyncReply():
                replica.syncs.on_reply(source, message)
            case SyncCommit():
                replica.syncs.on_commit(source, message)
            case StartViewReply():
                replica.views.on_reply(source)
