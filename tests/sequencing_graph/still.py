"""Messages on a network of atoms that does not change, sound or not: FIFO channels, any interleaving."""

from collections import deque
from dataclasses import dataclass, field
from random import Random

from ordercast.components.sequencing_graph import Network
from ordercast.components.sequencing_graph.network import overlap_of


@dataclass(eq=False)
class Stamped:
    """One message with what it collects."""

    name: int
    group: int
    local: int
    stamps: dict[int, int] = field(default_factory=dict)


class StillFlow:
    """Sends messages, and delivers by their numbers."""

    def __init__(self, network: Network, rng: Random) -> None:
        self.network = network
        self.rng = rng
        self.overlaps = {atom: overlap_of(network.members, those) for atom, those in network.atoms.items()}
        self.channels: dict[tuple[int, int], deque[Stamped]] = {}
        self.numbers = dict.fromkeys(network.atoms, 0)
        self.locals = dict.fromkeys(network.members, 0)
        self.held: dict[int, list[Stamped]] = {}
        self.delivered: dict[int, list[int]] = {}
        self.next: dict[tuple[int, str, int], int] = {}
        self.sent = 0
        self.copies: list[tuple[int, Stamped]] = []

    def run(self, messages: int) -> None:
        """Send messages, and let all arrive."""
        while self.sent < messages or any(self.channels.values()) or self.copies:
            moving = [channel for channel, waiting in self.channels.items() if waiting]
            choice = self.rng.random()
            if self.sent < messages and choice < 0.3:
                self._send(self.rng.choice(sorted(self.network.members)))
            elif moving and choice < 0.7:
                channel = self.rng.choice(moving)
                self._pass(channel[1], self.channels[channel].popleft())
            elif self.copies:
                self._arrive(*self.copies.pop(self.rng.randrange(len(self.copies))))

    def undelivered(self) -> int:
        """How many copies are held for ever."""
        return sum(map(len, self.held.values()))

    def _send(self, group: int) -> None:
        message = Stamped(self.sent, group, self.locals[group])
        self.sent += 1
        self.locals[group] += 1
        self._pass(self.network.paths[group][0], message)

    def _pass(self, atom: int, message: Stamped) -> None:
        if message.group in self.network.atoms[atom]:
            message.stamps[atom] = self.numbers[atom]
            self.numbers[atom] += 1
        path = self.network.paths[message.group]
        place = path.index(atom) + 1
        if place < len(path):
            self.channels.setdefault((atom, path[place]), deque()).append(message)
        else:
            self.copies += [(member, message) for member in sorted(self.network.members[message.group])]

    def _arrive(self, member: int, message: Stamped) -> None:
        held = self.held.setdefault(member, [])
        held.append(message)
        while ready := next((each for each in held if self._is_next(member, each)), None):
            held.remove(ready)
            self.delivered.setdefault(member, []).append(ready.name)
            for key, number in self._keys(member, ready):
                self.next[key] = number + 1

    def _keys(self, member: int, message: Stamped) -> list[tuple[tuple[int, str, int], int]]:
        relevant = [atom for atom in message.stamps if member in self.overlaps[atom]]
        atoms = [((member, "atom", atom), message.stamps[atom]) for atom in relevant]
        return [((member, "group", message.group), message.local), *atoms]

    def _is_next(self, member: int, message: Stamped) -> bool:
        return all(self.next.get(key, 0) == number for key, number in self._keys(member, message))
