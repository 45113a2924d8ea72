"""FIFO channels between sequencing nodes: the output and the input buffers of the paper (section 3.1).

All messages of an epoch from one node to another go through one channel, whatever their groups: two messages
that share a part of their paths stay in one order. A channel lasts as long as its epoch. What it loses is
sent again until it is acknowledged; what an epoch leaves behind is forgotten, for its publishers send it
again.
"""

from collections.abc import Iterator

from ordercast.core import Env, Nanos, NodeId
from ordercast.protocols.atoms.messages import Forward, Passed

INPUT_MAX = 4096
"""Messages that a channel holds because an earlier one, or the plan of its epoch, has not come."""
BURST = 64
"""Messages of a channel that are repeated at once."""
HASTE = 32
"""So many messages are acknowledged at once; fewer wait for a timer."""
ACKS = "acks"


class Output:
    """What was sent on a channel and is not acknowledged."""

    __slots__ = ("attempts", "due", "next", "since", "waiting")

    def __init__(self) -> None:
        self.next = 0
        self.waiting: dict[int, Forward] = {}
        self.due: Nanos = 0
        self.since: Nanos = 0
        """When the first of them was sent, or the last one before it acknowledged."""
        self.attempts = 0


class Input:
    """What came on a channel and is not processed."""

    __slots__ = ("acknowledged", "came", "next")

    def __init__(self) -> None:
        self.next = 0
        self.came: dict[int, Forward] = {}
        self.acknowledged = 0


class Channels:
    """The channels of one node, by epoch and other end."""

    __slots__ = ("_env", "_inputs", "_is_armed", "_outputs", "_retry")

    def __init__(self, env: Env, retry_ns: Nanos) -> None:
        self._env = env
        self._retry = retry_ns
        self._outputs: dict[tuple[int, NodeId], Output] = {}
        self._inputs: dict[tuple[int, NodeId], Input] = {}
        self._is_armed = False

    def send(self, to: NodeId, label: int, group: int, stage: int, position: int, entry: object) -> None:
        """Send the next message of a channel."""
        output = self._outputs.setdefault((label, to), Output())
        message = Forward(label, output.next, group, stage, position, entry)  # type: ignore[arg-type]
        if not output.waiting:
            self._begin(output)
        output.waiting[output.next] = message
        output.next += 1
        self._env.send(to, message)

    def on_passed(self, source: NodeId, message: Passed) -> None:
        """The other end has everything before a number."""
        output = self._outputs.get((message.label, source))
        if output is None or message.next > output.next:
            return
        while output.waiting and (first := next(iter(output.waiting))) < message.next:
            del output.waiting[first]
            self._begin(output)

    def _begin(self, output: Output) -> None:
        """Wait for an acknowledgement from now on."""
        output.due, output.since, output.attempts = self._env.now + self._retry, self._env.now, 0

    def take(self, source: NodeId, message: Forward) -> bool:
        """Keep what came; whether the next message of the channel may be there."""
        channel = self._inputs.setdefault((message.label, source), Input())
        if message.seq < channel.next:
            self._acknowledge(message.label, source, channel)
            return False
        if len(channel.came) >= INPUT_MAX and message.seq != channel.next:
            return False
        channel.came[message.seq] = message
        return True

    def peek(self, label: int, source: NodeId) -> Forward | None:
        """The next message of a channel, if it is there."""
        channel = self._inputs.get((label, source))
        return None if channel is None else channel.came.get(channel.next)

    def pop(self, label: int, source: NodeId) -> None:
        """The next message of a channel is processed."""
        channel = self._inputs[label, source]
        del channel.came[channel.next]
        channel.next += 1
        if channel.next - channel.acknowledged >= HASTE:
            self._acknowledge(label, source, channel)
        elif not self._is_armed:
            self._is_armed = True
            self._env.set_timer(ACKS, self._retry // 8)

    def sources(self, label: int) -> list[NodeId]:
        """Who has sent something in an epoch."""
        return [source for one, source in self._inputs if one == label]

    def acknowledge_all(self) -> None:
        """The timer went off: acknowledge what has not been acknowledged."""
        self._is_armed = False
        for (label, source), channel in self._inputs.items():
            if channel.acknowledged < channel.next:
                self._acknowledge(label, source, channel)

    def _acknowledge(self, label: int, source: NodeId, channel: Input) -> None:
        channel.acknowledged = channel.next
        self._env.send(source, Passed(label, channel.next))

    def repeat(self) -> bool:
        """Send again what should have been acknowledged; whether anything waits."""
        waits = False
        for (_, to), output in self._outputs.items():
            if not output.waiting:
                continue
            waits = True
            if output.due <= self._env.now:
                for message in list(output.waiting.values())[:BURST]:
                    self._env.send(to, message)
                output.attempts += 1
                output.due = self._env.now + (self._retry << min(output.attempts, 3))
        return waits

    def end(self, label: int) -> None:
        """An epoch is over: forget its channels."""
        for channels in (self._outputs, self._inputs):
            for key in [key for key in channels if key[0] == label]:
                del channels[key]

    def forget_before(self, label: int) -> None:
        """Forget what came for epochs that this node has never known, and that are over."""
        for key in [key for key in self._inputs if key[0] < label]:
            del self._inputs[key]

    def unacknowledged(self) -> Iterator[tuple[NodeId, int, Nanos]]:
        """Other ends that have not acknowledged something, how much, and since when."""
        for (_, to), output in self._outputs.items():
            if output.waiting:
                yield to, len(output.waiting), output.since
