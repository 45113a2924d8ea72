"""A receiver's receipts: it tells each sequencer up to which number it has the packets to its group.

A sequencer tells senders that a request is safe when a majority of each group has it (`Acks`). Receipts of
`ack_ns` go together, unless they are for many bytes. The last one may be lost, so it is repeated: often for a
while after the last packet, and rarely then, for the two may have been cut off from each other for long.
"""

from ordercast.core import Env, Nanos
from ordercast.protocols.hydra.lane_life import ACTIVE
from ordercast.protocols.hydra.merge import Merge
from ordercast.protocols.hydra.messages import Receipt
from ordercast.protocols.hydra.options import ACK_BYTES

RECEIPTS = "receipts"
"""The timer of the receiver to send receipts."""
REPEATS = 16
"""For so many ticks after the last packet the last receipt is repeated; then each so many ticks."""


class Receipts:
    """How far the sequencers know this receiver to be."""

    __slots__ = ("_bytes", "_due", "_env", "_merge", "_told", "_wait_ns")

    def __init__(self, env: Env, merge: Merge, wait_ns: Nanos) -> None:
        self._env = env
        self._merge = merge
        self._wait_ns = wait_ns
        self._due = False
        self._bytes = 0
        """The bytes of the packets since the last receipt."""
        self._told: dict[int, tuple[int, int]] = {}
        """By sequencer: the last number that it was told, and how often that was repeated."""

    def note(self, size: int) -> None:
        """A packet has come, with a payload of this size."""
        self._bytes += size
        if self._bytes >= ACK_BYTES:
            self.send()
        elif not self._due:
            self._due = True
            self._env.set_timer(RECEIPTS, self._wait_ns)

    def send(self) -> None:
        """Send what is due."""
        self._due = False
        self._bytes = 0
        for lane in self._merge.lanes.values():
            if lane.state is ACTIVE and lane.front > self._told.get(lane.sequencer, (0, 0))[0]:
                self._told[lane.sequencer] = (lane.front, 0)
                self._env.send(lane.node, Receipt(lane.sequencer, lane.front))

    def repeat(self) -> None:
        """Tell of numbers that were given up since, and repeat the last receipts."""
        self.send()
        for sequencer, (front, repeats) in list(self._told.items()):
            lane = self._merge.lanes.get(sequencer)
            if lane is None:
                del self._told[sequencer]
            elif lane.state is ACTIVE:
                self._told[sequencer] = (front, repeats + 1)
                if repeats < REPEATS or repeats % REPEATS == 0:
                    self._env.send(lane.node, Receipt(sequencer, front))
