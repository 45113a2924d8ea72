"""Fates of numbered packets: whether a packet that a receiver calls dropped was lost, late, or had come.

Only a plan that promises to notify of gaps is followed, and only if its messages say which numbers they carry
(`Message.numbered`). The fate of the packet becomes the label of the notification's row, so that judges need
to know nothing about packets.

A receiver need not keep every packet that comes (Hydra sections 4.3 and 4.4). A packet counts as refused

- if its place in the order had passed when it came;
- if it came before the view that adds its issuer: until then it is the packet of a stranger;
- if it came before the view with which a new member begins, which adds and removes nobody;
- if its receiver had heard that its issuer is being removed: what was reported of the issuer stands, and a
  packet to several groups counts only if all of them settle it;
- if its receiver held as many packets as it may.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ordercast.core import (
    CARRIERS,
    Carrier,
    Delivery,
    Dropped,
    Gaps,
    GroupId,
    Message,
    NodeId,
    Notice,
    Numbered,
    Plan,
    View,
)
from ordercast.kernel.backlog import Backlog
from ordercast.scenario.clock import Clock
from ordercast.sim.host import Host
from ordercast.sim.node_env import NodeEnv
from ordercast.trace import ADDED, Event, Fate

if TYPE_CHECKING:
    from random import Random

    from ordercast.sim.world import World

Lane: TypeAlias = tuple[int, GroupId]
"""An issuer and a group, for which it counts."""
Slot: TypeAlias = tuple[int, GroupId, int]
"""A number of a lane."""

BEFORE = (-1, -1)
"""Before every stamp."""


class Followed(NamedTuple):
    """Which messages of a plan are followed, and which numbers were sent."""

    numbered: frozenset[type[Message]]
    closing: frozenset[type[Message]]
    sent: dict[Lane, set[int]]

    def note_sent(self, packet: Numbered) -> None:
        """Note that a packet was sent."""
        issuer, _, groups, numbers = packet
        for group, number in zip(groups, numbers, strict=False):
            self.sent.setdefault((issuer, group), set()).add(number)


def followed(plan: Plan) -> Followed | None:
    """What is followed in a run of a plan; None if drops are not promised, or nothing has a number."""
    if plan.guarantees.gaps is not Gaps.NOTIFIED:
        return None
    kinds = plan.codec.types
    numbered = frozenset(kind for kind in kinds if kind.numbered is not Message.numbered)
    closing = frozenset(kind for kind in kinds if kind.closes is not Message.closes)
    return Followed(numbered, closing, {}) if numbered else None


class Fates:
    """The numbered packets that came to one node in its present life."""

    def __init__(self, groups: Collection[GroupId], held_max: int, sent: dict[Lane, set[int]]) -> None:
        self._groups = frozenset(groups)
        self._held_max = held_max
        self._sent = sent
        self._came: dict[Lane, set[int]] = {}
        self._refused: set[Slot] = set()
        self._closed: set[int] = set()
        self._held = 0
        """Packets that came and were not delivered; the node holds no more than these."""
        self._last: tuple[int, int] = BEFORE
        """The stamp of the last delivery."""

    def come(self, packet: Numbered) -> None:
        """A packet is handed to the process."""
        issuer, clock, groups, numbers = packet
        keeps = (clock, issuer) > self._last and self._held < self._held_max
        for group, number in zip(groups, numbers, strict=False):
            if group in self._groups:
                came = self._came.get((issuer, group))
                if came is None:
                    came = self._came[issuer, group] = set()
                if number not in came:
                    came.add(number)
                    self._held += 1
                    if not keeps:
                        self._refused.add((issuer, group, number))
                elif keeps and self._refused:
                    self._refused.discard((issuer, group, number))

    def close(self, issuers: Sequence[int]) -> None:
        """The process hears that these issuers are being removed."""
        self._closed.update(issuers)

    def deliver(self, delivery: Carrier) -> None:
        """The process delivers a packet."""
        self._held -= 1
        if delivery.stamp is not None:
            self._last = (delivery.stamp.clock, delivery.stamp.issuer)

    def install(self, view: View) -> None:
        """The process installs a view. It need not keep what came from an issuer before that was added, nor
        what came before it began as a new member."""
        for lane in list(self._came):
            added = view.change == ADDED and view.stamp is not None and lane[0] == view.stamp.issuer
            if (added or not view.change) and lane[1] == view.group:
                self._refused.update((*lane, number) for number in self._came[lane])

    def drop(self, slot: Slot) -> Fate:
        """The fate of the packet that the process calls dropped."""
        lane, number = slot[:2], slot[2]
        if number in self._came.get(lane, ()):
            self._held -= 1
            excused = lane[0] in self._closed or slot in self._refused
            return Fate.REFUSED if excused else Fate.RECEIVED
        return Fate.LOST if number in self._sent.get(lane, ()) else Fate.UNSENT

    def crash(self) -> None:
        """The node crashes. What it had been told, and its place in the order, it may have saved."""
        self._came.clear()
        self._refused.clear()
        self._held = 0

    def lose_state(self) -> None:
        """The node comes back as a new one."""
        self._closed.clear()
        self._last = BEFORE


class FateEnv(NodeEnv):
    """The simulator's side of a process whose numbered packets are followed."""

    __slots__ = ("_fates", "_followed", "_missing", "_process_message")

    def __init__(
        self,
        world: World,
        node: NodeId,
        host: Host,
        clock: Clock | None,
        backlog: Backlog,
        *,
        watched: bool,
        followed: Followed,
    ) -> None:
        super().__init__(world, node, host, clock, backlog, watched=watched)
        groups = [group for group, members in world.plan.groups.items() if node in members]
        self._followed = followed
        self._fates = Fates(groups, world.plan.packets_held_max, followed.sent)
        self._missing: dict[Slot, int] = {}
        """The rows of notifications whose packet has not come."""

    def send(self, to: NodeId, message: Message) -> None:
        """Note the numbers of what is sent."""
        self._note_sent(message)
        super().send(to, message)

    def multicast(self, to: Sequence[NodeId], message: Message) -> None:
        """Note the numbers of what is sent."""
        self._note_sent(message)
        super().multicast(to, message)

    def _note_sent(self, message: Message) -> None:
        if type(message) in self._followed.numbered:
            packet = message.numbered()
            if packet is not None:
                self._followed.note_sent(packet)

    def deliver(self, delivery: Delivery) -> None:
        """Note what is delivered and installed, and say what became of a packet that is called dropped."""
        if isinstance(delivery, CARRIERS):
            self._fates.deliver(delivery)
        elif isinstance(delivery, Dropped):
            for notice in delivery.singles():
                self._drop(notice)
            return
        elif isinstance(delivery, View):
            self._fates.install(delivery)
        super().deliver(delivery)

    def _drop(self, notice: Notice) -> None:
        assert isinstance(notice, Dropped)
        slot = (notice.issuer, notice.group, notice.number)
        fate = self._fates.drop(slot)
        rows = self._world.rows
        super().deliver(notice)
        if fate is Fate.LOST:
            self._missing[slot] = len(rows) - 1
        self._label(len(rows) - 1, fate)

    def _label(self, row: int, fate: Fate) -> None:
        rows = self._world.rows
        rows[row] = Event._make(rows[row])._replace(label=fate)

    def stop(self, rng: Random) -> None:
        """Forget the packets of this life."""
        super().stop(rng)
        self._fates.crash()

    def lose_state(self) -> None:
        """Forget everything."""
        super().lose_state()
        self._fates.lose_state()

    def _start(self) -> None:
        super()._start()
        self._process_message, self._on_message = self._on_message, self._follow

    def _follow(self, source: NodeId, message: Message) -> None:
        """Note the numbers of what comes."""
        kind = type(message)
        if kind in self._followed.numbered:
            packet = message.numbered()
            if packet is not None:
                self._fates.come(packet)
                if self._missing:
                    self._find(packet)
        elif kind in self._followed.closing:
            self._fates.close(message.closes())
        self._process_message(source, message)

    def _find(self, packet: Numbered) -> None:
        """A packet that was called dropped has come after all."""
        issuer, _, groups, numbers = packet
        for group, number in zip(groups, numbers, strict=False):
            row = self._missing.pop((issuer, group, number), None)
            if row is not None:
                self._label(row, Fate.LATE)
