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
            asked = (entry.key[0],) if entry.final is None and not recovery.missing(entry) else ()
            yield Wait(key_name(entry.key), blocker, entry.since, entry.payload, on=asked)


def _blocker(entry: Entry, first: Entry | None, clock: int, recovery: Recovery) -> str:
    missing = recovery.missing(entry)
    if missing:
        names = ", ".join(map(str, missing))
        return f"a timestamp from group {names}, asked for in place of the client"
    if entry.final is None:
        return f"the final timestamp from node {entry.key[0]}"
    if first is not None and first is not entry:
        place = (
            "its final timestamp is not known" if first.final is None else "the group's clock is behind it"
        )
        return f"{key_name(first.key)} at {first.proposal}, which may come first; {place}"
    return f"the group's clock, which is at {clock}, to reach the final timestamp {entry.final}"
