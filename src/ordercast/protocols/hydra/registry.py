"""The replicated state of the configuration service: the sequence of configurations (section 4.4).

Commands come out of a consensus log in the same order at every replica, and `apply` is deterministic. A step
is planned, then decided: at most one is planned at a time, so additions and removals that come together are
taken one after the other. A command that no longer fits (two leaders may have proposed the same) changes
nothing.
"""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from ordercast.core import MALFORMED, NodeId, RemoteError
from ordercast.protocols.hydra.messages import NOBODY, Numbers, Plans, Revived, Step


class _Command(msgspec.Struct, frozen=True, array_like=True, gc=False):
    pass


class Claim(_Command, frozen=True, tag=1):
    """The first life of a node takes the number that the first configuration has for it."""

    node: NodeId
    life: int


class Remove(_Command, frozen=True, tag=2):
    """Plan to remove a sequencer."""

    sequencer: int


class Add(_Command, frozen=True, tag=3):
    """Plan to add a sequencer, under a number that none has had."""

    node: NodeId
    life: int


class Decide(_Command, frozen=True, tag=4):
    """The reports of a quorum of each group about the planned step."""

    step: int
    clock: int
    numbers: Numbers
    complete: bool = False


class GiveUp(_Command, frozen=True, tag=5):
    """Give up the planned addition."""

    step: int


class Reborn(_Command, frozen=True, tag=6):
    """A receiver without its state is a new member from here on.

    It is a step of its own: reports name the step that they are for, so those of earlier lives count no more.
    """

    node: NodeId
    life: int


Command: TypeAlias = Claim | Remove | Add | Decide | GiveUp | Reborn

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Command] = msgspec.msgpack.Decoder(Command)


def encode(command: Command) -> bytes:
    """A command as a value of the log."""
    return _encoder.encode(command)


def decode(value: bytes) -> Command:
    """A value of the log as a command, or `RemoteError`."""
    try:
        return _decoder.decode(value)
    except MALFORMED as error:
        raise RemoteError(f"not a command of the service: {error}") from error


class _Snapshot(msgspec.Struct, frozen=True, array_like=True):
    forgotten: int
    steps: list[Step]
    config: int
    planned: Plans | None
    active: list[tuple[int, NodeId]]
    lives: list[tuple[NodeId, int, int]]
    next: int
    latest: tuple[int, int] = (0, 0)
    reborn: list[tuple[NodeId, int]] = []


_snapshots = msgspec.msgpack.Decoder(_Snapshot)


class Registry:
    """The decided steps, the planned one, and who has which number."""

    def __init__(self, initial: Mapping[int, NodeId], history: int) -> None:
        self._history = history
        self.forgotten = 0
        """Steps no longer kept."""
        self.kept: list[Step] = []
        self.config = 0
        self.planned: Plans | None = None
        self.active: dict[int, NodeId] = dict(initial)
        self.lives: dict[NodeId, tuple[int, int]] = {}
        """By node: the life that has a number, and the number."""
        self._next = max(initial, default=0) + 1
        self.latest = (0, 0)
        """The place of the last step in the order of messages: clock and sequencer."""
        self.reborn: dict[NodeId, int] = {}
        """By receiver: its last life that began without the state of the one before."""

    @property
    def steps(self) -> int:
        """How many steps are decided."""
        return self.forgotten + len(self.kept)

    @property
    def newest(self) -> int:
        """The highest number that any sequencer has had, but for one that is being added."""
        adding = self.planned is not None and self.planned.change == "added"
        return self._next - 1 - adding

    def revival(self, node: NodeId) -> Revived:
        """Where a receiver without its state begins."""
        return Revived(
            self.reborn[node], self.steps, self.config, *self.latest, self.newest,
            tuple(sorted(self.active.items())),
        )  # fmt: skip

    def unclaimed(self, node: NodeId) -> int | None:
        """The number that the first configuration has for a node, unless that is taken or removed."""
        if node in self.lives:
            return None
        return next((number for number, other in self.active.items() if other == node), None)

    def claimed(self, number: int, node: NodeId) -> bool:
        """Whether a sequencer has been told its number; before, it stamps nothing."""
        return self.lives.get(node, (0, 0))[1] == number

    def apply(self, command: Command) -> None:
        """Apply one command of the log."""
        match command:
            case Claim():
                number = self.unclaimed(command.node)
                if number is not None:
                    self.lives[command.node] = (command.life, number)
            case Remove() if self.planned is None and command.sequencer in self.active:
                node = self.active[command.sequencer]
                self.planned = Plans("removed", command.sequencer, node)
            case Add() if self.planned is None and self._is_new(command):
                self.lives[command.node] = (command.life, self._next)
                self.planned = Plans("added", self._next, command.node)
                self._next += 1
            case Decide() if self.planned is not None and command.step == self.steps:
                self._decide(self.planned, command)
            case GiveUp() if self.planned is not None and command.step == self.steps:
                if self.planned.change == "added":
                    planned, self.planned = self.planned, None
                    self._keep(Step("void", planned.sequencer, planned.node, self.config, 0, ()))
            case Reborn() if command.life > self.reborn.get(command.node, -1):
                self.reborn[command.node] = command.life
                self._keep(Step("reborn", NOBODY, command.node, self.config, 0, ()))

    def snapshot(self) -> bytes:
        """The whole state."""
        lives = [(node, life, number) for node, (life, number) in sorted(self.lives.items())]
        state = _Snapshot(
            self.forgotten, self.kept, self.config, self.planned, list(self.active.items()), lives,
            self._next, self.latest, sorted(self.reborn.items()),
        )  # fmt: skip
        return _encoder.encode(state)

    def restore(self, saved: bytes) -> None:
        """Restore a whole state."""
        state = _snapshots.decode(saved)
        self.forgotten, self.kept = state.forgotten, state.steps
        self.config, self.planned = state.config, state.planned
        self.active, self._next = dict(state.active), state.next
        self.lives = {node: (life, number) for node, life, number in state.lives}
        self.latest, self.reborn = state.latest, dict(state.reborn)

    def _is_new(self, command: Add) -> bool:
        known = self.lives.get(command.node)
        idle = all(node != command.node for node in self.active.values())
        return idle and (known is None or known[0] < command.life)

    def _decide(self, planned: Plans, command: Decide) -> None:
        self.config += 1
        if planned.change == "added":
            self.active[planned.sequencer] = planned.node
        else:
            del self.active[planned.sequencer]
        step = Step(
            planned.change, planned.sequencer, planned.node, self.config, command.clock, command.numbers,
            command.complete,
        )  # fmt: skip
        self.planned = None
        self.latest = max(self.latest, (step.clock, step.sequencer))
        self._keep(step)

    def _keep(self, step: Step) -> None:
        self.kept.append(step)
        if len(self.kept) > self._history:
            self.kept.pop(0)
            self.forgotten += 1
