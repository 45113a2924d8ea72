"""A receiver of a group: a replica while it is in the group, joins it or leaves it, and nothing otherwise."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ordercast.core import Env, Explanation, GroupId, Message, NodeId, Receiver
from ordercast.replication.llft.messages import Heartbeat
from ordercast.replication.llft.names import Party
from ordercast.replication.llft.replica import Replica
from ordercast.replication.llft.seating import farewell
from ordercast.replication.llft.setting import Setting


class GroupReceiver(Receiver):
    """A node that may be a replica of one group."""

    def __init__(self, env: Env, setting: Setting, party: Party) -> None:
        super().__init__(env)
        self._setting = setting
        self._party = party
        self.replica: Replica | None = None

    @property
    def joined(self) -> Collection[GroupId]:
        """Its group, if its application was told that it is in it."""
        replica = self.replica
        return (self._party,) if replica is not None and replica.performer.seats.told else ()

    def join(self, group: GroupId) -> None:
        """Become a member, and then take a seat."""
        if self.replica is None:
            self.replica = Replica(self.env, self._setting, self._party, told=False)
            self.replica.on_start({})

    def leave(self, group: GroupId) -> None:
        """Give up the seat."""
        if self.replica is not None:
            self.replica.seating.leave()

    def on_start(self, saved: Mapping[str, bytes]) -> None:
        """Be in the group if the last life was, or if this is the first one and the plan says so."""
        inside = self.env.me in self._setting.founders(self._party)
        if bool(saved["started"]) if "started" in saved else inside:
            self.replica = Replica(self.env, self._setting, self._party)
            self.replica.on_start(saved)

    def on_message(self, source: NodeId, message: Message) -> None:
        """Let the replica handle it; outside, only tell a primary that this node is not in its group."""
        if self.replica is not None:
            self.replica.on_message(source, message)
            self._conclude()
        elif isinstance(message, Heartbeat) and source in self._setting.parties[self._party]:
            self.env.send(source, farewell(message))

    def on_timer(self, name: str) -> None:
        """Let the replica do what is due."""
        if self.replica is not None:
            self.replica.on_timer(name)
            self._conclude()

    def _conclude(self) -> None:
        if self.replica is not None and self.replica.seating.left:
            self.replica = None

    def explain(self) -> Explanation:
        """What waits at the replica."""
        if self.replica is None:
            return Explanation({"role": f"outside group {self._party}"})
        return self.replica.explain()
