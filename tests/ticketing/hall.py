"""Members with tickets on a view-synchronous layer that a test drives by hand.

Each pair of members has a channel. Messages arrive, views change and members crash when a test says so. When
a view changes, every survivor first gets what any survivor has got of each member.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, cast

from ordercast.components.membership import InstalledView, ViewSynchrony
from ordercast.components.ticketing import (
    AdaptiveMember,
    AdaptiveOptions,
    Setting,
    TicketMember,
    TicketOptions,
)
from ordercast.core import Delivered, Env, Explanation, Message, NodeId, Process, Unconfirmed, View
from ordercast.testing import ProcessDriver, RecordingEnv


class Layer(Process):
    """The view-synchronous layer of one member, as far as the member sees it."""

    def __init__(
        self, env: Env, hall: "Hall", snapshot: Callable[[], bytes], restore: Callable[[bytes], None]
    ) -> None:
        super().__init__(env)
        self.hall = hall
        self.snapshot = snapshot
        self.restore = restore
        self.view: InstalledView | None = None
        self.wants = self.receives = (0,)
        self.is_out = self.saw_all = False
        self.queue: list[bytes] = []
        self.closed = False
        """A view is changing: what is multicast waits for the next one."""
        self.full = False
        """Its window is full: what is multicast waits, in a new view too."""

    def multicast(self, payload: bytes) -> bool:
        """Send to all members; queue it while a view changes or the window is full."""
        if self.view is None:
            return False
        if self.closed or self.full:
            self.queue.append(payload)
        else:
            self.send(payload)
        return True

    def send(self, payload: bytes) -> None:
        me, view = self.env.me, self.view
        assert view is not None
        for node in view.members:
            if node != me:
                self.hall.channels[me, node].append(payload)
        self.hall.sent[me].append(payload)
        self.env.deliver(Delivered(payload, (0,), me, None, view.number))

    def install(self, number: int, members: tuple[NodeId, ...], newcomers: tuple[NodeId, ...]) -> None:
        """Install a view."""
        self.newest = InstalledView(number, members, newcomers, members, ((0,),) * len(members))
        self.view = self.newest if self.env.me in members else None
        self.closed = False
        self.env.deliver(View(0, number, members))

    def flush(self) -> None:
        """Send what waited for the view."""
        queue, self.queue = self.queue, []
        for payload in queue:
            self.send(payload)

    def on_message(self, source: NodeId, message: Message) -> None:
        """Nothing comes this way."""

    def explain(self) -> Explanation:
        """Nothing to say."""
        return Explanation({})


class Hall:
    """Some members and the channels between them."""

    def __init__(
        self,
        count: int,
        actives: Iterable[NodeId],
        options: TicketOptions | None = None,
        begin: bool = True,
        **changes: Any,
    ) -> None:
        chosen = options or TicketOptions(**changes)
        everybody = tuple(range(count))
        self.setting = Setting((0,), chosen, frozenset(actives), {}, probes=False)
        self.channels: dict[tuple[NodeId, NodeId], deque[bytes]] = {
            (one, other): deque() for one in everybody for other in everybody
        }
        self.got: dict[tuple[NodeId, NodeId], int] = {}
        self.sent: dict[NodeId, list[bytes]] = {node: [] for node in everybody}
        self.drivers = {node: self._make(node) for node in everybody}
        self.words: dict[NodeId, list[tuple[int, str]]] = {node: [] for node in everybody}
        """What each application got, with the view in which it got it."""
        self.returned: list[str] = []
        """Messages of which their sender was told that they may be lost."""
        self.went_on: dict[int, list[NodeId]] = {}
        """The members that went on from each view to the next."""
        self.number = 0
        self.members: tuple[NodeId, ...] = ()
        self.up = set(everybody)
        if begin:
            self.change(everybody)

    def _make(self, node: NodeId) -> ProcessDriver[TicketMember]:
        def make_views(env: Env, snapshot: Any, restore: Any) -> ViewSynchrony:
            return cast(ViewSynchrony, Layer(env, self, snapshot, restore))

        def make(env: Env) -> TicketMember:
            if isinstance(self.setting.options, AdaptiveOptions):
                return AdaptiveMember(env, self.setting, self.setting.options, make_views)
            return TicketMember(env, self.setting, make_views)

        return ProcessDriver(make, env=RecordingEnv(node, now=1_000_000 * (node + 1)))

    def member(self, node: NodeId) -> TicketMember:
        """The member at a node."""
        return self.drivers[node].process

    def layer(self, node: NodeId) -> Layer:
        """The layer below a member."""
        return cast(Layer, self.member(node).views)

    def say(self, node: NodeId, *words: str) -> None:
        """Submit messages at a member."""
        for word in words:
            assert self.member(node).submit((0,), word.encode())

    def do(self, node: NodeId, what: Callable[[TicketMember], None]) -> None:
        """Let a member do something, and send what follows."""
        what(self.member(node))
        self.member(node).conclude()

    def step(self, sender: NodeId, receiver: NodeId) -> bool:
        """Let one message arrive, if one is under way."""
        channel = self.channels[sender, receiver]
        if not channel or receiver not in self.up or self.layer(receiver).closed:
            return False
        self._arrive(sender, receiver, channel.popleft())
        self.member(receiver).conclude()
        return True

    def _arrive(self, sender: NodeId, receiver: NodeId, payload: bytes) -> None:
        self.got[sender, receiver] = self.got.get((sender, receiver), 0) + 1
        layer = self.layer(receiver)
        layer.env.deliver(Delivered(payload, (0,), sender, None, self.number))

    def flow(self) -> None:
        """Let everything arrive, and time pass, until nothing happens any more."""
        for _ in range(50):
            while sum(self.step(*pair) for pair in self.channels):
                pass
            for node in sorted(self.up):
                self.drivers[node].pass_time(3_000_000)
            self.carry()

    def carry(self) -> None:
        """Let all signals arrive."""
        for node in sorted(self.up):
            for target, signal in self.drivers[node].take_sent():
                if target in self.up:
                    self.drivers[target].receive(node, signal)

    def crash(self, *nodes: NodeId) -> None:
        """Stop members; what they sent and nobody got is lost."""
        self.up -= set(nodes)

    def stop(self) -> None:
        """A change of the view begins: nobody sends or delivers."""
        for node in self.members:
            self.layer(node).closed = True

    def change(
        self, members: Iterable[NodeId], newcomers: Iterable[NodeId] = (), leaving: Iterable[NodeId] = ()
    ) -> None:
        """Install a view at its members, and at those that are up and left out. Those that leave by their own
        wish get what the others have of the view before."""
        before, self.members = self.members, tuple(sorted(members))
        fresh = {*newcomers} | {node for node in self.members if node not in before}
        stay = [node for node in self.members if node not in fresh]
        self._cut(before, [*stay, *leaving])
        for node in leaving:
            self.layer(node).saw_all = True
        self.went_on[self.number] = stay
        state = self.layer(stay[0]).snapshot() if stay else b""
        self.number += 1
        for pair in self.channels:
            self.channels[pair].clear()
        self.got.clear()
        for node in self.sent:
            self.sent[node].clear()
        for node in sorted(self.up & {*before, *self.members}):
            if node in fresh and before:
                if self.layer(node).view is not None:
                    self.layer(node).install(self.number, (), ())
                self.layer(node).restore(state)
            self.layer(node).install(self.number, self.members, tuple(sorted(fresh)) if before else ())
        for node in self.members:
            if node in self.up:
                self.go_on(node)

    def fill(self, node: NodeId) -> None:
        """Let the window of a member's layer be full."""
        self.layer(node).full = True

    def drain(self, node: NodeId) -> None:
        """Let the layer of a member send what waits, and all that follows."""
        self.layer(node).full = False
        self.go_on(node)

    def go_on(self, node: NodeId) -> None:
        """Send what waited, unless the window is full."""
        if not self.layer(node).full:
            self.layer(node).flush()
        self.member(node).conclude()

    def _cut(self, before: tuple[NodeId, ...], stay: list[NodeId]) -> None:
        for sender in before:
            held = {node: self.got.get((sender, node), 0) for node in stay}
            if sender in stay:
                held[sender] = len(self.sent[sender])
            most = max(held.values(), default=0)
            for node in stay:
                if node != sender:
                    for payload in self.sent[sender][held[node] : most]:
                        self._arrive(sender, node, payload)

    def take(self, node: NodeId) -> list[tuple[int, str]]:
        """What the application of a node has got so far, with views."""
        for delivery in self.drivers[node].take_delivered():
            if isinstance(delivery, Unconfirmed):
                self.returned.append(delivery.payload.decode())
            if isinstance(delivery, Delivered):
                self.words[node].append((delivery.config, delivery.payload.decode()))
        return self.words[node]

    def heard(self, node: NodeId) -> list[str]:
        """What the application of a node has got so far."""
        return [word for _, word in self.take(node)]

    def modes(self) -> list[str]:
        """The modes of all members that are up."""
        return [self.member(node).mode.value for node in sorted(self.up)]

    def log(self) -> list[str]:
        """What the group delivered: in each view, what those who went on delivered, which must be the
        same."""
        found: list[str] = []
        self.went_on[self.number] = [node for node in self.members if node in self.up]
        for view, nodes in sorted(self.went_on.items()):
            heard = [[word for seen, word in self.take(node) if seen == view] for node in nodes]
            assert all(words == heard[0] for words in heard), (
                f"view {view}: {dict(zip(nodes, heard, strict=True))}"
            )
            found += heard[0] if heard else []
        return found
