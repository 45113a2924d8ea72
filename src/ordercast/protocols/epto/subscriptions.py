"""The groups whose events a peer delivers, each from a place in the order on.

Every peer relays and orders the events of all groups, so it can join or leave one whenever it likes, and
nobody else needs to know. It joins where it is in the order: it delivers what comes after. A peer that has
just started, or that has forgotten where it was, is nowhere yet. It joins where the logical time is, as soon
as it knows that (`newcomer.py`): what others sent before is not for it.

A place is a key, like that of an event. After all events of a timestamp comes the key with the number of
peers as its source, which no event has.
"""

from collections.abc import Collection, Iterable

import msgspec

from ordercast.core import Env, GroupId, Groups, Joined, Left, Stamp
from ordercast.protocols.epto.messages import Key
from ordercast.protocols.epto.ordering import START

GROUPS = "groups"
"""The name of the saved state."""


class Subscriptions:
    """The groups of one peer."""

    __slots__ = ("_durable", "_env", "_peers", "_places", "_wanted")

    def __init__(self, env: Env, groups: Iterable[GroupId], peers: int, *, durable: bool) -> None:
        self._env = env
        self._peers = peers
        self._durable = durable
        self._places: dict[GroupId, Key] = dict.fromkeys(groups, START)
        """The events after this place are delivered."""
        self._wanted: list[GroupId] = []
        """Groups to join when the time is known."""

    @property
    def groups(self) -> Collection[GroupId]:
        """The groups that the peer is in."""
        return self._places.keys()

    def restore(self, saved: bytes) -> None:
        """Go on with the groups of an earlier life."""
        self._places = msgspec.msgpack.decode(saved, type=dict[GroupId, Key])

    def receives(self, key: Key, groups: Groups) -> bool:
        """Whether an event is to be delivered here."""
        places = self._places
        for group in groups:
            place = places.get(group)
            if place is not None and place < key:
                return True
        return False

    def want(self, group: GroupId) -> None:
        """Join a group as soon as the peer knows where it is in the order."""
        self._wanted.append(group)

    def join_wanted(self, last: Key, time: int) -> None:
        """Join the wanted groups after the last event that the peer has ordered, or else after this time."""
        ts = last[0] if last != START else time
        for group in self._wanted:
            self._enter(group, (ts, self._peers, 0))
        self._wanted.clear()

    def join_again(self, place: Key) -> None:
        """Join all groups of the peer anew, at a place: it has forgotten where it was."""
        for group in list(self._places):
            self._enter(group, place)

    def leave(self, group: GroupId, last: Key) -> None:
        """Leave a group, after the last event that the peer has ordered."""
        ts, source, _ = max(last, self._places.pop(group))
        self._save()
        self._env.deliver(Left(group, stamp=Stamp(ts, source)))

    def _enter(self, group: GroupId, place: Key) -> None:
        self._places[group] = place
        self._save()
        self._env.deliver(Joined(group, stamp=Stamp(place[0], place[1])))

    def _save(self) -> None:
        if self._durable:
            self._env.save(GROUPS, msgspec.msgpack.encode(self._places))
