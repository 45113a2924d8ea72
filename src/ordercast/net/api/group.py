"""A live group as applications use it: send messages, and take deliveries in order.

async with ordercast.join("cluster.toml", group="orders") as group:
    await group.send(b"...")
    async for delivery in group:
        ...
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Self
from weakref import WeakSet

from ordercast.core import (
    GroupId,
    Groups,
    LocalError,
    Membership,
    MessageId,
    NodeId,
    Notice,
    Receiver,
    StateWanted,
    Unconfirmed,
    message_name,
)
from ordercast.core.bundle import unpack
from ordercast.kernel.memberships import Request
from ordercast.net.api.inbox import Inbox
from ordercast.net.api.pending import PENDING_MAX, Pending, pending_messages
from ordercast.net.api.received import LiveDelivery, LiveMessage, message_type
from ordercast.net.host.delivered import DeliveredBundle
from ordercast.net.host.live_host import LiveHost
from ordercast.trace import CHANGING, KIND_OF

CLOSE_S = 5.0
"""How long a closing group waits for its backlog to be sent."""

UNDER_WAY_BYTES = 64 << 20
"""More bytes than all hosts together have in queues, windows and buffers when they are told to slow down."""

_new = tuple.__new__


class UnconfirmedError(LocalError):
    """It is not known what became of earlier messages, and they are not sent again."""

    def __init__(self, messages: Sequence[MessageId]) -> None:
        self.messages = tuple(messages)
        """Their identities, as `send` returned them."""
        named = ", ".join(message_name(message) for message in self.messages[:5])
        more = f" and {len(self.messages) - 5} more" if len(self.messages) > 5 else ""
        super().__init__(
            f"nobody may have received {named}{more}: it is not known what became of them; send those again"
            " that may arrive twice"
        )


class Group:
    """One member of a group: a sender, a receiver, or both, on one host."""

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
        self._inbox = Inbox(inbox_bytes, host.strain, UNDER_WAY_BYTES)
        self._takers: WeakSet[asyncio.Task[Any]] = WeakSet()
        """Tasks that take deliveries."""
        self._texts: dict[Groups, tuple[str, ...]] = {}
        self._opened: deque[LiveMessage] = deque()
        self._effects: dict[GroupId, asyncio.Future[None]] = {}
        """Who waits until the receiver has joined or left a group."""
        self._returned: list[MessageId] = []
        """Messages that nobody may have, which the application of a mere sender has not been told yet."""

    async def send(self, payload: bytes, to: Sequence[str] = ()) -> MessageId:
        """Send a message to the group, or to several; returns its identity.

        In a group that only sends, it raises `UnconfirmedError` and sends nothing if nobody may have earlier
        messages. A group that also receives gets an `Unconfirmed` among its deliveries instead.

        `send` waits while the backlog is full or some receiver cannot keep up. If the slow receiver is the
        sending task itself, because it answers what it takes, `send` does not wait: others wait for it.
        """
        return await self.send_many((payload,), to)

    async def send_many(self, payloads: Sequence[bytes], to: Sequence[str] = ()) -> MessageId:
        """Send messages in this order; returns the identity of the first; the others have the next ones."""
        return await self.send_from(payloads, to, taker=asyncio.current_task() in self._takers)

    async def send_from(self, payloads: Sequence[bytes], to: Sequence[str], *, taker: bool) -> MessageId:
        """Send messages for a caller; `taker` says whether the caller also takes deliveries."""
        groups, sender = self._groups(to), self._sender()
        while True:
            self._check_returned()
            # A taker that waited for room, while it is what everybody waits for, would wait for ever.
            urgent = taker and self._inbox.strained
            first = self.host.submit(sender, groups, payloads, urgent=urgent)
            if first is not None:
                return first
            self._check()
            await self.host.wait_for_room()

    def send_nowait(self, payload: bytes, to: Sequence[str] = ()) -> MessageId | None:
        """Send a message if there is room for it now; None otherwise."""
        self._check()
        self._check_returned()
        return self.host.submit(self._sender(), self._groups(to), (payload,))

    async def receive(self) -> LiveDelivery | None:
        """The next delivery; None when the group is closed. Cancelling it loses nothing."""
        opened = self._opened
        while not opened:
            delivered = await self.receive_bundle()
            if not isinstance(delivered, DeliveredBundle):
                return delivered
            opened.extend(self.open(delivered))
        return opened.popleft()

    async def receive_bundle(self) -> DeliveredBundle | Notice | None:
        """The next bundle of messages, or a notice: the fast way to take many messages."""
        if self.receiver is None:
            raise LocalError("this host has no receiver of the group; it can only send")
        if (task := asyncio.current_task()) is not None:
            self._takers.add(task)
        return await self._inbox.get()

    def __aiter__(self) -> Self:
        """Iterate over all deliveries until the group is closed."""
        return self

    async def __anext__(self) -> LiveDelivery:
        """The next delivery."""
        delivery = await self.receive()
        if delivery is None:
            raise StopAsyncIteration
        return delivery

    def open(self, delivered: DeliveredBundle) -> list[LiveMessage]:
        """The messages of a bundle."""
        delivery, (first, times, payloads), _ = delivered
        groups = self._texts.get(delivery.groups)
        if groups is None:
            groups = self._texts[delivery.groups] = tuple(self._names[group] for group in delivery.groups)
        sender, stamp, config = delivery.sender, delivery.stamp, delivery.config
        kind = message_type(delivery)
        return [
            _new(kind, (message, payload, sender, groups, stamp, config, submitted))
            for message, (submitted, payload) in enumerate(zip(times, payloads, strict=True), first)
        ]

    def pending(self, limit: int = PENDING_MAX) -> list[Pending]:
        """The first `limit` messages of the group that are known here and not delivered yet.

        An application that need not wait for the order may act on them early, or on those that all members
        know with a probability that it accepts (EpTO section 8.4). If the protocol knows their order, they
        come in the order in which they would be delivered; other messages may still come between them.
        """
        if self.receiver is None:
            raise LocalError("this host has no receiver of the group; it can only send")
        self._check()
        return pending_messages(self.host.explain_node(self.receiver), self._own[0], limit)

    @property
    def joined(self) -> tuple[str, ...]:
        """The groups that the receiver is in now; those of the cluster file if they are fixed."""
        if self.receiver is None:
            return ()
        plan, process = self.host.plan, self.host.nodes[self.receiver].process
        if plan.guarantees.membership is not Membership.FIXED and isinstance(process, Receiver):
            return tuple(self._names[group] for group in sorted(process.joined))
        return tuple(self._names[group] for group, own in plan.groups.items() if self.receiver in own)

    async def join(self, group: str = "") -> None:
        """Receive a group too, by default this one; returns when that has taken effect.

        Its messages come among the other deliveries, after a `Joined` that says from which place on. Raises
        `LocalError` if the groups of the protocol are fixed, or the receiver is in the group.
        """
        await self._change("join", group)

    async def leave(self, group: str = "") -> None:
        """Receive a group no longer, by default this one; returns when that has taken effect.

        The last delivery of the group is a `Left`. Other deliveries go on, and one can still send. Raises
        `LocalError` if the groups of the protocol are fixed, or the receiver is not in the group.
        """
        await self._change("leave", group)

    async def give_state(self, wanted: StateWanted, data: bytes) -> None:
        """Give the state that `wanted` asked for, as it was when that delivery was taken.

        Raises `LocalError` if it was given already, is too large, or was never asked for.
        """
        if self.receiver is None:
            raise LocalError("this host has no receiver of the group; it can only send")
        self._check()
        self.host.give_state(self.receiver, wanted, data)

    async def _change(self, request: Request, name: str) -> None:
        if self.receiver is None:
            raise LocalError("this host has no receiver of the group; it can only send")
        self._check()
        (group,) = self._groups((name,) if name else ())
        getattr(self.host, request)(self.receiver, group)
        effect = self._effects[group] = asyncio.get_running_loop().create_future()
        await effect

    def _on_receiver(self, delivered: DeliveredBundle | Notice) -> None:
        self._inbox.put(delivered)
        if not isinstance(delivered, DeliveredBundle) and KIND_OF[type(delivered)] in CHANGING:
            effect = self._effects.pop(delivered.group, None)
            if effect is not None and not effect.done():
                effect.set_result(None)

    def _give_up(self, error: LocalError) -> None:
        """Let nobody wait for a change that will not take effect any more."""
        for effect in self._effects.values():
            if not effect.done():
                effect.set_exception(error)
        self._effects.clear()

    async def start(self) -> None:
        """Start the host, and pass its deliveries to the inbox."""
        if self.receiver is not None:
            self.host.add_listener(self.receiver, self._on_receiver)
        if self.sender is not None and self.sender != self.receiver:
            self.host.add_listener(self.sender, self._on_sender)
        self.host.on_failure(self._fail)
        self.host.each_second(self._note_waiting)
        await self.host.start()

    def _on_sender(self, delivered: DeliveredBundle | Notice) -> None:
        """The sender tells that nobody may have some messages."""
        if self.receiver is not None:
            self._inbox.put(delivered)
        elif isinstance(delivered, Unconfirmed):
            self._returned += [item.message for item in unpack(delivered.payload)]

    def _check_returned(self) -> None:
        if self._returned:
            messages, self._returned = self._returned, []
            raise UnconfirmedError(messages)

    def _note_waiting(self) -> None:
        self.host.metrics.inbox_bytes = self._inbox.waiting

    async def close(self) -> None:
        """Send the backlog, and stop the host. Earlier deliveries can still be taken.

        Raises `LocalError` if some messages could not be sent: no message is lost silently.
        """
        self._inbox.close()
        self._give_up(LocalError("the group is closed"))
        try:
            drained = await self.host.drain(CLOSE_S)
        finally:
            await self.host.stop()
        if not drained and not self.host.metrics.backlog_messages:
            raise LocalError(
                f"the last messages were sent, but for {CLOSE_S:g} s nobody has told that they arrived;"
                " check that the cluster is up"
            )
        if not drained:
            raise LocalError(
                f"{self.host.metrics.backlog_messages} messages were not sent: the cluster accepted none for"
                f" {CLOSE_S:g} s; check that it is up, and run `ordercast why` to see what they wait for"
            )
        self._check_returned()

    def _fail(self, error: BaseException) -> None:
        self._inbox.close(LocalError(f"the host has stopped: {error}"))
        self._give_up(LocalError(f"the host has stopped: {error}"))

    def end(self) -> None:
        """End the deliveries, so that the application can end."""
        self._inbox.close()

    def _sender(self) -> NodeId:
        if self.sender is None:
            raise LocalError("this host has no sender; it can only receive")
        return self.sender

    def _groups(self, to: Sequence[str]) -> Groups:
        if not to:
            return self._own
        unknown = [name for name in to if name not in self._names]
        if unknown:
            raise LocalError(f"there is no group '{unknown[0]}'; the groups are: {', '.join(self._names)}")
        return tuple(sorted({self._names.index(name) for name in to}))

    def _check(self) -> None:
        if self.host.failure is not None:
            raise LocalError(f"the host has stopped: {self.host.failure}") from self.host.failure
        if not self.host.running:
            raise LocalError("the group is closed")
