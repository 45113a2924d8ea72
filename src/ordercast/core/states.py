"""Life cycles as tables: which event takes which state to which.

A class with a life cycle has its states and its events as enums, and one table at the top of its module.
Every change of state goes through the table, so what is not written there does not happen: the event is
refused before anything has changed. What is true only in some states is derived from the state, never kept
beside it.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from ordercast.core.errors import LocalError, OrdercastError

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


class LifeCycle(Generic[S, E]):
    """A table of transitions, the states in which a life may begin, and whose fault a refused event is."""

    __slots__ = ("_blame", "_name", "starts", "table")

    def __init__(
        self,
        name: str,
        starts: tuple[S, ...],
        table: Mapping[tuple[S, E], S],
        blame: type[OrdercastError] = LocalError,
    ) -> None:
        self._name = name
        self._blame = blame
        self.starts = starts
        self.table = table

    def after(self, state: S, event: E) -> S:
        """The state after an event; an event that the table does not have for this state is an error."""
        try:
            return self.table[state, event]
        except KeyError:
            raise self._blame(
                f"{self._name}: event {event.value!r} is not allowed in state {state.value!r}"
            ) from None
