"""Why a message is not delivered yet, in words."""

from collections.abc import Iterator

from ordercast.core import Wait
from ordercast.protocols.atomic_multicast.messages import key_name
from ordercast.protocols.atomic_multicast.queue import Entry, Queue
from ordercast.protocols.atomic_multicast.recovery import Recovery


def explain_waits(queue: Queue, clock: int, recovery: Recovery) -> Iterator[Wait]:
    """One wait for each message that the log has brought and that is not delivered."""
    first = queue.first()
    for entry in queue.entries.values():
        if not entry.delivered:
            blocker = _blocker(entry, first, clock, recovery)
            yield Wait(key_name(entry.key), blocker, entry.since, entry.payload)


def _blocker(entry: Entry, first: Entry | None, clock: int, recovery: Recovery) -> str:
    missing = recovery.missing(entry)
    if missing:
        names = ", ".join(map(str, missing))
        return (
            f"the final timestamp is missing: asked in place of the client, no timestamp from group {names}"
        )
    if entry.final is None:
        return f"the final timestamp is missing: node {entry.key[0]} has not sent it"
    if first is not None and first is not entry:
        place = (
            "its final timestamp is not known" if first.final is None else "the group's clock is behind it"
        )
        return f"{key_name(first.key)} at {first.proposal} may come first; {place}"
    return f"the group's clock is at {clock}; the final timestamp is {entry.final}"
