"""The result of one check of a model, by TLC on a specification or by the explorer on the code."""

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
    """Number of distinct states that were checked."""
    seconds: float
    expected: str
    """`HOLDS`, or what `violated` makes of a property that is meant to fall."""
    found: str
    detail: str = ""
    """Details for people, with the steps that lead to a violation."""

    @property
    def ok(self) -> bool:
        """Whether the result is as expected; a check can expect a violation."""
        return self.found == self.expected
