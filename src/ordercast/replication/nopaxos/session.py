"""The order of one sequencer at a time (NOPaxos section 4): each sequencer is a session.

Numbers alone make the order, so a message is next when the one before it is there. Stamps also have a clock,
whose first part is the session: so ranks grow from session to session, and the log is the same as with many
sequencers.

When the controller ends a session, replicas change their view (NOPaxos section 5.4). The log of the new view
says what was the last message of the session. Nothing else of it ever counts.
"""

from collections.abc import Iterable

from ordercast.components.network_ordered import LogEntry, LogPlace
from ordercast.core import RemoteError
from ordercast.protocols.hydra.messages import Step, Welcome
from ordercast.protocols.hydra.replica_ordering import HydraOrdering
from ordercast.protocols.hydra.sequencer import Sequencer
from ordercast.protocols.hydra.sequencer_life import SERVING
from ordercast.protocols.hydra.stamping_clock import StampingClock

SESSION_BITS = 40
"""No sequencer stamps more messages in a session than fit into so many bits."""


class SessionClock(StampingClock):
    """Counts; it does not follow the time."""

    __slots__ = ()

    @property
    def now(self) -> int:
        """The last reading."""
        return self.last

    def tick(self) -> int:
        """The next reading."""
        self.last += 1
        return self.last


class SessionSequencer(Sequencer):
    """The sequencer of a session, which is its number."""

    def _on_welcome(self, message: Welcome) -> None:
        before = self.state
        if message.sequencer >> (62 - SESSION_BITS):
            raise RemoteError(f"there are no {message.sequencer} sessions")
        if before is not SERVING:
            self._clock = SessionClock(self.env)
            self._clock.reach(message.sequencer << SESSION_BITS)
        super()._on_welcome(message)


class SessionOrdering(HydraOrdering):
    """The order of the present session."""

    def may_take(self, place: LogPlace) -> bool:
        """Replicas report nothing: the view change decides where a session ends."""
        return True

    def may_have(self, entries: Iterable[LogEntry]) -> bool:
        """Nor that keeps them from having more."""
        return True

    def boundary(self, step: Step) -> int:
        """The first clock of the next session."""
        return (step.sequencer + 1) << SESSION_BITS

    def decided(self, step: Step) -> None:
        """A session ends, or the next begins."""
        self.note_step(step)
        self._owner.reconfigured(lambda entry: False, None)
        if step.change == "removed":
            self._owner.new_session()
