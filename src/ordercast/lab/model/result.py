"""What one check of a model found, whether TLC made it on a specification or the explorer on the code."""

import msgspec

HOLDS = "holds"


def violated(property: str) -> str:
    """The outcome in which a property does not hold."""
    return f"{property} violated"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One check: what it is meant to show, and whether it did."""

    name: str
    shows: str
    states: int
    """How many distinct states were looked at."""
    seconds: float
    expected: str
    """`HOLDS`, or what `violated` makes of a property that is meant to fall."""
    found: str
    detail: str = ""
    """For people: the way to a violation."""

    @property
    def ok(self) -> bool:
        """Whether all is as expected; a violation can be what is expected."""
        return self.found == self.expected
