"""LLFT driven by hand: all replicas and clients of a deployment, and a network that does what a test says.

Messages travel at once, in the order in which they were sent, unless the test loses or holds them. Time
passes when the test says so. `Lab.finish` lets everything heal and names the promises that were broken.
"""

from typing import Any

from ordercast.core import (
    MILLISECOND,
    Deployment,
    GroupId,
    Message,
    MessageId,
    Nanos,
    NodeId,
    ServiceSpec,
    message_id,
)
from ordercast.core.bundle import pack_bundle
from ordercast.replication.llft.client import Client
from ordercast.replication.llft.connection import Connection
from ordercast.replication.llft.messages import SecondAck
from ordercast.replication.llft.messaging import Messaging
from ordercast.replication.llft.options import LlftOptions
from ordercast.replication.llft.protocol import deploy
from ordercast.replication.llft.receiver import GroupReceiver
from ordercast.replication.llft.replica import Replica
from ordercast.replication.llft.standing import Standing
from ordercast.testing import ProcessDriver, RecordingEnv
from tests.hand_driven import Chosen, HandDrivenNetwork, nothing
from tests.llft.history import History
from tests.story import Story

MEMBERS = (Standing.PRIMARY, Standing.BACKUP)
WITH_STATE = (*MEMBERS, Standing.PROPOSER, Standing.RECOVERING)


def kinds(*types: type[Message], source: NodeId | None = None, to: NodeId | None = None) -> Chosen:
    """Choose all messages of some types, of one process or to one."""
    return lambda one, other, message: (
        isinstance(message, types) and source in (None, one) and to in (None, other)
    )


class Lab(HandDrivenNetwork):
    """All processes, by node.

    A strike can also be of `primaries`: those of all groups crash. If too many would be down, the message is
    lost, and nobody crashes.
    """

    def __init__(
        self,
        replicas: int = 3,
        *,
        groups: int = 1,
        clients: int = 1,
        joiners: int = 0,
        service: ServiceSpec | None = None,
        **options: Any,
    ) -> None:
        self.options = LlftOptions(**{"checkpoint_every": 1, **options})
        deployment = Deployment(
            Deployment.disjoint(groups, replicas, clients).groups,
            clients,
            joiners=joiners,
            service=service or ServiceSpec("story", Story),
        )
        self.plan = deploy(deployment, self.options)
        super().__init__(MILLISECOND, {node.id: node.factory for node in self.plan.nodes})
        self.groups = deployment.groups
        self.clients = deployment.sender_ids()
        self.history = self.new_history()
        self.blocked: set[tuple[NodeId, NodeId]] = set()
        self.paused: dict[NodeId, list[tuple[NodeId, Message]]] = {}
        self.confirmed: list[bool] = []
        """For each `SecondAck`: whether its sender had produced the message."""
        self.details: list[tuple[str, str]] = []
        """What `finish` has found."""
        self.names: dict[str, MessageId] = {}
        self.wishes: dict[NodeId, bool] = {}
        """Who has asked last to join (True) or to leave, and has not crashed since."""
        self.start(*self.factories)
        self.wait_ms(10)

    def new_history(self) -> History:
        """What judges the promises."""
        return History(self.groups, self.plan.joiners)

    # Processes

    def crash(self, *nodes: NodeId) -> None:
        """Stop processes; their disks stay. What they were about to send is lost."""
        super().crash(*nodes)
        for node in nodes:
            self.paused.pop(node, None)
            self.wishes.pop(node, None)
            self.history.crash(node)

    def start_anew(self, *nodes: NodeId) -> None:
        """Start processes whose disks are lost, and which know only that there was an earlier life."""
        for node in nodes:
            self.history.forget(node)
            env = RecordingEnv(node, self.now, seed=node)
            env.forgot = True
            self.drivers[node] = ProcessDriver(self.factories[node], env=env)
            self._collect(node)
        self.pump()

    def may_crash(self, node: NodeId) -> bool:
        """Whether enough are left without a process, as the protocol promises to go on."""
        if node not in self.drivers:
            return False
        if node in self.clients:
            return True
        others = [one for one in self.present(self.history.home[node]) if one not in (node, *self.paused)]
        left = [self.replica(other) for other in others]
        if self.options.require_majority:
            known = {other for other in others if self.replica(other).remembers}
            ours = [self.replica(one) for one in self.present(self.history.home[node]) if one == node]
            seats = [one.performer.seats.since.keys() for one in left + ours]  # before a change, and after it
            return bool(left) and all(len(known & some) >= left[0].majority_of(some) for some in seats)
        return any(one.standing in WITH_STATE for one in left)

    def pause(self, *nodes: NodeId) -> None:
        """Let processes do nothing; what comes meanwhile waits."""
        for node in nodes:
            self.paused[node] = []

    def resume(self, *nodes: NodeId) -> None:
        """Let processes go on."""
        for node in nodes:
            for source, message in self.paused.pop(node):
                self.give(source, node, message)
        self.pump()

    def replica(self, node: NodeId) -> Replica:
        """A replica that is up."""
        replica = self.receiver(node).replica
        assert replica is not None, f"node {node} is in no group"
        return replica

    def receiver(self, node: NodeId) -> GroupReceiver:
        """A receiver that is up."""
        process = self.drivers[node].process
        assert isinstance(process, GroupReceiver)
        return process

    def present(self, group: GroupId = 0) -> list[NodeId]:
        """The nodes that are up and have a replica of a group."""
        nodes = self.history.groups[group]
        return [node for node in nodes if node in self.drivers and self.receiver(node).replica is not None]

    def join(self, node: NodeId) -> None:
        """A receiver asks to join its group, if it is up and outside."""
        if node in self.drivers and not self.receiver(node).joined:
            self._ask(node, joins=True)

    def leave(self, node: NodeId) -> None:
        """A receiver asks to leave its group, if it is up and in it."""
        if node in self.drivers and self.receiver(node).joined:
            self._ask(node, joins=False)

    def _ask(self, node: NodeId, *, joins: bool) -> None:
        self.wishes[node] = joins
        receiver, group = self.receiver(node), self.history.home[node]
        receiver.join(group) if joins else receiver.leave(group)
        self._collect(node)
        self.pump()

    def client(self, number: int = 0) -> Client:
        """A client that is up."""
        process = self.drivers[self.clients[number]].process
        assert isinstance(process, Client)
        return process

    # The network

    def cut(self, *sides: tuple[NodeId, ...]) -> None:
        """Let nothing pass between some sides. Processes that are on none still reach everybody."""
        ways = [(one, other) for a in sides for b in sides if a is not b for one in a for other in b]
        self.blocked.update(ways)

    def isolate(self, *nodes: NodeId) -> None:
        """Cut processes off from all others, and from each other."""
        for node in nodes:
            self.cut((node,), tuple(other for other in self.factories if other != node))

    def heal(self) -> None:
        """End all cuts and losses."""
        self.blocked.clear()
        self.lost = nothing

    def lose(self, chosen: Chosen, count: int = 1) -> None:
        """Lose the next messages that are chosen, so many of them."""
        left = [count]

        def lost(source: NodeId, to: NodeId, message: Message) -> bool:
            if left[0] and chosen(source, to, message):
                left[0] -= 1
                return True
            return False

        self.lost = lost

    def _note(self, node: NodeId) -> None:
        for delivery in self.drivers[node].take_delivered():
            self.history.note(node, delivery)

    def _carry(self, source: NodeId, to: NodeId, message: Message) -> None:
        message = self.plan.codec.decode(self.plan.codec.encode(message))
        self.sent.append((source, to, message))
        if isinstance(message, SecondAck) and source in self.drivers:
            known = None
            if source in self.clients or self.receiver(source).replica is not None:
                known = self._messaging(source).connections.get(message.link)
            self.confirmed.append(known is not None and known.outgoing.produced >= message.index)
        super()._carry(source, to, message)

    def _stops(self, source: NodeId, to: NodeId, message: Message) -> bool:
        return (source, to) in self.blocked or super()._stops(source, to, message)

    def _crash_struck(self, how: str, struck: NodeId) -> None:
        primaries = (self.primary(group) for group, _ in enumerate(self.groups))
        for node in list(primaries) if how == "primaries" else [struck]:
            if node is not None and self.may_crash(node):
                self.crash(node)

    def give(self, source: NodeId, to: NodeId, message: Message) -> None:
        """Let a message arrive."""
        if to in self.paused:
            self.paused[to].append((source, message))
        else:
            super().give(source, to, message)

    # Time

    def _timers(self) -> list[tuple[Nanos, NodeId, str]]:
        return [timer for timer in super()._timers() if timer[1] not in self.paused]

    # The application

    def call(self, text: str, client: int = 0, group: GroupId = 0) -> bool:
        """A client calls the service of a group."""
        node = self.clients[client]
        if node not in self.drivers:
            return False
        first = self.names.setdefault(text, message_id(node, len(self.names) + 1))
        bundle = pack_bundle(first, [self.now], [text.encode()])
        if not self.client(client).submit((group,), bundle):
            return False
        self.history.called[text] = (node, group)
        self._collect(node)
        self.pump()
        return True

    # What a test looks at

    def answers(self) -> dict[str, str]:
        """The answers that clients have, by call."""
        return {text: " ".join(answer.story) for text, answer in self.history.answers.items()}

    def told(self, node: NodeId) -> list[str]:
        """The calls that a replica has performed, from the beginning."""
        machine = self.replica(node).performer.executor._machine
        assert isinstance(machine, Story)
        return [text.decode() for text in machine.told]

    def delivered(self, node: NodeId) -> list[str]:
        """The calls that a replica has delivered in its present life."""
        return [one.text for part in self.history.lives[node].stretches for one in part]

    def standing(self, node: NodeId) -> Standing:
        """What a replica is in its group."""
        return self.replica(node).standing

    def primary(self, group: GroupId = 0) -> NodeId | None:
        """The primary of the latest view of a group."""
        leading = [node for node in self.present(group) if self.replica(node).leads]
        return max(leading, key=lambda node: self.replica(node).view, default=None)

    def members(self, node: NodeId) -> tuple[NodeId, ...]:
        """The members that a replica knows of, by precedence."""
        return tuple(one % self.plan_nodes for one in self.replica(node).membership.members)

    @property
    def plan_nodes(self) -> int:
        """How many replicas there are in all groups."""
        return sum(map(len, self.groups)) + len(self.plan.joiners)

    def connection(self, node: NodeId, client: int = 0) -> Connection:
        """A replica's end of the connection with a client."""
        party = self.replica(node).setting.client_party(self.clients[client])
        found = [one for one in self.replica(node).messaging.connections.values() if one.remote == party]
        return found[-1]

    def _messaging(self, node: NodeId) -> Messaging:
        return (
            self.client(self.clients.index(node)).messaging
            if node in self.clients
            else self.replica(node).messaging
        )

    def kept(self, node: NodeId) -> int:
        """How many messages a process keeps."""
        states = self._messaging(node).connections.values()
        return sum(len(one.incoming.kept) + len(one.outgoing.sent) for one in states)

    def count(self, *types: type[Message], source: NodeId | None = None) -> int:
        """How many messages of some types were sent, by all or by one."""
        return sum(
            isinstance(message, types) and source in (None, sender) for sender, _, message in self.sent
        )

    def sent_of(self, *types: type[Message]) -> list[tuple[NodeId, NodeId, Any]]:
        """The messages of some types, each with its source and its target."""
        return [told for told in self.sent if isinstance(told[2], types)]

    def whole(self, group: GroupId) -> bool:
        """Whether all replicas of a group are up, and members of one view."""
        if any(node not in self.drivers for node in self.history.groups[group]):
            return False
        replicas = [self.replica(node) for node in self.present(group)]
        if any(set(one.performer.seats.since) != set(self.present(group)) for one in replicas):
            return False
        views = {(one.view, one.membership.members, one.membership.change) for one in replicas}
        return (
            len(views) == 1
            and sum(one.leads for one in replicas) == 1
            and all(one.standing in MEMBERS for one in replicas)
            and len(replicas[0].membership.members) == len(replicas)
        )

    def finish(self, *, uniform: bool = True) -> set[str]:
        """Heal everything and let it settle; the names of the promises that were broken, the best is none.

        `uniform`: what crashed replicas had delivered must survive them, without `require_majority` too.
        """
        self.heal()
        self.strike = None
        self.resume(*self.paused)
        self.release()
        self.start_missing()
        self.details = []
        everything = range(len(self.groups))
        self.wait_ms(8000, until=lambda: all(map(self.whole, everything)) and not self._in_doubt())
        for client, _ in enumerate(self.clients):
            for group in everything:
                self.call(f"last-{client}-{group}-{self.now}", client, group)
        if not self.wait_ms(8000, until=lambda: not self._in_doubt()):
            self.details += [
                ("validity", str(wait))
                for n in self.clients
                for wait in self.drivers[n].process.explain().waits
            ]
        self.wait_ms(150)
        self._judge(uniform=uniform)
        return {name for name, _ in self.details}

    def _in_doubt(self) -> bool:
        return any(self.drivers[node].process.in_doubt for node in self.clients)

    def _judge(self, *, uniform: bool) -> None:
        found, orders = self.details, []
        found += [
            ("joining", f"node {node} asked to {'join' if joins else 'leave'}")
            for node, joins in self.wishes.items()
            if bool(self.receiver(node).joined) != joins
        ]
        for group, _ in enumerate(self.groups):
            members = self.present(group)
            if not self.whole(group):
                states = {node: self.replica(node).explain().state for node in members}
                found.append(("membership", f"group {group}: {states}"))
            node = self.primary(group)
            orders.append([] if node is None else self.told(node))
            if self.options.replication == "semi-active":
                found += [
                    ("states", f"node {one} has {self.told(one)}, and the primary {orders[-1]}")
                    for one in members
                    if self.told(one) != orders[-1]
                ]
        majority = self.options.require_majority
        found += self.history.broken(orders, majority=majority, uniform=uniform)
        inside = [node for group, _ in enumerate(self.groups) for node in self.present(group)]
        for node in (*inside, *self.clients):
            if self.kept(node):
                found.append(("emptied", f"node {node} keeps {self.kept(node)} messages"))
        found += [("refusals", text) for text in self.refused]
