"""One replica of a service: it executes the calls of a group, and saves them."""

from collections.abc import Mapping

from ordercast.components.execution import Call, Execution, Executor
from ordercast.core import Checkpoint, Delivered, Env, GroupId, ServiceSpec, Stamp
from ordercast.replication.active.journal import Journal
from ordercast.replication.active.options import ActiveOptions


class Replica:
    """The service of one group at one node."""

    def __init__(self, env: Env, group: GroupId, service: ServiceSpec | None, options: ActiveOptions) -> None:
        self._env = env
        self._group = group
        self._every = options.checkpoint_every
        self._journal = Journal(env, f"{group}.", options.snapshot_every)
        self.executor = Executor(env, service)

    def load(self, saved: Mapping[str, bytes]) -> None:
        """Come to where the saved state ends."""
        self._journal.load(saved, self.executor)

    def execute(self, packed: bytes, call: Call, stamp: Stamp | None) -> Execution | None:
        """Execute a call that the protocol below delivers at a place, and deliver it."""
        place = stamp or Stamp(self.executor.executed + 1, self._group)
        if not call.read:
            self._journal.note(packed, place)
        done = self.executor.execute(call, place)
        if done is not None and done.fresh:
            self._env.deliver(Delivered(call.bundle, (self._group,), call.client, done.stamp))
            if self._every and self.executor.is_checkpoint(self._every):
                self._env.deliver(Checkpoint(self._group, done.stamp, *self.executor.checkpoint()[1]))
        return done

    def prune(self) -> None:
        """Save a snapshot instead of many calls."""
        self._journal.prune(self.executor)
