"""Receipts: deliveries and announced drops at receivers, and answers at clients, each counted once.

A replica of a service that takes over a state has what the state stands for, as if it had delivered it.
"""

from ordercast.core import GroupId, MessageId, NodeId
from ordercast.trace import ANSWERING, CARRYING, READ, RESTORED, RETURNING, SETTLING, Event, Kind

Place = tuple[int, int]
"""A place in the order of a group: the clock and the issuer of a stamp."""


def receipts_wanted(receivers: int, label: str | None, *, serves: bool) -> int:
    """How many receipts a submission to so many receivers will have; a read of a service is answered only."""
    if not serves:
        return receivers
    return 1 if label == READ else receivers + 1


class Receipts:
    """Counts different deliveries and announced drops; a repeated one counts once."""

    def __init__(self, *, replicated: bool = False) -> None:
        """`replicated`: the receivers are replicas of a service."""
        self._seen: set[tuple[object, ...]] = set()
        self._replicated = replicated
        self._places: dict[tuple[MessageId, GroupId], Place] = {}
        self._restored: dict[tuple[NodeId, GroupId], Place] = {}

    def note(self, event: Event) -> None:
        """Take note of an event; most kinds of events are not receipts."""
        if event.kind in CARRYING or event.kind in ANSWERING:
            self._seen.add((event.node, event.message))
            if self._replicated and event.kind in CARRYING:
                self._note_place(event)
        elif event.kind in SETTLING:
            self._seen.add((event.node, event.groups, event.stamp_issuer, event.numbers, event.config))
        elif self._replicated and event.kind in RETURNING:
            self._seen.add((event.node, event.message))
        elif event.kind is Kind.CHECKPOINT and event.label == RESTORED:
            self._note_restored(event)

    def _note_place(self, event: Event) -> None:
        place = _place(event)
        if place is None or event.message is None:
            return
        for group in event.groups or ():
            if (event.message, group) in self._places:
                continue
            self._places[event.message, group] = place
            for (node, restored_group), restored in self._restored.items():
                if group == restored_group and place <= restored:
                    self._seen.add((node, event.message))

    def _note_restored(self, event: Event) -> None:
        restored = _place(event)
        if restored is None:
            return
        for group in event.groups or ():
            key = (event.node, group)
            self._restored[key] = max(restored, self._restored.get(key, restored))
            self._seen.update(
                (event.node, message)
                for (message, known_group), place in self._places.items()
                if known_group == group and place <= restored
            )

    def has(self, node: NodeId, message: MessageId | None) -> bool:
        """Whether a node has delivered a message, or has an answer to it."""
        return (node, message) in self._seen

    def __len__(self) -> int:
        """The number of different receipts."""
        return len(self._seen)


def _place(event: Event) -> Place | None:
    if event.stamp_clock is None or event.stamp_issuer is None:
        return None
    return event.stamp_clock, event.stamp_issuer
