"""Messages between the members of a view, over one view after the other: sending, repair, flush, and the
queue.

The messages of one view are in `traffic.py`. Here is what goes on from one view to the next: payloads that
wait for the next view, and messages of the next view that come before it is installed.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress

from ordercast.components.membership.ballot import ballot_owner
from ordercast.components.membership.limits import check_cut
from ordercast.components.membership.messages import Cut, Data, Flushed, Resend
from ordercast.components.membership.options import ViewOptions
from ordercast.components.membership.record import ViewRecord
from ordercast.components.membership.traffic import Traffic
from ordercast.core import Env, GroupId, NodeId, RemoteError


class Exchange:
    """What this node sends and receives, in the views that it sits in."""

    __slots__ = ("_early", "_env", "_group", "_is_open", "_options", "_repairing", "cut", "queue", "traffic")

    def __init__(self, env: Env, group: GroupId, options: ViewOptions, is_open: Callable[[], bool]) -> None:
        self._env = env
        self._group = group
        self._options = options
        self._is_open = is_open
        """Whether this node may send and deliver now."""
        self._early: list[tuple[NodeId, Data]] = []
        """Messages of the next view, which others installed sooner."""
        self._repairing = False
        self.traffic: Traffic | None = None
        """The messages of the view in which this node sits."""
        self.cut: Cut | None = None
        """Up to where this node gets messages, in the change that is under way."""
        self.queue: deque[bytes] = deque()
        """Payloads that wait for the next view, or for room in the window."""

    # From view to view

    def begin(self, record: ViewRecord) -> None:
        """Take up the messages of a view; those that came early wait for `catch_up`."""
        self.cut = None
        self.traffic = Traffic(self._env, self._group, record, self._options)

    def stop(self) -> None:
        """A change of the view begins."""
        if self.traffic is not None:
            self.traffic.stop()

    def catch_up(self) -> None:
        """The view has been delivered: take what came early, deliver what has come, send what has waited."""
        early, self._early = self._early, []
        for source, message in early:
            with suppress(RemoteError):  # it could not be checked when it came
                self.on_data(source, message)
        if self.traffic is not None and self._is_open():
            for node in self.traffic.record.members:
                self.traffic.deliver(node)
        self.empty_queue()

    def end(self, cut: tuple[int, ...] | None, *, queue: bool) -> list[bytes]:
        """The seat is lost: return what others did not get, or may not have got, and the queue if asked."""
        lost = self.traffic.unacknowledged(cut) if self.traffic else []
        self.traffic = self.cut = None
        self._early.clear()
        if queue:
            lost += self.queue
            self.queue.clear()
        return lost

    # Sending

    def send(self, payload: bytes) -> bool:
        """Send a payload, or let it wait for the next view; False if there is no room."""
        if self._is_open() and not self.queue:
            return self._send(payload)
        if len(self.queue) >= self._options.window:
            return False
        self.queue.append(payload)
        return True

    def empty_queue(self) -> None:
        """Send what has waited, as far as there is room."""
        while self.queue and self._is_open() and self._has_room():
            self._send(self.queue.popleft())

    def _send(self, payload: bytes) -> bool:
        if self.traffic is None or not self._has_room():
            return False
        self.traffic.send(payload)
        return True

    def _has_room(self) -> bool:
        return self.traffic is not None and not self.traffic.full

    @property
    def in_doubt(self) -> int:
        """How many payloads wait here, or may not have come everywhere."""
        return len(self.queue) + (len(self.traffic.unacknowledged()) if self.traffic else 0)

    # Receiving

    @property
    def received(self) -> tuple[int, ...] | None:
        """How many messages of each seat have come; None without a seat."""
        return tuple(self.traffic.received) if self.traffic else None

    def on_data(self, source: NodeId, message: Data) -> bool:
        """A message of a member came; return whether a heartbeat should acknowledge it soon."""
        traffic = self.traffic
        if traffic is None or message.view != traffic.record.number:
            return False
        traffic.check(source, message)
        if traffic.take(message):
            self._arm_repair()
        if self._is_open():
            traffic.deliver(message.sender)
        self._try_flush()
        return traffic.beat_due

    def keep(self, source: NodeId, message: Data) -> None:
        """Keep a message of the next view."""
        if len(self._early) < self._options.window:
            self._early.append((source, message))

    def on_counts(self, source: NodeId, counts: tuple[int, ...]) -> None:
        """A member said what it has received; the caller has checked it."""
        if self.traffic is None:
            return
        if self.traffic.acknowledge(source, counts):
            self._arm_repair()
        if self.traffic.full:
            self.traffic.settle()
        self.empty_queue()

    def tick(self) -> None:
        """One more heartbeat: forget what all have, and ask for what is missing."""
        if self.traffic is not None:
            self.traffic.settle()
            if self.traffic.misses():
                self._arm_repair()
            self.empty_queue()

    # Repair and flush

    def on_fetch(self, source: NodeId, message: Resend) -> None:
        """A member asks for messages that it misses."""
        if self.traffic is not None and message.view == self.traffic.record.number:
            self.traffic.answer(source, message.sender, message.first, message.end)

    def on_cut(self, source: NodeId, message: Cut) -> None:
        """The coordinator of a change says up to where to get messages, and from whom."""
        if self.traffic is None:
            return
        check_cut(source, message, self.traffic)
        self.cut = message
        self._try_flush()
        self._ask_for_missing()

    def on_repair_timer(self) -> None:
        """Ask again."""
        self._repairing = False
        self._ask_for_missing()

    def _arm_repair(self) -> None:
        if not self._repairing:
            self._repairing = True
            self._env.set_timer("repair", self._options.retry_ns)

    def _ask_for_missing(self) -> None:
        """Ask the sender of what is missing, or who has it now that the view changes."""
        traffic, cut = self.traffic, self.cut
        if traffic is None:
            return
        members = traffic.record.members
        for sender, first, end in traffic.gaps(cut.cut if cut else None):
            holder = cut.holders[members.index(sender)] if cut else sender
            self._env.send(holder, Resend(traffic.record.number, sender, first, end))
            self._arm_repair()

    def _try_flush(self) -> None:
        cut = self.cut
        if cut is not None and self.traffic is not None and self.traffic.reaches(cut.cut):
            self._env.send(ballot_owner(cut.ballot), Flushed(cut.view, cut.ballot))
