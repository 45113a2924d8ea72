"""Locks on keys: for each key a queue, in the order in which the owners asked.

An owner asks for all of its locks at once, and holds them when in the queue of each key nobody is before it
who excludes it. All owners ask in one order, so nobody waits in a circle. Locks for reading are shared.
"""

from ordercast.core.ids import MessageId
from ordercast.core.shard import Keys


class Locks:
    """The locks of one shard. Equal requests in an equal order give equal locks."""

    __slots__ = ("_holders", "_queues", "owners")

    def __init__(self) -> None:
        self.owners: dict[MessageId, Keys] = {}
        """Who holds locks or waits for them, in the order in which they asked."""
        self._holders: set[MessageId] = set()
        """Those who hold all that they asked for."""
        self._queues: dict[str, dict[MessageId, bool]] = {}
        """For each key who asked for it, and whether to change it."""

    def free(self, keys: Keys) -> bool:
        """Whether nobody has asked for a lock that excludes one of these."""
        queues = self._queues
        if any(key in queues for key in keys.writes):
            return False
        return not any(any(queues.get(key, {}).values()) for key in keys.reads)

    def holds(self, owner: MessageId) -> bool:
        """Whether an owner holds all of its locks."""
        return owner in self._holders

    def ask(self, owner: MessageId, keys: Keys) -> bool:
        """Ask for locks on all these keys; return whether the owner holds them at once."""
        self.owners[owner] = keys
        for key in keys.writes:
            self._queues.setdefault(key, {})[owner] = True
        for key in keys.reads:
            self._queues.setdefault(key, {})[owner] = False
        return self._grant(owner)

    def leave(self, owner: MessageId) -> list[MessageId]:
        """Give up the locks of an owner, or its wait; return those who hold all their locks because of that,
        in the order in which they had asked."""
        keys = self.owners.pop(owner)
        self._holders.discard(owner)
        heads: set[MessageId] = set()
        for key in keys.all:
            queue = self._queues[key]
            del queue[owner]
            heads.update(_head(queue))
            if not queue:
                del self._queues[key]
        heads -= self._holders
        return [one for one in self.owners if one in heads and self._grant(one)] if heads else []

    def _grant(self, owner: MessageId) -> bool:
        """Give an owner its locks, if it is at the head of all queues."""
        granted = all(owner in _head(self._queues[key]) for key in self.owners[owner].all)
        if granted:
            self._holders.add(owner)
        return granted


def _head(queue: dict[MessageId, bool]) -> list[MessageId]:
    """Who has the lock of a queue: its first one, or all who share it before somebody who does not."""
    head: list[MessageId] = []
    for one, changes in queue.items():
        if changes:
            return head or [one]
        head.append(one)
    return head
