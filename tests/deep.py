"""Which parameters of a test only `make test-deep` tries."""

from collections.abc import Iterable
from typing import Any

import pytest


def deep_after(count: int, values: Iterable[Any]) -> list[Any]:
    """Parameters of a test: the first ones for `make test`, those after them deep."""
    return [
        value if place < count else pytest.param(value, marks=pytest.mark.deep)
        for place, value in enumerate(values)
    ]
