"""Flow control between two hosts: how much a host may send that its peer has not acknowledged.

If the buffer of a socket overflows, it loses datagrams silently. So each link has a window: the number of
bytes that may be under way. Beyond it datagrams wait in a queue, in order, until the peer acknowledges. If
the queue is full too, they are dropped and counted. A sender asks for acknowledgements by a flag, once per
quarter of the window.

A peer that does not answer for `AWAY_NS` counts as away: what waits for it is dropped and counted, and it
gets at most one window per `AWAY_NS`. So a dead host holds nobody up, and a host that comes back is noticed.
Protocols tolerate this loss if they promise to tolerate loss.
"""

from collections import deque

from ordercast.core import MILLISECOND, HostId, Nanos
from ordercast.net.metrics.metrics import Metrics

AWAY_NS: Nanos = 500 * MILLISECOND
PRESSURE_NS: Nanos = 100 * MILLISECOND
"""How long a request to slow down counts; it is repeated more often than that."""
PRESSURE_MAX = 3
PACKET_COST = 1024
"""About how many bytes of a buffer the kernel uses for a datagram beyond its content."""
QUEUE_BYTES_MAX = 16 << 20


class Link:
    """One peer, as its sender sees it."""

    __slots__ = (
        "_metrics", "_pressure", "_pressure_at", "_quarter", "_sent", "_since_asked", "away", "host", "queue",
        "queued", "stuck_since", "under_way", "window",
    )  # fmt: skip

    def __init__(self, host: HostId, window: int, metrics: Metrics) -> None:
        self.host = host
        self.window = window
        self._quarter = window // 4
        self._metrics = metrics
        self._sent: deque[tuple[int, int]] = deque()
        self.under_way = 0
        self._since_asked = 0
        self.queue: deque[tuple[int, bytes]] = deque()
        self.queued = 0
        """Bytes in the queue."""
        self.away = False
        self.stuck_since: Nanos | None = None
        """Since when the window is used up and nothing was acknowledged."""
        self._pressure = 0
        self._pressure_at: Nanos = 0

    def wants_ack(self, size: int) -> bool:
        """Whether the next datagram, of this size, should ask for an acknowledgement."""
        self._since_asked += size + PACKET_COST
        if self._since_asked < self._quarter:
            return False
        self._since_asked = 0
        return True

    def admit(self, counter: int, frames: bytes, now: Nanos) -> bool:
        """Whether a datagram with these frames may go at once; otherwise they wait, or are dropped."""
        cost = len(frames) + PACKET_COST
        if not self.queue and (self.under_way + cost <= self.window or not self.under_way):
            self.under_way += cost
            self._sent.append((counter, cost))
            return True
        if self.stuck_since is None:
            self.stuck_since = now
        if self.away:
            self._metrics.dropped_away += 1
        elif self.queued + cost > QUEUE_BYTES_MAX:
            self._metrics.overflow += 1
        else:
            self.queued += cost
            self.queue.append((counter, frames))
        return False

    def acknowledge(self, counter: int, pressure: int, now: Nanos) -> None:
        """The peer has received every datagram up to this one, except lost ones."""
        sent, progress = self._sent, False
        while sent and sent[0][0] <= counter:
            self.under_way -= sent.popleft()[1]
            progress = True
        self._pressure, self._pressure_at = min(pressure, PRESSURE_MAX), now
        if progress or not sent:
            self.away = False
            self.stuck_since = now if self.queue else None

    def next_ready(self, counter: int | None = None) -> bytes | None:
        """The first frames of the queue, if the window has room for them now.

        They leave with this counter. The one that was meant for them is kept only if nothing has left since.
        """
        if not self.queue:
            return None
        meant, frames = self.queue[0]
        cost = len(frames) + PACKET_COST
        if self.under_way and self.under_way + cost > self.window:
            return None
        self.queue.popleft()
        self.queued -= cost
        self.under_way += cost
        self._sent.append((meant if counter is None else counter, cost))
        if not self.queue:
            self.stuck_since = None
        return frames

    def pressure(self, now: Nanos) -> int:
        """How hard the peer asks to slow down."""
        return self._pressure if self._pressure and now - self._pressure_at < PRESSURE_NS else 0

    def look_after(self, now: Nanos) -> bool:
        """Check the link now and then; returns whether to ask the peer for an acknowledgement again."""
        if self.stuck_since is None:
            return False
        if now - self.stuck_since >= AWAY_NS:
            self.away = True
            self.forget()
        return True

    def forget(self) -> None:
        """Forget what is under way and what waits: the peer began a new life, or is away.

        What waited is dropped, and counted.
        """
        self._metrics.dropped_away += len(self.queue)
        self._sent.clear()
        self.queue.clear()
        self.under_way = self.queued = self._since_asked = 0
        self.stuck_since = None
