"""The account: which messages were submitted and delivered. The gated properties are judged on it.

Messages are numbered in the order of their submission; messages that were delivered but never submitted come
after them. Deliveries are sorted by node, and those of a node are in their order. So a *chain*, all that one
receiver delivered in one life, is a slice.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ordercast.core import GroupId, Groups, MessageId, NodeId
from ordercast.judge.columns.columns import Flags, Ints
from ordercast.judge.columns.trace import Trace


class Chain(NamedTuple):
    """What a receiver delivered in one life: a slice of the deliveries."""

    node: NodeId
    start: int
    stop: int


class Account:
    """The submissions and deliveries that integrity admitted."""

    def __init__(
        self,
        trace: Trace,
        messages: Ints,
        submit_row: Ints,
        destination: Ints,
        destinations: list[Groups],
        row: Ints,
        place: Ints,
        to: Ints,
        ordered: Flags | None,
    ) -> None:
        self.trace = trace
        self.messages = messages
        """The identity of each message, by its place."""
        self.submit_row = submit_row
        """The row of each submission; messages from its length on were never submitted."""
        self.destination = destination
        """For each submitted message, which of the `destinations` it goes to."""
        self.destinations = destinations
        self.row = row
        """The row of each delivery, sorted by node."""
        self.place = place
        """For each delivery, the place of its message."""
        self.to = to
        """For each delivery, which of the `destinations` it went to."""
        self.ordered = ordered
        """For each delivery, whether it is in order; None if all are."""

    @cached_property
    def node(self) -> Ints:
        """The receiver of each delivery."""
        nodes: Ints = self.trace.node[self.row]
        return nodes

    @cached_property
    def chains(self) -> list[Chain]:
        """All deliveries, in slices of one receiver's life."""
        return list(chains_of(self.trace, self.row))

    def sequence(self, chain: Chain) -> tuple[Ints, Ints]:
        """The messages that a chain delivered in order, and the places of these deliveries."""
        if self.ordered is None:
            return self.place[chain.start : chain.stop], np.arange(chain.start, chain.stop)
        where = chain.start + np.flatnonzero(self.ordered[chain.start : chain.stop])
        return self.place[where], where

    @cached_property
    def chains_by_node(self) -> dict[NodeId, list[Chain]]:
        """The lives of each receiver, in order."""
        found: dict[NodeId, list[Chain]] = {}
        for chain in self.chains:
            found.setdefault(chain.node, []).append(chain)
        return found

    @cached_property
    def _codes_of(self) -> dict[GroupId, list[int]]:
        found: dict[GroupId, list[int]] = {}
        for code, groups in enumerate(self.destinations):
            for group in groups:
                found.setdefault(group, []).append(code)
        return found

    def going_to(self, group: GroupId) -> Flags:
        """For each of the destinations, whether a group is in it."""
        wanted = np.zeros(len(self.destinations), bool)
        wanted[self._codes_of.get(group, [])] = True
        return wanted

    def message(self, place: int) -> MessageId:
        """The identity of a message."""
        return int(self.messages[place])

    def time(self, delivery: int) -> int:
        """When a delivery happened."""
        return int(self.trace.time[self.row[delivery]])


def chains_of(trace: Trace, rows: Ints) -> Iterator[Chain]:
    """Split rows, which are sorted by node, into slices of one life of one node."""
    nodes = trace.node[rows]
    edges = np.flatnonzero(nodes[1:] != nodes[:-1]) + 1
    for start, stop in pairwise([0, *edges.tolist(), len(rows)] if len(rows) else []):
        node = int(nodes[start])
        lost = trace.lost.get(node)
        cuts = [] if lost is None else (start + np.searchsorted(rows[start:stop], lost)).tolist()
        for first, last in zip([start, *cuts], [*cuts, stop], strict=True):
            if first < last:
                yield Chain(node, first, last)
