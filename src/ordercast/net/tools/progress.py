"""The messages that a receiver delivered in this life, in little memory: runs of identities by sender.

In the same way: the operations of a service that a client got an answer to, or gave up."""

from ordercast.core import MessageId, NodeId, message_sender

RUNS_MAX = 64
"""How many runs, the latest, are kept per sender; a protocol that keeps a sender's order needs one."""

Run = tuple[MessageId, MessageId]
"""The first identity and the one after the last."""


class Progress:
    """The identities delivered at one receiver."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: dict[NodeId, list[list[MessageId]]] = {}

    def add(self, first: MessageId, count: int) -> None:
        """Note that `count` messages with consecutive identities were delivered."""
        runs = self._runs.setdefault(message_sender(first), [])
        if runs and runs[-1][1] == first:
            runs[-1][1] = first + count
            return
        runs.append([first, first + count])
        if len(runs) > 1:
            runs.sort()
            _join(runs)
            del runs[:-RUNS_MAX]

    def runs(self, sender: NodeId) -> list[Run]:
        """The runs of a sender's messages that were delivered, ascending."""
        return [(first, end) for first, end in self._runs.get(sender, [])]


class Outcomes:
    """What became of the operations of one client of a service."""

    __slots__ = ("answered", "unknown")

    def __init__(self) -> None:
        self.answered = Progress()
        self.unknown = Progress()


def _join(runs: list[list[MessageId]]) -> None:
    """Merge runs that touch."""
    joined = [runs[0]]
    for first, end in runs[1:]:
        if first <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([first, end])
    runs[:] = joined
