"""A sequencer's acknowledgements: which requests it has stamped, told to their senders together.

One message tells a sender of all its requests of the last `ack_ns`, so that acknowledgements are few.
"""

from ordercast.core import Env, Nanos, NodeId
from ordercast.protocols.hydra.messages import Stamped

ACK = "ack"
"""The timer of the sequencer to send acknowledgements."""
NUMBERS_MAX = 512
"""So many requests are acknowledged with one message."""


class Acks:
    """The acknowledgements that are due."""

    __slots__ = ("_due", "_env", "_wait_ns")

    def __init__(self, env: Env, wait_ns: Nanos) -> None:
        self._env = env
        self._wait_ns = wait_ns
        self._due: dict[NodeId, list[int]] = {}

    def note(self, sender: NodeId, number: int) -> None:
        """A request is stamped, now or before: the last acknowledgement may have been lost."""
        due = self._due
        if not due:
            self._env.set_timer(ACK, self._wait_ns)
        numbers = due.get(sender)
        if numbers is None:
            due[sender] = [number]
        else:
            numbers.append(number)

    def send(self, sequencer: int) -> None:
        """Acknowledge everything that is due."""
        due, self._due = self._due, {}
        for sender, numbers in due.items():
            for start in range(0, len(numbers), NUMBERS_MAX):
                self._env.send(sender, Stamped(sequencer, tuple(numbers[start : start + NUMBERS_MAX])))

    def clear(self) -> None:
        """Forget what is due: the sequencer is removed."""
        self._due.clear()
