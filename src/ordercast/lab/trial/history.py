"""What one receiver got over all its lives, as the diaries of its host say."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from ordercast.core import HostId, MessageId, Nanos, NodeId, Plan
from ordercast.lab.trial.diary import Got, LifeDiary, Told


class History:
    """All that one receiver got and was told."""

    def __init__(self, node: NodeId, host: HostId, lives: Sequence[LifeDiary]) -> None:
        self.node = node
        self.host = host
        self._lives = lives

    @property
    def remembers(self) -> bool:
        """Whether all its lives were the same member."""
        return all(life.remembers for life in self._lives[1:])

    @cached_property
    def times(self) -> list[Nanos]:
        """When it got something."""
        return [got.time_ns for life in self._lives for got in self._got(life)]

    @cached_property
    def members(self) -> list[list[Got]]:
        """What it got as each member that it was. A life that remembers the one before is the same member."""
        found: list[list[Got]] = []
        for life in self._lives:
            if not found or not life.remembers:
                found.append([])
            found[-1] += self._got(life)
        return found

    @cached_property
    def messages(self) -> frozenset[MessageId]:
        """All messages that it got."""
        return frozenset(got.message for member in self.members for got in member)

    @cached_property
    def drops(self) -> int:
        """How many numbers it was told of as dropped, each counted once."""
        told = {one for life in self._lives for one in life.told.get(self.node, ())}
        return len({number for one in told for number in _numbers(one)})

    def ends(self, kills: Iterable[Nanos]) -> list[tuple[MessageId | None, Nanos]]:
        """The last message of each life that was killed, and when it was killed."""
        ordered, found, last = sorted(kills), [], None
        for life in self._lives:
            got = self._got(life)
            last = got[-1].message if got else last
            killed = next((time for time in ordered if time >= life.began_ns), None)
            if killed is not None:
                found.append((last, killed))
        return found

    def _got(self, life: LifeDiary) -> list[Got]:
        return life.got.get(self.node, [])


def _numbers(told: Told) -> Iterable[tuple[int, int, int]]:
    return ((told.group, told.issuer, number) for number in range(told.first, told.first + told.numbers))


def histories_of(plan: Plan, diaries: Iterable[LifeDiary]) -> dict[NodeId, History]:
    """The history of each receiver."""
    lives: Mapping[HostId, list[LifeDiary]] = {node.host: [] for node in plan.nodes}
    for diary in diaries:
        lives[diary.host].append(diary)
    receivers = sorted(set(plan.joiners).union(*plan.groups.values()))
    hosts = {node: plan.nodes[node].host for node in receivers}
    return {node: History(node, hosts[node], lives[hosts[node]]) for node in receivers}
