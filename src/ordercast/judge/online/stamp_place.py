"""Places in the order of a group, as the stamps of rows name them."""

from ordercast.trace import Event

StampPlace = tuple[int, int]
"""The clock and the issuer of a stamp."""
FIRST: StampPlace = (-1 << 63, 0)
"""Before every place."""


def place_of(event: Event) -> StampPlace | None:
    """The place that a row names."""
    if event.stamp_clock is None or event.stamp_issuer is None:
        return None
    return event.stamp_clock, event.stamp_issuer


def place_text(place: StampPlace | None) -> str:
    """A place for people."""
    if place is None:
        return "no place"
    return "the place before all" if place == FIRST else f"the place {place}"
