"""Wrong ways for a replica of Eris, or for its coordinator, to change epochs."""

from typing import Any

from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.messages import Step, Steps
from ordercast.protocols.hydra.new_lane import started
from ordercast.protocols.hydra.reports import Reports
from ordercast.replication.nopaxos.session import SESSION_BITS
from ordercast.transactions.eris.coordinator import EpochCoordinator
from ordercast.transactions.eris.epochs import Begin, Epochs
from ordercast.transactions.eris.ordering import EpochOrdering


def begin_alone(self: EpochOrdering) -> None:
    """Begin an epoch as soon as the network has it, with the end that this replica has seen."""
    epoch, node = self._heard.epoch, self._heard.node
    if not self._takes_part or epoch <= self.epoch:
        return
    lane = self.reception.merge.lanes[self.epoch]
    config, last = self.tag + 1, lane.report(self._group)
    ended = Step("removed", self.epoch, lane.node, config, lane.clock, last)
    start = epoch << SESSION_BITS
    begun = Step("added", epoch, node, config + 1, start, (0,) * self._groups)
    self.reception.follower.on_steps(Steps(self.tag, (ended, begun)))


_end_epoch = EpochOrdering._end_epoch


def go_on_meanwhile(self: EpochOrdering) -> None:
    """Stop, and tell the coordinator, but take the calls of the next epoch at once."""
    _end_epoch(self)
    epoch, node = self._heard.epoch, self._heard.node
    merge = self.reception.merge
    if self.epoch < epoch and epoch not in merge.lanes:
        merge.lanes[self.epoch].safe = (epoch << SESSION_BITS) + (1 << 30)
        merge.add(started(epoch, node, epoch << SESSION_BITS, (0,) * self._groups, self._group))


def one_shard_is_enough(self: Reports) -> bool:
    """Decide when a majority of any one group has reported."""
    return any(self._is_enough(nodes) for nodes in self._members.values())


def one_report_is_enough(self: Reports) -> bool:
    """Decide by a single report of each group."""
    return all(any(node in self._given for node in nodes) for nodes in self._members.values())


_begin_office = EpochCoordinator.begin_office


def forget_epochs(self: EpochCoordinator) -> None:
    """Begin a leadership without the epochs that the one before has begun."""
    _begin_office(self)
    self.epochs.__init__(21, 2, 4096)  # type: ignore[misc]


def own_number_alone(self: Lane, group: int) -> tuple[int, ...]:
    """Report the last number of the own group alone."""
    return tuple(self.high if one == group else 0 for one in range(len(self._seen)))


def go_on_after_the_report(self: Lane) -> None:
    """Report, and take more of the epoch nevertheless."""


_apply = Epochs.apply


def trust_earlier_lives(self: Epochs, command: Any) -> bool:
    """Let a replica return without a step, so that the report of its earlier life stands."""
    if isinstance(command, Begin):
        return _apply(self, command)
    self.reborn[command.node] = command.life
    return True


_decided = EpochCoordinator.decided


def keep_reports(self: EpochCoordinator, value: bytes) -> None:
    """Keep the reports when a replica returns without memory."""
    given = dict(self._reports._given)
    _decided(self, value)
    self._reports._given = given


def never_void(self: EpochOrdering, entry: Any) -> bool:
    """Let everything count that was found."""
    return False


def save_nothing(self: Any) -> None:
    """Report from memory alone."""
