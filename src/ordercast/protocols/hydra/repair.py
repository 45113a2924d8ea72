"""Repair of gaps: before a receiver notifies of missing numbers, it asks who has their packets.

The paper notifies at once (section 4.3.2), for its applications ask each other. Here a drop notification
should mean that nobody has the packet. So sequencers keep what they have stamped and receivers what they have
got, for a while (`Kept`). A receiver asks the sequencer first, and after one late or negative answer the
other receivers of its group too. If the sequencer was removed, it asks all receivers, for a packet to several
groups may be at those of another group only. A packet that is found is delivered in its place, late.

Numbers are given up when everybody who was asked has said that it does not have them, or when nothing has
been found for `suspect_ns`. A lane whose removal is planned accepts nothing. Its gaps wait until its last
numbers are decided, and are repaired then.

The order is not touched: which packets a lane has, and when a message may go, is decided as before.
"""

from collections.abc import Iterator
from itertools import groupby

from ordercast.core import Env, GroupId, Nanos, NodeId, RemoteError
from ordercast.protocols.hydra.kept import Kept
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import ACTIVE, FROZEN
from ordercast.protocols.hydra.messages import Ask, Found, Gone
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.search import Search

REPAIR = "repair"
"""The timer of the receiver to ask again."""
NUMBERS_MAX = 64
"""How many packets answer a question at most, so that answers never flood a receiver."""


def answer(env: Env, kept: Kept, source: NodeId, ask: Ask, groups: int) -> None:
    """Send what is kept of the first requested numbers, and say which numbers are not."""
    if ask.group >= groups or ask.last < ask.first:
        raise RemoteError(f"node {source} asks for numbers {ask.first} to {ask.last} of group {ask.group}")
    gone = []
    examined = range(ask.first, min(ask.last + 1, ask.first + NUMBERS_MAX))
    for number in examined:
        packet = kept.find(ask.sequencer, ask.group, number)
        if packet is None:
            gone.append(number)
        else:
            env.send(source, Found(packet))
    if len(gone) == NUMBERS_MAX:  # nothing of a long gap, perhaps: say at once how much of it
        following = kept.following(ask.sequencer, ask.group, ask.first)
        last = ask.last if following is None else min(ask.last, following - 1)
        env.send(source, Gone(ask.sequencer, ask.group, ask.first, last))
        return
    for first, last in _runs(gone):
        env.send(source, Gone(ask.sequencer, ask.group, first, last))


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Ascending numbers as runs without gaps."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        yield members[0], members[-1]


class Repairer:
    """Asks for the missing packets of a receiver's lanes."""

    def __init__(
        self,
        env: Env,
        group: GroupId,
        own: tuple[NodeId, ...],
        all_: tuple[NodeId, ...],
        options: HydraOptions,
    ) -> None:
        self._env = env
        self._group = group
        self._own = tuple(node for node in own if node != env.me)
        self._all = tuple(node for node in all_ if node != env.me)
        self._options = options

    def patience(self, lane: Lane) -> Nanos:
        """How long a packet of a lane may be late before it is asked for: as late as packets came before."""
        options = self._options
        return max(options.patience_ns, min(2 * lane.late_ns, options.suspect_ns // 2))

    def hopeless(self, lane: Lane) -> int:
        """Ask for the first missing numbers. Returns up to which number there is no hope; 0 if there is."""
        if lane.state is FROZEN:
            return 0
        now = self._env.now
        search = lane.seek(now)
        lost = min((search.gone.get(node, 0) for node in self._responsible(lane)), default=0)
        if lost >= search.first:
            return lost
        if now - search.since >= self._options.suspect_ns:
            return search.known
        if search.first > search.reached or now >= search.due or search.refused(lane.node):
            self._ask(lane, search)
        self._env.set_timer(REPAIR, max(1, search.due - now))
        return 0

    def on_gone(self, lane: Lane, source: NodeId, message: Gone) -> None:
        """A node does not have these numbers."""
        if lane.search is not None:
            lane.search.note_gone(source, message.first, message.last)

    def _responsible(self, lane: Lane) -> tuple[NodeId, ...]:
        """Those without whose answer there is hope."""
        return (lane.node, *self._own) if lane.state is ACTIVE else self._all or (lane.node,)

    def _ask(self, lane: Lane, search: Search) -> None:
        env = self._env
        last = lane.missing().stop - 1
        search.ask(min(last, search.first + NUMBERS_MAX - 1), env.now, self._options.retry_ns)
        ask = Ask(lane.sequencer, self._group, search.first, last)
        if lane.state is not ACTIVE:
            env.multicast((lane.node, *self._all), ask)
        elif search.attempts == 0:
            env.send(lane.node, ask)
        else:
            env.multicast((lane.node, *self._own), ask)
