"""The state of Cyclon as arrays: the rules, the processes, and the messages under way."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ordercast.engines.epto.types import Bytes, Numbers, Offsets, Seeds, Ticks

NOBODY = -1
REQUEST, ANSWER = 0, 1
SENT, LOST, PURGED, IGNORED, FREE = range(5)
"""Places in `Mail.totals`: what happened so far, and the first message that is not in use."""


class Rules(NamedTuple):
    """What is the same for all processes and all the time."""

    slot: Numbers
    """[process] Where it lives."""
    view_size: int
    length: int
    period: int
    jitter: int
    patience: int
    over_oldest: bool
    """Whether what comes into a full view takes the place of the oldest entry, not of one that was sent."""
    seed: np.uint64
    """The stream that draws the seeds of processes."""
    loss: np.uint64
    """A message is lost if 64 bits are below this."""
    latency_seed: np.uint64
    matrix: NDArray[np.int16]
    values: Ticks


class Nodes(NamedTuple):
    """The state of `Cyclon`, of the process in each slot."""

    process: Numbers
    """[slot] Who lives there now."""
    seed: Seeds
    rounds: Numbers
    """How many rounds of EpTO it had."""
    due: Ticks
    """When it shuffles next."""
    shuffles: Numbers
    answers: Numbers
    size: Numbers
    known: Numbers
    """[slot, place] The neighbours in its view, `size` of them."""
    ages: Numbers
    contacts: Numbers
    """[slot, place] Whom it knew first, NOBODY after the last."""
    asked_number: Numbers
    """[slot, shuffle modulo patience] The shuffle that waits for its answer, or NOBODY."""
    asked_node: Numbers
    asked_count: Numbers
    asked_sent: Numbers
    """[slot, shuffle modulo patience, place] What was sent."""


class Mail(NamedTuple):
    """Messages under way."""

    first: Numbers
    """[tick modulo the longest latency + 1] The first message that arrives then, or NOBODY."""
    last: Numbers
    next: Numbers
    """[message] The one after it in its list, or NOBODY."""
    kind: Bytes
    source: Numbers
    target: Numbers
    number: Numbers
    carried: Numbers
    nodes: Numbers
    """[message, place] What it carries."""
    ages: Numbers
    totals: Offsets
