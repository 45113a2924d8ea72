"""The connections of a group that are in use at a place of its order, and their short names.

A connection is in use from the first message that is delivered on it until it is closed or replaced. The
first message names it in full; from then on the group it comes from is name enough. All members of the group
perform the same operations, so they give the same connections the same names. Remote groups only keep the
ordering information, and need not understand it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ordercast.core import RemoteError
from ordercast.replication.llft.connection import Connection
from ordercast.replication.llft.names import Link, Party, Short, short
from ordercast.replication.llft.orders import AnyEntry, MessageOrder, OrderLog, RoundOrder


class InUse:
    """The connections in use where a member is."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._links: dict[Short, Link] = {}

    def name_of(self, link: Link) -> Link | Short:
        """What the ordering information calls a connection at the next place."""
        name = short(link, self._party)
        return name if self._links.get(name) == link else link

    def link_of(self, place: int, entry: AnyEntry) -> Link | None:
        """The connection on which an entry for one place delivers a message."""
        name = _name_in(entry)
        if name is None or isinstance(name, Link):
            return name
        link = self._links.get(name)
        if link is None:
            raise RemoteError(f"place {place} names connection {name}, which is not in use")
        return link

    def without(self, going_on: Iterable[Link]) -> tuple[Link, ...]:
        """All but some."""
        known = set(going_on)
        return tuple(link for link in self._links.values() if link not in known)

    def begin(self, link: Link) -> None:
        """A message of a connection is delivered."""
        self._links[short(link, self._party)] = link

    def end(self, link: Link) -> None:
        """A connection is closed."""
        name = short(link, self._party)
        if self._links.get(name) == link:
            del self._links[name]

    def restore(self, connections: Mapping[Link, Connection]) -> None:
        """Go on with the connections of a checkpoint."""
        self._links.clear()
        for link in sorted(connections):
            if connections[link].incoming.delivered:
                self.begin(link)

    def has_messages(
        self, log: OrderLog, after: int, place: int, connections: Mapping[Link, Connection]
    ) -> bool:
        """Whether the messages of all places from one to the last that was performed are still here."""
        named: dict[Short, Link | None] = dict(self._links)
        later: Counter[Link] = Counter()
        for at in range(place, after, -1):
            name = _name_in(log.at(at))
            if name is None:
                continue
            if isinstance(name, Link):
                link: Link | None = name
                named[short(name, self._party)] = None  # before this, the name was that of another connection
            else:
                link = named.get(name)
            connection = None if link is None else connections.get(link)
            if link is None or connection is None:
                return False
            if connection.incoming.delivered - later[link] not in connection.incoming.kept:
                return False
            later[link] += 1
        return True


def _name_in(entry: AnyEntry) -> Link | Short | None:
    """What an entry for one place calls the connection on which a message is delivered."""
    match entry:
        case MessageOrder():
            return entry.link
        case RoundOrder():
            return entry.links[0]
    return None
