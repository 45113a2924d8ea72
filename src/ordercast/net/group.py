"""The face of a live group for applications: send, and take what is delivered, in order.

async with ordercast.join("cluster.toml", group="orders") as group:
    await group.send(b"...")
    async for delivery in group:
        ...
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, TypeAlias

from ordercast.core import (
    Delivered,
    Dropped,
    GroupId,
    Groups,
    HostId,
    LocalError,
    MessageId,
    Nanos,
    NodeId,
    Stamp,
    View,
    message_name,
)
from ordercast.net.cluster import Cluster
from ordercast.net.cluster_file import load_cluster
from ordercast.net.host import Batch, LiveHost
from ordercast.net.inbox import Inbox
from ordercast.net.opening import open_host

CLOSE_S = 5.0
"""How long a closing group waits for what was sent to leave."""

_new = tuple.__new__


class Received(NamedTuple):
    """A message that was delivered."""

    message: MessageId
    """Its identity: what `send` returned to its sender."""
    payload: bytes
    sender: NodeId
    groups: tuple[str, ...]
    stamp: Stamp | None
    """Its place in the protocol's order."""
    config: int
    submitted_ns: Nanos
    """When it was sent, by the clock of its sender."""
    in_order: bool = True
    """False: its place in the order had passed, where a protocol delivers such messages at all."""

    @property
    def name(self) -> str:
        """Its identity as people write it: ``3#17``."""
        return message_name(self.message)


LiveDelivery: TypeAlias = Received | Dropped | View
"""What a group delivers: messages, notice of messages that will not come, and changes of configuration."""


class Group:
    """One member of a group: a sender and a receiver on one host, or one of both."""

    def __init__(
        self,
        host: LiveHost,
        names: Sequence[str],
        group: GroupId,
        sender: NodeId | None,
        receiver: NodeId | None,
        inbox_bytes: int,
    ) -> None:
        self.host = host
        self.sender = sender
        self.receiver = receiver
        self._names = list(names)
        self._own: Groups = (group,)
        self._inbox = Inbox(inbox_bytes, host.wire.strain)
        self._texts: dict[Groups, tuple[str, ...]] = {}
        self._iterator: AsyncIterator[LiveDelivery] | None = None

    async def send(self, payload: bytes, to: Sequence[str] = ()) -> MessageId:
        """Send a message to the group, or to several; returns its identity.

        It waits while too much waits to be sent, or some receiver cannot keep up.
        """
        return await self.send_many((payload,), to)

    async def send_many(self, payloads: Sequence[bytes], to: Sequence[str] = ()) -> MessageId:
        """Send messages, in this order; returns the identity of the first, the others follow it."""
        groups = self._groups(to)
        while (first := self.host.submit(self._sender(), groups, payloads)) is None:
            self._check()
            self.host.room.clear()
            await self.host.room.wait()
        return first

    def send_nowait(self, payload: bytes, to: Sequence[str] = ()) -> MessageId | None:
        """Send a message if there is room for it now; None otherwise."""
        self._check()
        return self.host.submit(self._sender(), self._groups(to), (payload,))

    def __aiter__(self) -> AsyncIterator[LiveDelivery]:
        """All that is delivered, one by one, until the group is closed."""
        if self.receiver is None:
            raise LocalError("this host has no receiver of the group: it can only send")
        if self._iterator is None:
            self._iterator = self._deliveries()
        return self._iterator

    async def __anext__(self) -> LiveDelivery:
        """The next delivery."""
        return await anext(aiter(self))

    async def _deliveries(self) -> AsyncIterator[LiveDelivery]:
        async for heard in self.batches():
            if type(heard) is not Batch:
                assert isinstance(heard, Dropped | View)
                yield heard
                continue
            for received in self.open(heard):
                yield received

    async def batches(self) -> AsyncIterator[Batch | Dropped | View]:
        """All that is delivered, packet by packet: the fast way for those who take many."""
        while (heard := await self._inbox.get()) is not None:
            yield heard

    def open(self, batch: Batch) -> list[Received]:
        """The messages of a packet."""
        delivery, (first, times, payloads), _ = batch
        groups = self._texts.get(delivery.groups)
        if groups is None:
            groups = self._texts[delivery.groups] = tuple(self._names[group] for group in delivery.groups)
        sender, stamp, config = delivery.sender, delivery.stamp, delivery.config
        in_order = type(delivery) is Delivered
        return [
            _new(Received, (message, payload, sender, groups, stamp, config, submitted, in_order))
            for message, (submitted, payload) in enumerate(zip(times, payloads, strict=True), first)
        ]

    async def start(self) -> None:
        """Take part."""
        if self.receiver is not None:
            self.host.add_listener(self.receiver, self._inbox.put)
        await self.host.start()

    async def close(self) -> None:
        """Send what waits, and leave."""
        await self.host.drain(CLOSE_S)
        await self.host.stop()
        self._inbox.close()

    def _sender(self) -> NodeId:
        if self.sender is None:
            raise LocalError("this host has no sender: it can only receive")
        return self.sender

    def _groups(self, to: Sequence[str]) -> Groups:
        if not to:
            return self._own
        unknown = [name for name in to if name not in self._names]
        if unknown:
            raise LocalError(f"there is no group '{unknown[0]}'; there are: {', '.join(self._names)}")
        return tuple(sorted({self._names.index(name) for name in to}))

    def _check(self) -> None:
        if self.host.failure is not None:
            raise LocalError(f"the host has stopped: {self.host.failure}") from self.host.failure
        if not self.host.running:
            raise LocalError("the group is closed")


class Joining:
    """What `join` returns: the group, once it is entered."""

    def __init__(self, file: Path, group: str, host: HostId | None) -> None:
        self._file = file
        self._name = group
        self._host = host
        self._group: Group | None = None

    async def __aenter__(self) -> Group:
        """Start the host, and take part."""
        cluster = load_cluster(self._file)
        self._group = open_group(cluster, self._name, self._host)
        await self._group.start()
        return self._group

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send what waits, and leave."""
        assert self._group is not None
        await self._group.close()


def join(file: str | Path, group: str, *, host: HostId | None = None) -> Joining:
    """Take part in a group of a cluster, as the host that is named or the first that is free here."""
    return Joining(Path(file), group, host)


def open_group(cluster: Cluster, name: str, host: HostId | None = None) -> Group:
    """The member of a group on a host, which is not started yet."""
    names = list(cluster.groups)
    if name not in cluster.groups:
        raise LocalError(f"there is no group '{name}'; there are: {', '.join(names)}")
    plan = cluster.plan()
    members = cluster.groups[name]
    if host is None:
        host = plan.nodes[members[0]].host
    live = open_host(cluster, host, plan=plan)
    sender = next((node for node in plan.senders if plan.nodes[node].host == host), None)
    receiver = next((node for node in members if plan.nodes[node].host == host), None)
    if sender is None and receiver is None:
        raise LocalError(f"host {host} has neither a sender nor a receiver of group '{name}'")
    return Group(live, names, names.index(name), sender, receiver, cluster.inbox_bytes)


__all__ = ["Group", "Joining", "LiveDelivery", "Received", "join", "open_group"]
