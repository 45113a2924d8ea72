"""The epochs that the failure coordinator has begun: the part of its log's state that is about them.

An epoch is the time of one sequencer, whose number it is. A replica follows the epochs as *steps*: where one
ends, and that the next begins. Both are one decision, so no replica ever begins an epoch without knowing
where the one before ended.
"""

from typing import TypeAlias

import msgspec

from ordercast.components.network_ordered.place import Natural
from ordercast.core import MALFORMED, NodeId
from ordercast.protocols.hydra.messages import NOBODY, Numbers, Plans, Revived, Step
from ordercast.replication.nopaxos.session import SESSION_BITS


class Begin(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """End the present epoch after these numbers, and begin another one."""

    step: Natural
    """How many steps were decided before."""
    clock: Natural
    numbers: Numbers
    """By group: the last number of the epoch."""
    epoch: Natural
    node: Natural


class Reborn(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """A replica has lost its memory. What an earlier life reported counts no more, for a report names the
    step that it is for, and this is one."""

    node: Natural
    life: Natural


Command: TypeAlias = Begin | Reborn
_commands: msgspec.msgpack.Decoder[Command] = msgspec.msgpack.Decoder(Command)
encode = msgspec.msgpack.encode


def decode(value: bytes) -> Command | None:
    """A value of the log, if it is about epochs."""
    try:
        return _commands.decode(value)
    except MALFORMED:
        return None


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    epoch: Natural
    node: Natural
    forgotten: Natural
    steps: list[Step]
    config: Natural
    reborn: list[tuple[Natural, Natural]]


_kept = msgspec.msgpack.Decoder(_Kept)


class Epochs:
    """The present epoch, and how it came to it."""

    def __init__(self, node: NodeId, groups: int, history: int) -> None:
        """`node` is the sequencer of the first epoch; so many steps are kept for replicas that were away."""
        self.epoch = 1
        self.node = node
        self._groups = groups
        self._history = history
        self._forgotten = 0
        self._steps: list[Step] = []
        self._config = 0
        self.reborn: dict[NodeId, int] = {}
        """By replica: its last life that began without memory."""

    @property
    def steps(self) -> int:
        """How many steps are decided."""
        return self._forgotten + len(self._steps)

    @property
    def latest(self) -> Step | None:
        """The last of them."""
        return self._steps[-1] if self._steps else None

    @property
    def end(self) -> Plans:
        """The end of the present epoch, as a step that is planned."""
        return Plans("removed", self.epoch, self.node)

    def since(self, start: int) -> tuple[int, tuple[Step, ...]]:
        """The steps from one on, or from the first that is kept; and which that is."""
        first = min(max(start, self._forgotten), self.steps)
        return first, tuple(self._steps[first - self._forgotten :])

    def revival(self, node: NodeId) -> Revived:
        """Where a replica without memory begins."""
        place = (self.epoch << SESSION_BITS, self.epoch) if self._config else (0, 0)
        active = ((self.epoch, self.node),)
        return Revived(self.reborn[node], self.steps, self._config, *place, self.epoch, active)

    def apply(self, command: Command) -> bool:
        """Take the next command of the log. One that does not fit, or no longer, changes nothing, and is
        False."""
        match command:
            case Begin() if self._follows(command):
                self._begin(command)
            case Reborn() if command.life > self.reborn.get(command.node, -1):
                self.reborn[command.node] = command.life
                self._keep(Step("reborn", NOBODY, command.node, self._config, 0, ()))
            case _:
                return False
        return True

    def _follows(self, command: Begin) -> bool:
        """Whether an epoch can begin now, and replicas would believe where the present one ends."""
        is_next = command.step == self.steps and command.epoch > self.epoch
        return is_next and len(command.numbers) == self._groups

    def _begin(self, command: Begin) -> None:
        config = self._config
        ended = Step("removed", self.epoch, self.node, config + 1, command.clock, command.numbers)
        start = command.epoch << SESSION_BITS
        nothing = (0,) * self._groups
        self._keep(ended, Step("added", command.epoch, command.node, config + 2, start, nothing))
        self._config += 2
        self.epoch, self.node = command.epoch, command.node

    def _keep(self, *steps: Step) -> None:
        self._steps += steps
        surplus = max(0, len(self._steps) - self._history)
        del self._steps[:surplus]
        self._forgotten += surplus

    def snapshot(self) -> bytes:
        """The state as bytes."""
        reborn = sorted(self.reborn.items())
        return encode(_Kept(self.epoch, self.node, self._forgotten, self._steps, self._config, reborn))

    def restore(self, state: bytes) -> None:
        """Take it back."""
        kept = _kept.decode(state)
        self.epoch, self.node = kept.epoch, kept.node
        self._forgotten, self._steps = kept.forgotten, kept.steps
        self._config, self.reborn = kept.config, dict(kept.reborn)
