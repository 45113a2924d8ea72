"""Taking the part of a client that does not send a final number.

Safe for anybody at any time: each group's timestamp of a message is decided by its log, so whoever
asks all groups computes the same maximum. A group that never got the message orders it when asked.
"""

from collections.abc import Mapping

from ordercast.core import Env, GroupId, NodeId
from ordercast.protocols.atomic_multicast.messages import Final, Key, Mark, Request, Timestamp
from ordercast.protocols.atomic_multicast.queue import Entry


class Recovery:
    """The messages whose final number this receiver is finding out."""

    __slots__ = ("_env", "_found", "_group", "_members")

    def __init__(self, env: Env, group: GroupId, members: Mapping[GroupId, tuple[NodeId, ...]]) -> None:
        self._env = env
        self._group = group
        self._members = members
        self._found: dict[Key, dict[GroupId, int]] = {}

    def ask(self, entry: Entry, floor: int) -> None:
        """Ask the receivers of the groups that have not answered yet; `floor` is the client's."""
        own = {self._group: entry.proposal[0]}
        found = self._found.setdefault(entry.key, own)
        origin, epoch, number = entry.key
        request = Request(origin, epoch, number, min(floor, number), entry.groups, entry.payload, True)
        for group in entry.groups:
            if group not in found:
                self._env.multicast(self._members[group], request)

    def answer(self, entry: Entry, message: Timestamp) -> Mark | None:
        """Take a timestamp; with the last one the final number is known, and all are told."""
        found = self._found.get(entry.key)
        if found is None or message.group not in entry.groups:
            return None
        found[message.group] = message.clock
        if len(found) < len(entry.groups):
            return None
        final = max((clock, group) for group, clock in found.items())
        nodes = (node for group in entry.groups for node in self._members[group])
        others = [node for node in nodes if node != self._env.me]
        self._env.multicast(others, Final(*entry.key, *final))
        return final

    def stop(self, key: Key) -> None:
        """The final number is known."""
        self._found.pop(key, None)

    def missing(self, entry: Entry) -> list[GroupId]:
        """The groups that have not answered; empty if nobody was asked."""
        found = self._found.get(entry.key)
        return [] if found is None else [group for group in entry.groups if group not in found]
