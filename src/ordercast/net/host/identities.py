"""The identities that the senders of a host give to messages, over all its lives.

Numbers are set aside in the store before they are used, many at a time: so a life that is killed costs some
numbers, and no two messages ever have the same.
"""

from collections.abc import Mapping

from ordercast.core import MessageId, NodeId, message_id, message_number
from ordercast.core.ids import NUMBER_MAX
from ordercast.kernel.backlog import Backlog
from ordercast.net.host.store import Store
from ordercast.net.host.turn import Turn

OURS = -1
"""The store keeps what the host itself must remember under this number, which no node has."""
RESERVED = 1 << 24
"""Message numbers that are set aside at a time."""


class Identities:
    """For each sender of a host, the numbers that were set aside."""

    def __init__(self, backlogs: Mapping[NodeId, Backlog], store: Store, turn: Turn) -> None:
        self._backlogs = backlogs
        self._store = store
        self._turn = turn
        self.ends: dict[NodeId, MessageId] = {}
        """For each sender the identity at which more must be set aside."""

    def begin(self) -> None:
        """A life begins: go on after all that earlier ones may have used."""
        used = self._store.load(OURS)
        for node, backlog in self._backlogs.items():
            backlog.next_message = message_id(node, int(used.get(_name(node), b"0")))
            self.set_aside(node)

    def set_aside(self, node: NodeId) -> None:
        """Set identities aside, from the next one on."""
        end = message_number(self._backlogs[node].next_message) + RESERVED
        self.ends[node] = message_id(node, min(end, NUMBER_MAX))
        self._turn.saves[OURS, _name(node)] = _text(end)

    def skip(self, node: NodeId, count: int) -> None:
        """Before a life begins: so many identities were used, which the store may have forgotten."""
        if int(self._store.load(OURS).get(_name(node), b"0")) < count:
            self._store.commit({(OURS, _name(node)): _text(count)})

    def give_back(self) -> None:
        """A life has ended well: let the next go on with the identities that this one did not use."""
        self._store.commit(
            {
                (OURS, _name(node)): _text(message_number(backlog.next_message))
                for node, backlog in self._backlogs.items()
            }
        )


def _name(node: NodeId) -> str:
    return f"messages {node}"


def _text(number: int) -> bytes:
    return str(number).encode()
