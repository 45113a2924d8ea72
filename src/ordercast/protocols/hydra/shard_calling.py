"""A client of shards: one message to all shards of a transaction, and an answer of each (Hydra section 6)."""

from collections.abc import Mapping
from functools import partial

from ordercast.components.cross_shard.messages import LateAnswer
from ordercast.components.execution import CallOptions, Pending, ShardCalls, combine_results
from ordercast.components.network_ordered import Replies
from ordercast.core import (
    Env,
    GroupId,
    Groups,
    Message,
    MessageId,
    NodeId,
    RemoteError,
    ServiceSpec,
    Stamp,
    Wait,
)
from ordercast.protocols.hydra.calling import Client
from ordercast.protocols.hydra.options import HydraOptions


class ShardClient(Client):
    """Calls the replicas of shards."""

    _calls: ShardCalls

    def __init__(
        self,
        env: Env,
        groups: Mapping[GroupId, tuple[NodeId, ...]],
        service: tuple[NodeId, ...],
        options: HydraOptions,
        near: NodeId | None,
        calls: CallOptions,
        spec: ServiceSpec | None,
    ) -> None:
        answers = spec is not None
        super().__init__(env, groups, service, options, near, calls, answers=answers)
        self._sharding = spec.sharding if spec is not None else None
        self._parts: dict[MessageId, dict[GroupId, bytes]] = {}
        """By call: the results of the shards that have answered."""
        self._replies = {
            group: Replies(group, replicas, partial(self._settle_in, group))
            for group, replicas in groups.items()
            if replicas
        }
        self._calls = ShardCalls(
            env,
            self._replies,
            calls,
            self._send,
            answers=answers,
            several=spec is None or self._sharding is not None,
        )

    def _lacking(self, call: Pending) -> Groups:
        """The shards that have not answered a call."""
        answered = self._parts.get(call.first, {})
        return tuple(group for group in call.groups if group not in answered)

    def _settle_in(
        self, group: GroupId, first: MessageId, results: bytes, stamp: Stamp | None, replica: NodeId
    ) -> bool:
        """A shard has answered; the last one completes the answer."""
        call = self._calls.pending.get(first)
        if call is None or group not in call.groups:
            return False
        parts = self._parts.setdefault(first, {})
        parts[group] = results
        if len(parts) < len(call.groups):
            return True
        del self._parts[first]
        return self._settle(first, self._combine(call, parts), stamp, replica)

    def on_own_message(self, source: NodeId, message: Message) -> None:
        """Take a reply, or an answer that is certain."""
        if not isinstance(message, LateAnswer):
            super().on_own_message(source, message)
        elif source not in self._homes:
            raise RemoteError(f"node {source} sent an answer to a client, but is no replica")
        elif message.first in self._calls.pending:
            group = self._homes[source]
            self._replies[group].forget(message.first)
            self._settle_in(group, message.first, message.results, Stamp(*message.place), source)

    def _combine(self, call: Pending, parts: Mapping[GroupId, bytes]) -> bytes:
        """The results of a call from those of its shards; without a service, they are all empty."""
        in_order = [parts[group] for group in sorted(parts)]
        if self._sharding is None or len(in_order) == 1:
            return in_order[0]
        return combine_results(self._sharding, call.bundle, in_order)

    def on_own_timer(self, name: str) -> None:
        """Repeat calls, and forget those that were given up."""
        super().on_own_timer(name)
        for first in [first for first in self._parts if first not in self._calls.pending]:
            del self._parts[first]

    def _waits(self) -> list[Wait]:
        """The calls without an answer, each with the shards that have not answered."""
        calls = self._calls
        return [
            calls.wait_of(call, _blocker(self._lacking(call)), self._nodes_of(self._lacking(call)))
            for call in calls.pending.values()
        ]

    def _nodes_of(self, groups: Groups) -> tuple[NodeId, ...]:
        return tuple(node for group in groups for node in self._groups[group])


def _blocker(lacking: Groups) -> str:
    shards = ", ".join(map(str, lacking))
    return f"equal replies of a majority of shard {shards}, with the leader's"
