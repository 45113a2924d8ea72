"""The identities that the senders of a host give to messages, over all its lives.

The host reserves many numbers at a time in its store before use. So if a life is killed, some numbers
stay unused, and no two messages ever have the same number.

A host that comes back as a new member has forgotten which numbers it used. It goes on in the upper half of
all numbers, at a place that the time gives: no earlier life has come as far, unless it sent more than a
thousand messages a second for as long as it kept its state.
"""

from collections.abc import Mapping

from ordercast.core import SECOND, MessageId, Nanos, NodeId, message_id, message_number
from ordercast.core.ids import NUMBER_BITS, NUMBER_MAX
from ordercast.kernel.backlog import Backlog
from ordercast.net.host.store import Store
from ordercast.net.host.turn import Turn

OURS = -1
"""The store keeps the host's own state under this node number, which no node has."""
RESERVED = 1 << 24
"""How many message numbers are reserved at a time."""
PER_SECOND_BITS = 10
_UPPER_HALF = 1 << (NUMBER_BITS - 1)
_YEAR_2024_S = 1_704_067_200


class Identities:
    """The numbers that are reserved for each sender of a host."""

    def __init__(self, backlogs: Mapping[NodeId, Backlog], store: Store, turn: Turn) -> None:
        self._backlogs = backlogs
        self._store = store
        self._turn = turn
        self.ends: dict[NodeId, MessageId] = {}
        """For each sender, the identity at which more must be reserved."""

    def begin(self, now: Nanos) -> None:
        """Begin a life: go on after all identities that earlier lives may have used."""
        used = self._store.load(OURS)
        first = _first_as_new(now) if self._store.as_new else 0
        for node, backlog in self._backlogs.items():
            backlog.next_message = message_id(node, int(used.get(_name(node), first)))
            self.set_aside(node)

    def set_aside(self, node: NodeId) -> None:
        """Reserve identities from the next one on."""
        end = message_number(self._backlogs[node].next_message) + RESERVED
        self.ends[node] = message_id(node, min(end, NUMBER_MAX))
        self._turn.saves[OURS, _name(node)] = _text(end)

    def skip(self, node: NodeId, count: int) -> None:
        """Before a life: note that `count` identities were used, which the store may have forgotten."""
        if int(self._store.load(OURS).get(_name(node), b"0")) < count:
            self._store.commit({(OURS, _name(node)): _text(count)})

    def give_back(self) -> None:
        """End a life in good order: the next one goes on with the identities that this one did not use."""
        self._store.commit(
            {
                (OURS, _name(node)): _text(message_number(backlog.next_message))
                for node, backlog in self._backlogs.items()
            }
        )


def _first_as_new(now: Nanos) -> int:
    """The first number of a new member, by the time at which it begins; enough for seventeen years."""
    seconds = max(0, now // SECOND - _YEAR_2024_S)
    return _UPPER_HALF + (seconds << PER_SECOND_BITS) % (_UPPER_HALF - RESERVED)


def _name(node: NodeId) -> str:
    return f"messages {node}"


def _text(number: int) -> bytes:
    return str(number).encode()
