"""Puts all deliveries in one line, and finds cycles if the chains do not fit into one.

Each chain says that its messages come in its order. Chains contradict each other if and only if the relation
"some receiver delivered a before b" has a cycle. First, the chains are put in one line: the longest chain as
it is, and each further message of the others after the message that it follows there. If every chain climbs
along the line, there is no cycle. For a run that kept its order, this is the whole cost.

If a chain steps back, the step covers a stretch of the line. A cycle that passes a place of the line must
come back over it, so it lies within one stretch of overlapping steps. Only there are the chains compared in
depth (`cycles.py`). Positions are never compared between receivers, because they shift with every loss.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ordercast.core import Groups, NodeId, message_name
from ordercast.judge.columns.account import Account
from ordercast.judge.columns.columns import Flags, Ints
from ordercast.judge.columns.cycles import Sequence, find_cycles
from ordercast.judge.columns.findings import Findings
from ordercast.judge.finding import VIOLATIONS_MAX, message_at


def sequences(
    account: Account,
    wanted: Flags | None = None,
    members: Iterable[NodeId] | None = None,
    groups: Groups = (),
) -> list[Sequence]:
    """The chains of all receivers or of some, with all messages or those to wanted destinations.

    If groups are named, with those that a receiver delivered while it was in all of these groups.
    """
    chains = account.chains
    if members is not None:
        chains = [c for node in dict.fromkeys(members) for c in account.chains_by_node.get(node, ())]
    found = []
    for chain in chains:
        places, where = account.sequence(chain)
        if wanted is not None and not (mine := wanted[account.to[where]]).all():
            places, where = places[mine], where[mine]
        for group in groups:
            if (chain.node, group) in account.trace.members.spans:
                inside = account.trace.members.inside(chain.node, group, account.row[where])
                places, where = places[inside], where[inside]
        if len(places):
            found.append(Sequence(chain.node, places, where))
    return found


class Stretch(NamedTuple):
    """A part of the line, from one place to another, both included."""

    first: int
    last: int


class Line:
    """All messages of some chains, in one line."""

    def __init__(self, chains: list[Sequence], count: int) -> None:
        self.chains = _different(chains)
        self.order: Ints | None = self.chains[0].places if self.chains else None
        """The messages along the line; None if they were renumbered."""
        if 4 * sum(len(chain.places) for chain in self.chains) < count:
            self.chains, count = _renumbered(self.chains)
            self.order = None
        self.rank = np.full(count, -1, np.int64)
        """The place of each message on the line; -1 if no chain has it."""
        if len(self.chains) > 1:
            self._lay_out()
        self.stretches = _united([step for chain in self.chains for step in self._steps(chain)])
        """The parts of the line in which some chain steps back."""

    def stretch_of(self, ranks: Ints) -> Ints:
        """For each place of the line, the number of the stretch that it lies in, or -1."""
        firsts = np.array([stretch.first for stretch in self.stretches])
        lasts = np.array([stretch.last for stretch in self.stretches])
        number = np.searchsorted(firsts, ranks, side="right") - 1
        return np.where((number >= 0) & (ranks <= lasts[number]), number, -1)

    @property
    def straight(self) -> bool:
        """Whether every chain climbs along the line."""
        return not self.stretches

    def _lay_out(self) -> None:
        line = self.chains[0].places
        self.rank[line] = np.arange(len(line))
        for chain in self.chains[1:]:
            ranks = self.rank[chain.places]
            new = np.flatnonzero(ranks < 0)
            if not len(new):
                continue
            # The last message before it that is already on the line, or the beginning of the line.
            known = np.maximum.accumulate(np.where(ranks >= 0, np.arange(len(ranks)), -1))[new]
            after = np.where(known >= 0, ranks[known], -1) + 1
            line = np.insert(line, after, chain.places[new])
            self.rank[line] = np.arange(len(line))
        if self.order is not None:
            self.order = line

    def _steps(self, chain: Sequence) -> list[Stretch]:
        if len(self.chains) == 1:
            return []
        ranks = self.rank[chain.places]
        back = np.flatnonzero(ranks[1:] < ranks[:-1])
        return [Stretch(int(ranks[place + 1]), int(ranks[place])) for place in back.tolist()]


def _different(chains: list[Sequence]) -> list[Sequence]:
    """The chains, longest first, mostly without those that are the same as another."""
    chains = sorted(chains, key=lambda chain: -len(chain.places))
    kept: list[Sequence] = []
    for chain in chains:
        if not any(np.array_equal(chain.places, other.places) for other in kept[:2]):
            kept.append(chain)
    return kept


def _renumbered(chains: list[Sequence]) -> tuple[list[Sequence], int]:
    """The chains with their messages renumbered from 0, and the number of messages."""
    if not chains:
        return chains, 0
    messages, numbers = np.unique(np.concatenate([chain.places for chain in chains]), return_inverse=True)
    parts = np.split(numbers, np.cumsum([len(chain.places) for chain in chains])[:-1])
    found = [chain._replace(places=part) for chain, part in zip(chains, parts, strict=True)]
    return found, len(messages)


def _united(steps: list[Stretch]) -> list[Stretch]:
    """Merge stretches that overlap."""
    united: list[Stretch] = []
    for step in sorted(steps):
        if united and step.first <= united[-1].last:
            united[-1] = Stretch(united[-1].first, max(united[-1].last, step.last))
        else:
            united.append(step)
    return united


def contradictions(account: Account, findings: Findings, line: Line) -> bool:
    """Compare the chains in depth where they may contradict each other; return whether they do."""
    told = more = 0
    for parts in _by_stretch(line):
        cycles, others = find_cycles(parts, VIOLATIONS_MAX - told)
        told += len(cycles)
        more += others
        for cycle in cycles:
            _tell(account, findings, cycle)
    findings.count(more)
    return told + more > 0


def _by_stretch(line: Line) -> Iterable[list[Sequence]]:
    """For each stretch of the line, the parts of the chains in it."""
    chains, places, where, stretches = [], [], [], []
    for number, chain in enumerate(line.chains):
        stretch = line.stretch_of(line.rank[chain.places])
        inside = np.flatnonzero(stretch >= 0)
        chains.append(np.full(len(inside), number))
        places.append(chain.places[inside])
        where.append(chain.where[inside])
        stretches.append(stretch[inside])
    chain_of, stretch_of = np.concatenate(chains), np.concatenate(stretches)
    order = np.lexsort((chain_of, stretch_of))
    chain_of, stretch_of = chain_of[order], stretch_of[order]
    place_of, where_of = np.concatenate(places)[order], np.concatenate(where)[order]
    edges = np.flatnonzero((chain_of[1:] != chain_of[:-1]) | (stretch_of[1:] != stretch_of[:-1])) + 1
    parts: dict[int, list[Sequence]] = {}
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(order)], strict=True):
        node = line.chains[chain_of[first]].node
        parts.setdefault(int(stretch_of[first]), []).append(
            Sequence(node, place_of[first:last], where_of[first:last])
        )
    return parts.values()


def _tell(account: Account, findings: Findings, cycle: list[tuple[NodeId, int, int]]) -> None:
    """Report a cycle: each edge is a node and two of its deliveries, in order."""
    messages = [account.message(int(account.place[before])) for _, before, _ in cycle]
    parts = [
        f"node {node} delivered {message_at(messages[i], account.time(before))}"
        f" before {message_at(account.message(int(account.place[after])), account.time(after))}"
        for i, (node, before, after) in enumerate(cycle)
    ]
    names = [message_name(one) for one in messages]
    findings.add(
        dict.fromkeys(node for node, _, _ in cycle),
        dict.fromkeys(messages),
        [account.time(delivery) for _, before, after in cycle for delivery in (before, after)],
        f"{'; '.join(parts)}: this is the cycle {' < '.join([*names, names[0]])}",
        int(account.row[[after for _, _, after in cycle]].max()),
    )
