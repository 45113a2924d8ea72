"""A sequencer's acknowledgements: which requests it has stamped, and which are safe.

A request is *safe* when a majority of the receivers of each of its groups has its packet and all before it.
Every quorum that removes the sequencer then has a receiver that knows the packet, so it is delivered, or its
drop is notified. That it was stamped says less: if the sequencer is cut off, nobody may have the packet.

A receiver that loses its state after its receipt still counts. Its new life has heard from the sequencer how
many numbers there are, or else its report does not count for the removal (`Reports`). So the packet is still
delivered or its drop notified, and no receiver must send its receipts again.

Receivers tell a sequencer every `ack_ns` how far they are (`Receipt`), and it tells senders as often: one
message for all requests of a sender, so that acknowledgements are few. Where traffic is dense both tell
sooner: a sender keeps a limited number of bytes, and waits for acknowledgements when it has no room.
"""

from collections import deque
from collections.abc import Mapping

from ordercast.core import Env, GroupId, Groups, Nanos, NodeId, RemoteError
from ordercast.protocols.hydra.messages import Stamped
from ordercast.protocols.hydra.options import ACK_BYTES

ACK = "ack"
"""The timer of the sequencer to send acknowledgements."""
EVERYTHING = 1 << 63
"""Above all numbers."""
NUMBERS_MAX = 512
"""So many requests are acknowledged with one message."""


class Acks:
    """The requests that are not safe yet, and the acknowledgements that are due."""

    def __init__(self, env: Env, members: Mapping[GroupId, tuple[NodeId, ...]], wait_ns: Nanos) -> None:
        self._env = env
        self._members = members
        self._home = {node: group for group, nodes in members.items() for node in nodes}
        self._wait_ns = wait_ns
        self._open: dict[Groups, deque[tuple[NodeId, int, tuple[int, ...], int]]] = {}
        """By groups: sender, number, stamp and size of the requests that are not safe, in their order."""
        self._known: set[tuple[NodeId, int]] = set()
        """Sender and number of the same."""
        self._fronts: dict[NodeId, int] = {}
        """How far each receiver is."""
        self._safe = _beginning(members)
        """How far a majority of each group is."""
        self._stamped: dict[NodeId, list[int]] = {}
        self._safe_of: dict[NodeId, list[int]] = {}
        self._bytes = 0
        """The bytes of the requests that are safe and not acknowledged as such."""

    @property
    def is_full(self) -> bool:
        """Whether so much is due that it should not wait."""
        return self._bytes >= ACK_BYTES

    def stamp(self, sender: NodeId, number: int, groups: Groups, stamp: tuple[int, ...], size: int) -> None:
        """A request with a payload of this size is stamped."""
        waiting = self._open.get(groups)
        if waiting is None:
            waiting = self._open[groups] = deque()
        waiting.append((sender, number, stamp, size))
        self._known.add((sender, number))
        self._owe(self._stamped, sender, number)

    def repeat(self, sender: NodeId, number: int) -> None:
        """A copy of a stamped request came: the last acknowledgement may have been lost."""
        unsafe = (sender, number) in self._known
        self._owe(self._stamped if unsafe else self._safe_of, sender, number)

    def on_receipt(self, receiver: NodeId, front: int) -> None:
        """A receiver has all packets to its group up to this number."""
        group = self._home.get(receiver)
        if group is None:
            raise RemoteError(f"node {receiver} acknowledges packets, but is no receiver")
        if front <= self._fronts.get(receiver, 0):
            return
        self._fronts[receiver] = front
        nodes = self._members[group]
        fronts = sorted((self._fronts.get(node, 0) for node in nodes), reverse=True)
        if fronts[len(nodes) // 2] > self._safe[group]:
            self._safe[group] = fronts[len(nodes) // 2]
            self._settle(group)

    def _settle(self, group: GroupId) -> None:
        safe = self._safe
        for groups, waiting in self._open.items():
            if group in groups:
                while waiting and all(n <= safe[g] for g, n in zip(groups, waiting[0][2], strict=True)):
                    sender, number, _, size = waiting.popleft()
                    self._bytes += size
                    self._known.discard((sender, number))
                    self._owe(self._safe_of, sender, number)

    def _owe(self, due: dict[NodeId, list[int]], sender: NodeId, number: int) -> None:
        if not self._stamped and not self._safe_of:
            self._env.set_timer(ACK, self._wait_ns)
        numbers = due.get(sender)
        if numbers is None:
            due[sender] = [number]
        else:
            numbers.append(number)

    def send(self, sequencer: int) -> None:
        """Acknowledge everything that is due."""
        stamped, safe = self._stamped, self._safe_of
        self._stamped, self._safe_of, self._bytes = {}, {}, 0
        for sender in sorted(stamped.keys() | safe.keys()):
            new, settled = stamped.get(sender, []), safe.get(sender, [])
            for start in range(0, max(len(new), len(settled)), NUMBERS_MAX):
                part = slice(start, start + NUMBERS_MAX)
                self._env.send(sender, Stamped(sequencer, tuple(new[part]), tuple(settled[part])))

    def clear(self) -> None:
        """The sequencer is removed; under its next number it counts from the beginning."""
        self._open.clear()
        self._known.clear()
        self._fronts.clear()
        self._safe = _beginning(self._members)
        self._stamped, self._safe_of, self._bytes = {}, {}, 0


def _beginning(members: Mapping[GroupId, tuple[NodeId, ...]]) -> dict[GroupId, int]:
    """Nobody has anything, and a group without receivers needs nothing."""
    return {group: 0 if nodes else EVERYTHING for group, nodes in members.items()}
