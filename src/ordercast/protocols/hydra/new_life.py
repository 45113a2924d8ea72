"""The new life of a receiver that lost its state: it becomes a new member, and delivers nothing twice.

It does not know what its earlier life delivered, nor what that life had reported for the removal of a
sequencer. So it must not simply begin again.

1. It asks the configuration service to be reborn (`Rebirth`). The service makes that a step of its own, after
   which reports of earlier lives count no more: they name the step that they are for.
2. When that is decided (`Revived`), it knows in which configuration it begins. All lanes are *blind*. It asks
   each sequencer for a fresh flush (`Refresh`), which names the life that asks. So the answer was sent after
   the earlier life had ended, and nothing that the earlier life had is above it.
3. When no lane is blind any more, it begins to deliver.

A sequencer that does not answer is suspected like any other, and removed. Until then, this receiver can only
report that it knows nothing of the sequencer (`Reports`). Before it has begun it saves nothing. If it
crashes, the next life is reborn too.

- *whole*: it knows its place, because it has begun, or never lost it.
- *asking*: it waits for the decision of the service.
- *refreshing*: it waits for fresh flushes.
"""

from enum import Enum

from ordercast.core import Env, LifeCycle, Nanos, NodeId, RemoteError, Wait
from ordercast.protocols.hydra.follower import Follower
from ordercast.protocols.hydra.lane_life import BLIND
from ordercast.protocols.hydra.merge import Merge
from ordercast.protocols.hydra.messages import Rebirth, Refresh, Refreshed, Revived

REBIRTH = "rebirth"
"""The timer of the receiver to ask again."""
BACKOFF_MAX = 4


class NewLifeState(Enum):
    """What a receiver without its state waits for."""

    WHOLE = "whole"
    ASKING = "asking"
    REFRESHING = "refreshing"


class NewLifeEvent(Enum):
    """What happens to it."""

    REVIVE = "revive"
    BEGIN = "begin"


WHOLE, ASKING, REFRESHING = NewLifeState

NEW_LIFE = LifeCycle(
    "new life",
    (WHOLE, ASKING),
    {
        (ASKING, NewLifeEvent.REVIVE): REFRESHING,
        (REFRESHING, NewLifeEvent.BEGIN): WHOLE,
    },
    blame=RemoteError,  # all events come from other processes
)


class NewLife:
    """Finds out where a receiver may begin, if it has lost its place."""

    def __init__(
        self, env: Env, merge: Merge, follower: Follower, service: tuple[NodeId, ...], retry_ns: Nanos
    ) -> None:
        self._env = env
        self._merge = merge
        self._follower = follower
        self._service = service
        self._retry_ns = retry_ns
        self._life: Nanos = 0
        self._attempts = 0
        self.state = WHOLE

    @property
    def is_placed(self) -> bool:
        """Whether this receiver follows the configurations: it has been taken in, or never lost its place."""
        return self.state is not ASKING

    def begin(self) -> None:
        """Begin a life without the state of an earlier one."""
        self.state = ASKING
        self._life = self._env.now
        self.ask()

    def ask(self) -> None:
        """Ask for what is lacking, and again after a while."""
        if self.state is ASKING:
            self._env.multicast(self._service, Rebirth(self._life))
        for lane in self._follower.blind:
            self._env.send(lane.node, Refresh(lane.sequencer, self._life))
        if self.state is not WHOLE:
            self._env.set_timer(REBIRTH, self._retry_ns << min(self._attempts, BACKOFF_MAX))
            self._attempts += 1

    def on_leader(self, leader: NodeId) -> None:
        """The service announces something: it has a leader, which may not have been asked yet."""
        if self.state is ASKING:
            self._env.send(leader, Rebirth(self._life))

    def on_revived(self, message: Revived) -> bool:
        """The rebirth is decided; False if it is not that of this life."""
        if self.state is not ASKING or message.life != self._life:
            return False
        self.state = NEW_LIFE.after(self.state, NewLifeEvent.REVIVE)
        self._follower.begin_blind(message)
        self._attempts = 0
        self.ask()
        return True

    def on_refreshed(self, message: Refreshed) -> bool:
        """A sequencer tells how far it is; False if that is nothing new."""
        lane = self._merge.lanes.get(message.flush.sequencer)
        if message.life != self._life or lane is None or lane.state is not BLIND:
            return False
        self._follower.refresh(message.flush)
        return True

    def is_due(self) -> bool:
        """Whether all lanes can see now; from then on the receiver is whole."""
        if self.state is not REFRESHING or self._follower.blind:
            return False
        self.state = NEW_LIFE.after(self.state, NewLifeEvent.BEGIN)
        self._env.cancel_timer(REBIRTH)
        return True

    @property
    def lacks(self) -> str:
        """What this receiver waits for before it delivers anything; empty if for nothing."""
        if self.state is ASKING:
            return "the configuration service, which must take it in as a new member"
        names = ", ".join(f"sequencer {lane.sequencer}" for lane in self._follower.blind)
        return f"a fresh flush of {names}" if names else ""

    def waits(self) -> list[Wait]:
        """The same, as an explanation."""
        lacks = self.lacks
        on = self._service if self.state is ASKING else tuple(lane.node for lane in self._follower.blind)
        return [Wait("all messages", lacks, self._life, on=on)] if lacks else []
