"""What a member believes about rates and delays (section 6.1).

Each message has the time at which it was submitted, by the clock of its sender; the times between two
messages of a member give its rate. Messages may wait and then go out together, for instance after a change of
the view; so the time at which they were sent would say nothing about the rate. Delays are half of the round
trips of probes.
"""

from ordercast.components.ticketing.detectors import DetectorName, ShiftDetector, make_detector
from ordercast.core import Nanos, NodeId


class Estimates:
    """Intervals between the messages of each member, and delays to it."""

    __slots__ = ("_delays", "_detector", "_intervals", "_last_ns", "_samples", "_shortest")

    def __init__(self, detector: DetectorName, samples: int) -> None:
        self._detector = detector
        self._samples = samples
        self._intervals: dict[NodeId, ShiftDetector] = {}
        self._delays: dict[NodeId, ShiftDetector] = {}
        self._last_ns: dict[NodeId, Nanos] = {}
        self._shortest: dict[NodeId, Nanos] = {}

    def message_at(self, member: NodeId, submitted_ns: Nanos) -> None:
        """A member got a message from its application at this time, on its own clock.

        Messages of one moment count as one. If its clock was set back, the difference says nothing.
        """
        last = self._last_ns.get(member)
        self._last_ns[member] = submitted_ns
        if last is not None and submitted_ns > last:
            self._add_interval(self._of(self._intervals, member), submitted_ns - last)

    def _add_interval(self, known: ShiftDetector, interval: Nanos) -> None:
        """A silence of k intervals counts as much as k samples, also when a message has ended it."""
        if known.value is None or interval <= self._samples * known.value:
            known.add(interval)
        else:
            for _ in range(self._samples):
                known.add(interval // self._samples)

    def round_trip(self, member: NodeId, duration: Nanos) -> None:
        """A probe of a member came back after this time."""
        if duration < 0:
            return
        delay = duration // 2
        self._shortest[member] = min(delay, self._shortest.get(member, delay))
        self._of(self._delays, member).add(delay)

    def shortest(self, member: NodeId) -> Nanos:
        """The shortest delay that was measured; 0 if none was."""
        return self._shortest.get(member, 0)

    def delay(self, member: NodeId) -> Nanos | None:
        """The delay to a member, once there are enough samples."""
        known = self._delays.get(member)
        return None if known is None else known.value

    def interval(self, member: NodeId) -> Nanos | None:
        """The time between two messages of a member, once there are enough samples."""
        known = self._intervals.get(member)
        return None if known is None else known.value

    def own_interval(self, me: NodeId, now: Nanos) -> Nanos | None:
        """The same for this member, which may have stopped sending."""
        known = self.interval(me)
        return None if known is None else max(known, self.own_silence(me, self._last_ns[me], now))

    def own_silence(self, me: NodeId, began: Nanos, now: Nanos) -> Nanos:
        """The shortest interval that the silence of this member allows; it `began` then, without a message.

        A silence of k intervals counts as much as k samples. A shorter one says nothing: between messages
        that come at random, one in ten silences is more than twice the mean.
        """
        return (now - self._last_ns.get(me, began)) // self._samples

    def forget(self, members: tuple[NodeId, ...]) -> None:
        """Keep only what is known about these members."""
        for table in (self._intervals, self._delays, self._last_ns, self._shortest):
            for node in [node for node in table if node not in members]:
                del table[node]

    def _of(self, table: dict[NodeId, ShiftDetector], member: NodeId) -> ShiftDetector:
        if member not in table:
            table[member] = make_detector(self._detector, self._samples)
        return table[member]
