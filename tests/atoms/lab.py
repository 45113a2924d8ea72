"""Sequencing atoms, driven by hand: all processes of a deployment, and a network that does what a test says.

Messages travel at once, in the order in which they were sent, unless the test loses or holds them. Time
passes when the test says so. `Lab.finish` lets everything heal and names the promises that were broken.
"""

from typing import Any

from ordercast.core import (
    Delivered,
    Deployment,
    GroupId,
    Joined,
    Left,
    Message,
    NodeId,
)
from ordercast.protocols.atoms.messages import Entries
from ordercast.protocols.atoms.options import AtomsOptions
from ordercast.protocols.atoms.protocol import deploy
from ordercast.protocols.atoms.records import Placed
from tests.atoms.promises import History
from tests.hand_driven import Chosen, HandDrivenNetwork, nothing


def kinds(*types: type[Message]) -> Chosen:
    """Choose all messages of some types."""
    return lambda source, to, message: isinstance(message, types)


class Lab(HandDrivenNetwork):
    """All processes, by node."""

    def __init__(
        self,
        *groups: tuple[NodeId, ...],
        publishers: int = 1,
        joiners: int = 0,
        store: int = 1,
        **options: Any,
    ) -> None:
        self.options = AtomsOptions(store=store, **options)
        self.plan = deploy(Deployment(groups, publishers, joiners=joiners), self.options)
        super().__init__(1, {node.id: node.factory for node in self.plan.nodes})
        self.publishers, self.nodes, self.store = (
            tuple(node.id for node in self.plan.nodes if node.role == role)
            for role in ("publisher", "sequencing node", "store")
        )
        self.history = History(groups, causal=self.options.causal)
        self.start_missing()
        self.wait_ms(30)  # the store elects its leader

    # Processes

    def crash(self, *nodes: NodeId) -> None:
        """Stop processes; their disks stay. What they were about to send is lost."""
        super().crash(*nodes)
        self.history.crashed.update(node for node in nodes if node in self.publishers)

    def process(self, node: NodeId) -> Any:
        """A process that is up."""
        return self.drivers[node].process

    # The network

    def _carry(self, source: NodeId, to: NodeId, message: Message) -> None:
        if source not in self.store or to not in self.store:
            self.sent.append((source, to, message))
        super()._carry(source, to, message)

    def _handle(self, source: NodeId, to: NodeId, message: Message) -> None:
        if isinstance(message, Entries) and to not in self.nodes:
            self._see(message)
        super()._handle(source, to, message)

    def _see(self, message: Entries) -> None:
        """Note the numbers that a subscriber sees."""
        for entry in message.entries:
            if isinstance(entry, Placed):
                content = (message.group, entry.payload)
                for atom, number in entry.stamps:
                    self.history.numbers.setdefault((entry.label, atom, number), set()).add(content)

    def _note(self, node: NodeId) -> None:
        for delivery in self.drivers[node].take_delivered():
            match delivery:
                case Delivered(payload=payload, groups=(group,), stamp=stamp) if stamp is not None:
                    self.history.deliver(node, group, stamp.clock, payload.decode())
                case Joined(group=group, stamp=stamp) if stamp is not None:
                    self.history.join(node, group, stamp.clock)
                case Left(group=group, stamp=stamp) if stamp is not None:
                    self.history.leave(node, group, stamp.clock)

    # The application

    def submit(self, text: str, group: GroupId = 0, publisher: int = 0) -> bool:
        """Send a message to a group."""
        node = self.publishers[publisher]
        if not self.process(node).submit((group,), text.encode()):
            return False
        self.history.submitted[text] = (node, group)
        self._collect(node)
        self.pump()
        return True

    def join(self, node: NodeId, group: GroupId) -> None:
        """A subscriber asks to be in a group."""
        self.process(node).join(group)
        self._collect(node)
        self.pump()

    def leave(self, node: NodeId, group: GroupId) -> None:
        """A subscriber asks to be in a group no longer."""
        self.process(node).leave(group)
        self._collect(node)
        self.pump()

    # What a test looks at

    def log(self, node: NodeId, group: GroupId | None = None) -> list[str]:
        """What a subscriber has delivered, of one group or of all."""
        return [one.text for one in self.history.delivered[node] if group in (None, one.group)]

    def leader(self) -> Any:
        """The leader of the store; the latest, if an earlier one does not know of it."""
        up = [self.process(node) for node in self.store if node in self.drivers]
        return max((one for one in up if one._log.is_leader), key=lambda one: int(one._log.ballot))

    def registry(self) -> Any:
        """What the leader of the store knows."""
        return self.leader()._registry

    def distributor(self, group: GroupId) -> NodeId:
        """Who sends a group to its subscribers."""
        return int(self.registry().plans[group].holders[-1].node)

    def ingress(self, group: GroupId) -> NodeId:
        """Who takes messages to a group."""
        return int(self.registry().plans[group].hops[0].post.node)

    def count(self, *types: type[Message]) -> int:
        """How many messages of some types were sent."""
        return sum(isinstance(message, types) for _, _, message in self.sent)

    def finish(self, duration_ms: float = 1000) -> set[str]:
        """Heal everything and let it settle; the names of the promises that were broken, the best is none."""
        self.lost, self.strike = nothing, None
        self.release()
        self.start_missing()
        self.wait_ms(duration_ms)
        found = self.history.broken()
        if self.refused:
            found.add("refusals")
        doubt = any(self.process(node).in_doubt for node in self.publishers)
        return found | ({"validity"} if doubt else set())
