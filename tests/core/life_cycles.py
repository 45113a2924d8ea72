"""The life cycles of the project, and which of their transitions a test has taken."""

from enum import Enum
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

import ordercast.components
import ordercast.protocols
from ordercast.core import LifeCycle

Life = LifeCycle[Any, Any]
Transition = tuple[Enum, Enum]


def all_life_cycles() -> dict[str, Life]:
    """Those of all protocols and components, by module and name."""
    found: dict[str, Life] = {}
    for package in (ordercast.protocols, ordercast.components):
        for info in walk_packages(package.__path__, f"{package.__name__}."):
            for name, thing in vars(import_module(info.name)).items():
                if isinstance(thing, LifeCycle):
                    found[f"{info.name}.{name}"] = thing
    return found


def states(life: Life) -> list[Enum]:
    """All states, those that the table does not name too."""
    kind: type[Enum] = type(life.starts[0])
    return list(kind)


def events(life: Life) -> list[Enum]:
    """All events."""
    _, first = next(iter(life.table))
    kind: type[Enum] = type(first)
    return list(kind)


def reachable(life: Life) -> set[Enum]:
    """The states that a life can come to."""
    found: set[Enum] = set(life.starts)
    while new := {to for (state, _), to in life.table.items() if state in found} - found:
        found |= new
    return found


def record(monkeypatch: pytest.MonkeyPatch, life: Life) -> set[Transition]:
    """The transitions of a life cycle that are taken from now on."""
    taken: set[Transition] = set()
    after = LifeCycle.after

    def noting(self: Life, state: Any, event: Any) -> Any:
        following = after(self, state, event)
        if self is life:
            taken.add((state, event))
        return following

    monkeypatch.setattr(LifeCycle, "after", noting)
    return taken
