"""A toy plan in the shape of Hydra: senders, relays on switches, and receivers that deliver at once."""

from collections.abc import Mapping

from ordercast.core import (
    Codec,
    Delivered,
    Deployment,
    Env,
    Explanation,
    Groups,
    Guarantees,
    Member,
    Message,
    Node,
    NodeId,
    Payload,
    Plan,
    Process,
)


class Carry(Message, frozen=True, tag=1):
    """A message, to a relay or from it."""

    groups: Groups
    sender: int
    payload: Payload


class Sender(Member):
    def __init__(self, env: Env, relays: tuple[NodeId, ...]) -> None:
        super().__init__(env)
        self._relays = relays

    def submit(self, groups: Groups, payload: bytes) -> bool:
        self.env.send(self.env.rng.choice(self._relays), Carry(groups, self.env.me, payload))
        return True

    def on_message(self, source: NodeId, message: Message) -> None:
        """Nothing is sent to senders."""

    def explain(self) -> Explanation:
        return Explanation({"role": "sender"})


class Relay(Process):
    def __init__(self, env: Env, members: Mapping[int, tuple[NodeId, ...]]) -> None:
        super().__init__(env)
        self._members = members

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Carry)
        self.env.multicast(self._members[message.groups[0]], message)

    def explain(self) -> Explanation:
        return Explanation({"role": "relay"})


class Receiver(Process):
    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Carry)
        self.env.deliver(Delivered(message.payload, message.groups, message.sender))

    def explain(self) -> Explanation:
        return Explanation({"role": "receiver"})


def relay_plan(deployment: Deployment, relays: int) -> Plan:
    """So many relays, each a switch."""
    members = dict(enumerate(deployment.groups))
    senders = deployment.sender_ids()
    first = deployment.receivers + deployment.senders
    switches = tuple(range(first, first + relays))
    nodes = [Node(node, "receiver", node, Receiver) for node in range(deployment.receivers)]
    nodes += [Node(node, "sender", node, lambda env: Sender(env, switches)) for node in senders]
    nodes += [Node(node, "switch", node, lambda env: Relay(env, members)) for node in switches]
    return Plan("relay", Guarantees(), tuple(nodes), members, senders, Codec([Carry]))
