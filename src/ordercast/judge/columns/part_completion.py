"""Completion in the parts of a large run: which complete messages their deliveries prove.

In a simulated run, a message's deliveries must come before it is complete, and nearly all of them are in the
same part as its `complete` row. What is missing there must be in the parts before. In any other run the
deliveries only have to be there, which the fingerprints of blocks prove.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

import msgspec
import numpy as np

from ordercast.core import MessageId
from ordercast.judge.columns.columns import Ints
from ordercast.judge.columns.trace import Trace
from ordercast.trace import Kind

PENDING_MAX = 10_000
"""How many messages without a `complete` row a part lists at most; clients have fewer under way."""


class Answers(msgspec.Struct, frozen=True):
    """How many receivers delivered a message in a part, of how many; 0 of 0 if none did."""

    message: MessageId
    block: int
    came: int
    needed: int


class PartCompletion(msgspec.Struct):
    """What a part says about complete messages."""

    lacking: list[Answers] = msgspec.field(default_factory=list)
    """In a simulated run: messages that are complete here, but had fewer deliveries before that."""
    pending: list[Answers] = msgspec.field(default_factory=list)
    """In a simulated run: messages that were delivered here and are not complete here."""
    blocks: list[int] = msgspec.field(default_factory=list)
    """In any other run: the blocks of complete messages."""


class HasCompletion(Protocol):
    """A summary of a part."""

    completion: PartCompletion


def part_completion(trace: Trace, delivered: Ints, block_bits: int) -> PartCompletion:
    """What a part says about complete messages; `delivered` are the rows of its deliveries."""
    complete = trace.rows(Kind.COMPLETE)
    if not len(complete) and len(delivered) > PENDING_MAX:
        return PartCompletion()  # usually the run has no clients; otherwise the blocks are judged in depth
    if trace.description.source != "simulator":
        return PartCompletion(blocks=np.unique(trace.message[complete] >> block_bits).tolist())
    rows, size = np.concatenate([delivered, complete]), len(trace.kind)
    messages, which = np.unique(trace.message[rows], return_inverse=True)
    of, said = which[: len(delivered)], which[len(delivered) :]
    receivers = np.array([len(trace.receivers(groups)) for groups in trace.groups.tuples], np.int64)
    needed = np.zeros(len(messages), np.int64)
    needed[of] = receivers[trace.groups.codes[delivered]]
    keys = np.sort(of * size + delivered)
    came = np.searchsorted(keys, said * size + complete) - np.searchsorted(keys, said * size)
    short = (came < needed[said]) | (needed[said] == 0)
    count = np.bincount(of, minlength=len(messages))
    count[said] = 0
    open_ones = np.flatnonzero(count)

    def told(places: Ints, counts: Ints) -> list[Answers]:
        names = messages[places].tolist()
        columns = (counts.tolist(), needed[places].tolist())
        return [Answers(m, m >> block_bits, c, n) for m, c, n in zip(names, *columns, strict=True)]

    pending = told(open_ones, count[open_ones]) if len(open_ones) <= PENDING_MAX else []
    return PartCompletion(told(said[short], came[short]), pending)


def unproved(parts: Iterable[HasCompletion]) -> set[int]:
    """The blocks with messages that were complete before the parts, in order, show all deliveries."""
    came: Counter[MessageId] = Counter()
    needed: dict[MessageId, int] = {}
    blocks = set()
    for part in parts:
        for one in part.completion.lacking:
            wanted = one.needed or needed.get(one.message, 0)
            if not wanted or one.came + came[one.message] < wanted:
                blocks.add(one.block)
        for one in part.completion.pending:
            came[one.message] += one.came
            needed[one.message] = one.needed
    return blocks
