"""What known events wait for, and how sure it is that all peers know them (section 8.4)."""

from collections.abc import Callable, Iterable, Iterator

from ordercast.core import Nanos, Stamp, Wait
from ordercast.protocols.epto.messages import Event, Key
from ordercast.protocols.epto.stability import Stability


def explain_waits(
    waiting: Iterable[tuple[Key, Event, int]],
    ttl: int,
    round_ns: Nanos,
    stability: Stability,
    now: Nanos,
    rounds_here: Callable[[Key], int],
) -> Iterator[Wait]:
    """One wait for each known event: its own age, or an event before it that is not old enough."""
    blocking: Key | None = None
    for key, event, age in waiting:
        if age <= ttl:
            blocker = f"round {ttl}, after which all peers know it; this is round {age}"
            blocking = blocking or key
        else:
            blocker = (
                "the next round, which delivers it"
                if blocking is None
                else f"the {_name(blocking)}, which is not old enough yet"
            )
        rounds = rounds_here(key)
        yield Wait(
            _name(key),
            blocker,
            max(0, now - rounds * round_ns),
            event.payload,
            stability.stable(min(age, ttl), rounds),
            event.groups,
            Stamp(event.ts, event.source),
        )


def _name(key: Key) -> str:
    ts, source, _ = key
    return f"event of node {source} at {ts}"
