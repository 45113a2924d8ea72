"""The order of one sequencer at a time for replicas of shards (Eris sections 5 and 6.5).

Numbers alone make the order, as in NOPaxos. When the network has a sequencer for a later epoch, a replica
stops: it takes nothing more of the present epoch, tells the failure coordinator how far it has seen it, and
goes on when the coordinator says where it ends in all groups. Until then what comes of the later epoch waits,
and nothing of it is handed over.
"""

from collections.abc import Mapping

from ordercast.components.cross_shard import ShardOwner
from ordercast.core import Env, GroupId, Message, Nanos, NodeId, RemoteError, Wait
from ordercast.protocols.hydra.lane_life import ACTIVE, FROZEN
from ordercast.protocols.hydra.limits import Limits
from ordercast.protocols.hydra.messages import Announce, Plans, Step, Suspect
from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.replica_ordering import TICK
from ordercast.protocols.hydra.shard_ordering import HydraShardOrdering
from ordercast.replication.nopaxos.session import SESSION_BITS
from ordercast.transactions.eris.messages import EpochRequest

EPOCHS_MAX = 1 << (62 - SESSION_BITS)
"""No clock has room for more epochs."""


def check_epoch(source: NodeId, request: EpochRequest) -> None:
    """Refuse an epoch that there cannot be. Nothing would count before the network got there."""
    if request.epoch >= EPOCHS_MAX or request.epoch > request.steps + 1:
        raise RemoteError(f"node {source} tells of epoch {request.epoch} after {request.steps} steps")


class EpochOrdering(HydraShardOrdering):
    """The reception of one replica. Its steps are those of the coordinator; the controllers only say
    who the sequencer is."""

    _owner: ShardOwner

    def __init__(
        self,
        env: Env,
        owner: ShardOwner,
        group: GroupId,
        groups: int,
        initial: Mapping[int, NodeId],
        service: tuple[NodeId, ...],
        aggregator: NodeId | None,
        options: HydraOptions,
    ) -> None:
        """`service` are the controllers; the steps come from the coordinators."""
        super().__init__(env, owner, group, groups, initial, owner.coordinators, aggregator, options)
        self._coordinators = owner.coordinators
        self._controllers = service
        self._network = Limits(service, groups)
        self._heard = EpochRequest(0, 0, 0)
        """The latest epoch of which a controller has told."""
        self._heard_at: Nanos = 0

    @property
    def epoch(self) -> int:
        """The present epoch."""
        return self.reception.follower.newest

    def on_message(self, source: NodeId, message: Message) -> None:
        """Hear of a later epoch, or take something else."""
        if isinstance(message, Announce) and source in self._controllers:
            self._network.check_announce(source, message)
            self._on_controller(source, message)
        else:
            super().on_message(source, message)

    def _on_controller(self, source: NodeId, message: Announce) -> None:
        latest = EpochRequest(*max(message.active, default=(0, 0)), message.steps)
        check_epoch(source, latest)
        if latest.epoch > self._heard.epoch:
            self._heard, self._heard_at = latest, self._env.now
        self._end_epoch()

    def _end_epoch(self) -> None:
        """If there is a later epoch, take nothing more of this one, and tell the coordinator, again and again
        until it has decided."""
        follower = self.reception.follower
        lane = self.reception.merge.lanes.get(self.epoch)
        if not self._takes_part or self._heard.epoch <= self.epoch or lane is None:
            return
        if lane.state in (ACTIVE, FROZEN):
            follower.take_part(Plans("removed", lane.sequencer, lane.node))
        self._env.multicast(self._coordinators, self._heard)
        if follower.planned.report is not None:
            self._env.multicast(self._coordinators, follower.planned.report)

    def on_timer(self, name: str) -> bool:
        """Tell the coordinator again that an epoch has ended, beside the rest."""
        super().on_timer(name)
        if name == TICK:
            self._end_epoch()
        return True

    def suspect(self, silent: list[int]) -> None:
        """Tell the controllers of a sequencer that is silent."""
        if silent:
            self._env.multicast(self._controllers, Suspect(tuple(silent)))

    def decided(self, step: Step) -> None:
        """Take note of the end of an epoch; of one without a message for this group nothing need be kept."""
        super().decided(step)
        lane = self.reception.merge.lanes.get(step.sequencer)
        if lane is not None and lane.final is not None and lane.final[self._group] <= lane.begun:
            self.reception.discard(step.sequencer)
            del self._ended[step.sequencer]

    def boundary(self, step: Step) -> int:
        """The first clock of a later epoch."""
        return (step.sequencer + 1) << SESSION_BITS

    def waits(self) -> list[Wait]:
        """What waits here; after the end of an epoch, all waits for the coordinator."""
        waits = super().waits()
        if self._heard.epoch > self.epoch:
            blocker = f"a decision of the coordinator where epoch {self.epoch} ends"
            what = f"epoch {self._heard.epoch}"
            waits.append(Wait(what, blocker, self._heard_at, on=self._coordinators))
        return waits
