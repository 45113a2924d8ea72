"""Messages on a sequencing graph, without a network: FIFO channels, any interleaving, changes on the way.

This says what the graph promises to a protocol, and what the protocol must do when it changes:

- Each change of a group has a marker in the order of that group. It goes past all atoms of the group, and all
  number it: also those that number the group from here on, and those that do so for the last time.
- The marker learns at each atom how far the other groups have gone past it. Who is in them delivers the
  marker after those.
- If the first atom of a group moves down, all that is on the way to the new one arrives there first.
- Markers are apart: one enters when all that was on the way when the last one left has left too.
- A subscription is over when the newcomer has come to its marker. No other change begins before.
- Receivers take the markers of the groups that they are in, in the order of the changes, and so their own.
- Who leaves a group takes all numbers of its atoms until it comes to the marker; then it forgets them.
- A newcomer may have delivered messages that the marker comes before. It skips what it cannot order any more.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from ordercast.components.sequencing_graph import (
    AttachAtom,
    CloseGroup,
    DetachAtom,
    ExtendAtom,
    FoundGroup,
    InsertAtom,
    LeaveAtom,
    OpenGroup,
    RetireAtom,
    SequencingGraph,
    Step,
    Subscribe,
    Unsubscribe,
)


@dataclass(eq=False)
class Packet:
    """One message, or the marker of a change, with what it collects."""

    group: int
    local: int
    name: int
    change: Step | None = None
    stamps: dict[int, tuple[int, frozenset[int]]] = field(default_factory=dict)
    """By atom: its number, and to whom it is relevant."""
    passed: dict[int, int] = field(default_factory=dict)
    """By group: the last local number that had gone past an atom of this group."""
    turns: dict[int, int] = field(default_factory=dict)
    """For those whose groups a change changes: how many such changes came before."""
    left: bool = False
    """Whether it has left the last atom."""


class Flow:
    """A graph in which messages are on the way, and the receivers that they go to."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.graph = SequencingGraph()
        self.channels: dict[tuple[int, int], deque[Packet]] = {}
        self.numbers: dict[int, int] = {}
        self.numbered: dict[int, dict[int, int]] = {}
        """Of each atom: the groups that it numbers, each with the last local number that went past it."""
        self.relevant: dict[int, frozenset[int]] = {}
        self.locals: dict[int, int] = {}
        self.audience: dict[int, frozenset[int]] = {}
        self.copies: list[tuple[int, Packet]] = []
        self.receivers: dict[int, Receiver] = {}
        self.names = 0
        self.closing: int | None = None
        self.turns: dict[int, int] = {}
        self.marked: dict[int, int] = {}
        """Of each group: the local number of its last marker."""

    # Traffic

    def send(self, group: int, change: Step | None = None) -> Packet:
        """A message enters the graph."""
        packet = Packet(group, self.locals[group], self.names, change)
        if change is not None:
            packet.passed |= self.marked
            self.marked[group] = packet.local
            self._give_turns(packet)
        self.names += 1
        self.locals[group] += 1
        self._pass(self.graph.ingress(group), packet)
        return packet

    def _give_turns(self, packet: Packet) -> None:
        match packet.change:
            case Subscribe(member) | Unsubscribe(member):
                concerned = frozenset({member})
            case OpenGroup(group):
                concerned = self.graph.members(group)
            case _:
                concerned = frozenset()
        for member in sorted(concerned):
            packet.turns[member] = self.turns.get(member, 0)
            self.turns[member] = packet.turns[member] + 1

    def stir(self, times: int) -> None:
        """Let messages come, go on and arrive, in any order."""
        for _ in range(times):
            self._one_of_all()

    def settle(self) -> None:
        """Let all arrive."""
        while any(self.channels.values()) or self.copies:
            self._go_on()

    def _one_of_all(self) -> None:
        busy = sum(map(len, self.channels.values())) + len(self.copies) / 8
        groups = [group for group in self.graph.groups if group != self.closing]
        if groups and self.rng.random() < 0.3 and busy < 20:
            self.send(self.rng.choice(groups))
        else:
            self._go_on()

    def _go_on(self) -> None:
        moving = [channel for channel, packets in self.channels.items() if packets]
        if moving and (not self.copies or self.rng.random() < 0.5):
            self._forward(self.rng.choice(moving))
        elif self.copies:
            place = self.rng.randrange(len(self.copies))
            self.copies[place], self.copies[-1] = self.copies[-1], self.copies[place]
            member, packet = self.copies.pop()
            self.receivers[member].arrive(packet)

    def _forward(self, channel: tuple[int, int]) -> None:
        self._pass(channel[1], self.channels[channel].popleft())

    def _pass(self, atom: int, packet: Packet) -> None:
        group = packet.group
        match packet.change:
            case Subscribe(member, _, extends) if group in self.numbered[atom] or atom in extends:
                self.numbered[atom][group] = -1
                shared = len(self.numbered[atom]) > 1
                if shared and all(member in self.graph.members(one) for one in self.numbered[atom]):
                    self.relevant[atom] |= {member}
        if group in self.numbered[atom] and (self.relevant[atom] or packet.change is not None):
            self._number(atom, packet)
        match packet.change:
            case Unsubscribe(member, _, leaves) if group in self.numbered[atom]:
                if atom in leaves:
                    del self.numbered[atom][group]
                else:
                    self.relevant[atom] -= {member}
            case RetireAtom(leaving) | LeaveAtom(leaving) if atom == leaving:
                del self.numbered[atom][group]
        self._hand_on(atom, packet)

    def _number(self, atom: int, packet: Packet) -> None:
        packet.stamps[atom] = (self.numbers[atom], self.relevant[atom])
        self.numbers[atom] += 1
        self.numbered[atom][packet.group] = packet.local
        for group, local in self.numbered[atom].items():
            if packet.change is not None and group != packet.group:
                packet.passed[group] = max(local, packet.passed.get(group, -1))

    def _hand_on(self, atom: int, packet: Packet) -> None:
        path = self.graph.path(packet.group)
        place = path.index(atom) + 1
        if place < len(path):
            self.channels[atom, path[place]].append(packet)
            return
        packet.left = True
        match packet.change:
            case Subscribe(member, group, _):
                self.audience[group] |= {member}
                self.receivers.setdefault(member, Receiver(member))
        for member in sorted(self.audience[packet.group]):
            self.copies.append((member, packet))
        match packet.change:
            case Unsubscribe(member, group, _):
                self.audience[group] -= {member}

    # Changes

    def change(self, steps: list[Step], traffic: int) -> None:
        """Make the steps of a change, with traffic between them."""
        for step in steps:
            self._make(step)
            self.stir(traffic)

    def _make(self, step: Step) -> None:
        match step:
            case FoundGroup(group, members):
                self.graph.apply(step)
                self.audience[group] = members
                self.locals[group] = 0
                for member in sorted(members):
                    self.receivers.setdefault(member, Receiver(member)).joined[group] = 0
            case OpenGroup(group):
                self._flush()
                self.graph.apply(step)
                self._mark(group, step)
            case Subscribe(_, group, _):
                self._flush()
                self.graph.apply(step)
                self._add_channels()
                self._mark(group, step)
            case Unsubscribe(_, group, _):
                self._flush()
                self._mark(group, step)
                self._drain(self.graph.path(group))
                self.graph.apply(step)
            case CloseGroup(group):
                self._flush()
                self.closing = group
                self._mark(group, step)
                self._drain(self.graph.path(group))
                self.graph.apply(step)
                for groups in self.numbered.values():
                    groups.pop(group, None)
            case InsertAtom():
                self._insert(step)
            case RetireAtom(atom):
                self._part(step, self.graph.groups_of(atom))
            case LeaveAtom(_, group):
                self._part(step, (group,))
            case AttachAtom() | DetachAtom():
                self.graph.apply(step)
                self._add_channels()
            case ExtendAtom(atom, group):
                self.numbered[atom][group] = self._gone_past(group, atom, step)
                self._add_channels()

    def _flush(self) -> None:
        """Wait until all that is on the way has left the graph; other messages come meanwhile."""
        before = self.names
        while any(packet.name < before for waiting in self.channels.values() for packet in waiting):
            self._one_of_all()

    def _mark(self, group: int, change: Step) -> None:
        """Send a marker, and wait until it has left."""
        marker = self.send(group, change)
        while not marker.left or (isinstance(change, Subscribe) and not self._has_joined(change)):
            self._one_of_all()

    def _has_joined(self, change: Subscribe) -> bool:
        return change.group in self.receivers[change.member].joined

    def _insert(self, step: InsertAtom) -> None:
        for child in step.children:
            if step.parent is not None:
                self.channels[step.atom, child] = self.channels.pop((step.parent, child), deque())
        self.numbers[step.atom] = 0
        self.numbered[step.atom] = {}
        for group in step.groups:
            self.numbered[step.atom][group] = -1
        self.graph.apply(step)
        self._add_channels()
        for group in step.groups:
            self.numbered[step.atom][group] = self._gone_past(group, step.atom, None)
        self.relevant[step.atom] = self.graph.overlap(step.atom)
        for member in sorted(self.relevant[step.atom]):
            self.receivers[member].expected[step.atom] = 0

    def _gone_past(self, group: int, atom: int, step: Step | None) -> int:
        """The last local number of a group of which no message will come to an atom any more."""
        if step is not None:
            self.graph.apply(step)
        if not self.graph.has_atoms(group):
            return -1
        path = self.graph.path(group)
        upper = path[: path.index(atom) + 1]
        coming = [
            packet.local
            for channel in pairwise(upper)
            for packet in self.channels.get(channel, ())
            if packet.group == group
        ]
        return min(coming, default=self.locals[group]) - 1

    def _part(self, step: RetireAtom | LeaveAtom, groups: tuple[int, ...]) -> None:
        """Groups leave an atom, each with one more number of it if that is relevant to anybody."""
        for group in groups if self.relevant[step.atom] else ():
            self._flush()
            self._mark(group, step)
        for group in self.graph.groups_of(step.atom):
            self._drain(self.graph.path(group))
        self._take_out(step)

    def _take_out(self, step: RetireAtom | LeaveAtom) -> None:
        parent = self.graph.parent(step.atom)
        if isinstance(step, RetireAtom):
            if parent is not None:
                self._drain((parent, step.atom))
                del self.channels[parent, step.atom]
            for child in self.graph.children(step.atom):
                waiting = self.channels.pop((step.atom, child))
                if parent is not None:
                    self.channels[parent, child] = waiting
                assert parent is not None or not waiting
            del self.numbered[step.atom]
        else:
            self.numbered[step.atom].pop(step.group, None)
        self.graph.apply(step)

    def _add_channels(self) -> None:
        for atom in self.graph.atoms:
            for child in self.graph.children(atom):
                self.channels.setdefault((atom, child), deque())

    def _drain(self, path: tuple[int, ...]) -> None:
        for channel in pairwise(path):
            while self.channels[channel]:
                self._forward(channel)


class Receiver:
    """Delivers by the numbers alone, at once or later."""

    def __init__(self, member: int) -> None:
        self.member = member
        self.joined: dict[int, int] = {}
        """The next local number of each group."""
        self.expected: dict[int, int] = {}
        """The next number of each atom that is relevant here."""
        self.taken: dict[int, set[int]] = {}
        """Numbers of each atom on what was delivered, whether relevant or not: it may become so."""
        self.fresh: set[int] = set()
        """Groups that it has just joined or made: what lies before something delivered is skipped."""
        self.turn = 0
        self.held: list[Packet] = []
        self.delivered: list[int] = []

    def arrive(self, packet: Packet) -> None:
        """Hold a message, and deliver what can be delivered."""
        self.held.append(packet)
        while ready := next((each for each in self.held if self._is_next(each)), None):
            self.held.remove(ready)
            self._take(ready)
        self.held = [each for each in self.held if each.local >= self.joined.get(each.group, 0)]

    def _relevant(self, packet: Packet) -> dict[int, int]:
        stamps = packet.stamps.items()
        return {atom: number for atom, (number, members) in stamps if self.member in members}

    def _joins(self, packet: Packet) -> bool:
        change = packet.change
        return isinstance(change, Subscribe) and change.member == self.member

    def _is_next(self, packet: Packet) -> bool:
        place = self.joined.get(packet.group)
        if place != (None if self._joins(packet) else packet.local):
            return False
        if any(self.joined[group] <= local for group, local in packet.passed.items() if group in self.joined):
            return False
        if packet.turns.get(self.member, self.turn) != self.turn:
            return False
        stamps = packet.stamps.items()
        return all(number == self.expected.get(atom, number) for atom, (number, _) in stamps)

    def _take(self, packet: Packet) -> None:
        late = any(
            number < max(self.taken.get(atom, {-1})) for atom, number in self._relevant(packet).items()
        )
        self.joined[packet.group] = packet.local + 1
        self.turn += self.member in packet.turns
        if self.member in packet.turns:
            self.fresh.add(packet.group)
        if self._joins(packet):
            self.expected |= self._relevant(packet)
        elif packet.change is None and not (late and packet.group in self.fresh):
            self.fresh.discard(packet.group)
            self.delivered.append(packet.name)
        for atom, (number, _) in packet.stamps.items():
            self.taken.setdefault(atom, set()).add(number)
            while self.expected.get(atom, -1) in self.taken[atom]:
                self.expected[atom] += 1
        match packet.change:
            case Unsubscribe(member, group, leaves) if member == self.member:
                del self.joined[group]
                self.fresh.discard(group)
                for atom in frozenset(packet.stamps) - frozenset(leaves):
                    self.expected.pop(atom, None)
