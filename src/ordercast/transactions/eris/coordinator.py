"""The failure coordinator of Eris, which also changes epochs (Eris section 6.5).

When the network has another sequencer, replicas stop, and report how far they have seen the epoch. From the
reports of majorities of all groups the coordinator decides where the epoch ends, in all groups at once. What
a client has an answer to is in a majority of each of its groups, so for each of its numbers one report knows
it. A message counts if none of its numbers is beyond the end in its group. What is lost before the end is
searched for, as ever.

The decision is in the log before anybody is told. A coordinator that leads anew knows of no reports; replicas
repeat theirs until the next epoch begins.
"""

from collections.abc import Callable, Mapping

import msgspec

from ordercast.components.cross_shard import CoordinatorOptions, FailureCoordinator
from ordercast.components.cross_shard.coordinator import FLOORS
from ordercast.core import (
    Env,
    Explanation,
    GroupId,
    Member,
    Message,
    Nanos,
    NodeId,
    RemoteError,
    Wait,
)
from ordercast.protocols.hydra.limits import Limits, first_after
from ordercast.protocols.hydra.messages import Announce, Fetch, Rebirth, Report, Steps
from ordercast.protocols.hydra.reports import Reports
from ordercast.protocols.hydra.shards import HEARD_BY_SENDERS
from ordercast.transactions.eris.epochs import Begin, Command, Epochs, Reborn, decode, encode
from ordercast.transactions.eris.messages import EpochRequest
from ordercast.transactions.eris.ordering import check_epoch

EPOCH = "epoch"
BACK_OFF_MAX = 16
"""Replicas are asked again at last after so many times `ask_ns`."""
BATCH = 256
"""How many steps one message has."""

_packed = msgspec.msgpack.Decoder(tuple[bytes, bytes])


class EpochCoordinator(FailureCoordinator):
    """One replica of the coordinator."""

    def __init__(
        self,
        env: Env,
        groups: Mapping[GroupId, tuple[NodeId, ...]],
        peers: tuple[NodeId, ...],
        controllers: tuple[NodeId, ...],
        epochs: Epochs,
        options: CoordinatorOptions,
        sender: Callable[[Env], Member],
    ) -> None:
        self.epochs = epochs
        self._limits = Limits(controllers, len(groups), first_after(groups.values()))
        self._reports = Reports(groups, all_needed=False)
        self._wanted: tuple[int, NodeId] = (0, 0)
        """The latest epoch of which a replica has told, and its sequencer."""
        self._heard: tuple[int, NodeId] = (0, 0)
        """The latest of which a controller has told."""
        self._since: Nanos = 0
        """When the present epoch was to end."""
        self._wait: Nanos = 0
        super().__init__(env, groups, peers, options, sender, HEARD_BY_SENDERS)

    @property
    def is_changing(self) -> bool:
        """Whether the present epoch is to end."""
        return self._wanted[0] > self.epochs.epoch

    def snapshot(self) -> bytes:
        """What was decided about messages, and about epochs."""
        return encode((super().snapshot(), self.epochs.snapshot()))

    def restore(self, state: bytes) -> None:
        """Take both back."""
        rulings, epochs = _packed.decode(state)
        super().restore(rulings)
        self.epochs.restore(epochs)

    def begin_office(self) -> None:
        """Nothing is reported to this leader yet."""
        super().begin_office()
        self._reports.clear()
        self._wanted = (0, 0)

    # What comes

    def on_message(self, source: NodeId, message: Message) -> None:
        """Hear from the controllers who the sequencer is, beside the sender here, which checks it."""
        super().on_message(source, message)
        if isinstance(message, Announce):
            self._heard = max((self._heard, *message.active))
            if self._wanted[0] == self._heard[0]:
                self._wanted = self._heard

    def check(self, source: NodeId, message: Message) -> None:
        """Refuse epochs, reports and lives that there cannot be."""
        match message:
            case EpochRequest():
                check_epoch(source, message)
                self._limits.check_lane(message.epoch, message.node, (0,))
                if message.epoch == self._heard[0] and message.node != self._heard[1]:
                    raise RemoteError(f"node {source} tells of another sequencer of epoch {message.epoch}")
            case Report():
                self._limits.check_report(source, message, self.env.now)
            case Rebirth():
                self._limits.check_life(source, message.life, self.env.now)
            case _:
                super().check(source, message)

    def on_replica(self, source: NodeId, message: Message) -> None:
        """Take what concerns epochs, as the leader, or anything else."""
        match message:
            case EpochRequest() | Report() | Rebirth() | Fetch() if not self._log.is_leader:
                pass
            case EpochRequest():
                self._on_request(source, message)
            case Report():
                self._on_report(source, message)
            case Rebirth():
                self._on_rebirth(source, message)
            case Fetch():
                self._tell_steps(source, message.start)
            case _:
                super().on_replica(source, message)

    def _on_request(self, source: NodeId, message: EpochRequest) -> None:
        """There is a later epoch: ask all replicas how far they have seen the present one."""
        if message.epoch <= self.epochs.epoch:
            self.env.send(source, self._announcement())
            return
        if not self.is_changing:
            self._since = self.env.now
            self._wait = self._options.ask_ns
            self.env.set_timer(EPOCH, self._wait)
        if message.epoch > self._wanted[0]:
            self._wanted = message.epoch, message.node
            self.env.multicast(tuple(self._homes), self._announcement())
        self._try_to_begin()

    def _on_report(self, source: NodeId, report: Report) -> None:
        if (report.step, report.sequencer) == (self.epochs.steps, self.epochs.epoch):
            self._reports.take(source, report)
            self._try_to_begin()
        elif report.step < self.epochs.steps:
            self._tell_steps(source, report.step)

    def _on_rebirth(self, source: NodeId, message: Rebirth) -> None:
        life = self.epochs.reborn.get(source, -1)
        if life == message.life:
            self.env.send(source, self.epochs.revival(source))
        elif message.life > life:
            self.propose(encode(Reborn(source, message.life)))

    # What is decided

    def _try_to_begin(self) -> None:
        """Begin the next epoch, if majorities of all groups have reported."""
        if self.is_changing and self._reports.has_quorums():
            end = self._reports.decision(self.epochs.steps, self.epochs.end)
            self.propose(encode(Begin(end.step, end.clock, end.numbers, *self._wanted)))

    def decided(self, value: bytes) -> None:
        """Take a decision of either kind."""
        command = decode(value)
        if command is None:
            super().decided(value)
        elif self.epochs.apply(command):
            self._reports.clear()
            if self._log.is_leader:
                self._tell_all(command)

    def _tell_all(self, command: Command) -> None:
        """Tell all replicas of an epoch that has begun, or of one of them that may return."""
        steps = 2 if isinstance(command, Begin) else 1
        self.env.multicast(tuple(self._homes), Steps(*self.epochs.since(self.epochs.steps - steps)))
        if isinstance(command, Reborn):
            self.env.send(command.node, self.epochs.revival(command.node))

    def _tell_steps(self, to: NodeId, start: int) -> None:
        first, steps = self.epochs.since(start)
        if steps:
            self.env.send(to, Steps(first, steps[:BATCH]))
        if not steps or len(steps) > BATCH or first > start:
            self.env.send(to, self._announcement())

    def _announcement(self) -> Announce:
        epochs = self.epochs
        planned = epochs.end if self.is_changing else None
        return Announce(epochs.steps, ((epochs.epoch, epochs.node),), planned, epochs.latest)

    # Time

    def on_own_timer(self, name: str) -> None:
        """Ask those again who have not reported, and tell all of the present epoch now and then."""
        super().on_own_timer(name)
        if name == FLOORS and self._log.is_leader:
            self.env.multicast(tuple(self._homes), self._announcement())
        elif name == EPOCH and self._log.is_leader and self.is_changing:
            self.env.multicast(tuple(self._reports.lacking), self._announcement())
            self._wait = min(2 * self._wait, BACK_OFF_MAX * self._options.ask_ns)
            self.env.set_timer(EPOCH, self._wait)
            self._try_to_begin()

    def explain_own(self) -> Explanation:
        """Whose reports the end of an epoch lacks."""
        found = super().explain_own()
        state = dict(found.state) | {"epoch": self.epochs.epoch}
        if not self._log.is_leader or not self.is_changing:
            return Explanation(state, found.waits, found.behind)
        lacking = tuple(self._reports.lacking)
        blocker = f"reports of majorities of all groups; none came from nodes {', '.join(map(str, lacking))}"
        wait = Wait(f"epoch {self._wanted[0]}", blocker, self._since, on=lacking)
        return Explanation(state, (wait, *found.waits), found.behind)
