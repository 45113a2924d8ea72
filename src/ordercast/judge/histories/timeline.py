"""The timeline of a part of a history: its answers one after the other, and what was under way at each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from ordercast.judge.histories.models import Model
from ordercast.judge.histories.operation import Operation


class Marked(NamedTuple):
    """An operation and the bit that stands for it in a set of operations."""

    bit: int
    operation: Operation


class Answer(NamedTuple):
    """The moment at which an operation was answered."""

    operation: Operation
    bit: int
    observers: tuple[Marked, ...]
    """The operations under way that change no state; the answered one is among them if it is such."""
    changers: tuple[Marked, ...]
    """The other operations under way whose answers are known; the answered one comes first."""
    unanswered: int
    """How many operations of unknown outcome had been invoked."""


class Unanswered(NamedTuple):
    """An operation of unknown outcome."""

    bit: int
    operation: Operation
    earlier: int
    """The bits of earlier operations that ask for the same. They are used first: any of them does as well."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """All answers in the order of time, and all operations of unknown outcome in the order of invocation."""

    answers: list[Answer]
    unanswered: list[Unanswered]


@dataclass(slots=True)
class _Sweep:
    """A walk through the events of a part. It uses bits again, so that sets stay small."""

    model: Model
    answers: list[Answer] = field(default_factory=list)
    unanswered: list[Unanswered] = field(default_factory=list)
    _under_way: dict[int, Marked] = field(default_factory=dict)
    _free: list[int] = field(default_factory=list)
    _alike: dict[tuple[object, ...], int] = field(default_factory=dict)

    def invoked(self, index: int, operation: Operation) -> None:
        """Take note of an invocation."""
        if operation.known:
            place = heappop(self._free) if self._free else len(self._under_way)
            self._under_way[index] = Marked(1 << place, operation)
            return
        kind, bit = (operation.call, operation.arguments), 1 << len(self.unanswered)
        self.unanswered.append(Unanswered(bit, operation, self._alike.get(kind, 0)))
        self._alike[kind] = self._alike.get(kind, 0) | bit

    def answered(self, index: int, operation: Operation) -> None:
        """Take note of an answer."""
        own = self._under_way[index]
        observers: list[Marked] = []
        changers: list[Marked] = []
        for marked in (own, *(other for other in self._under_way.values() if other is not own)):
            (observers if self.model.observes(marked.operation) else changers).append(marked)
        self.answers.append(
            Answer(operation, own.bit, tuple(observers), tuple(changers), len(self.unanswered))
        )
        del self._under_way[index]
        heappush(self._free, own.bit.bit_length() - 1)


def timeline(model: Model, operations: Sequence[Operation]) -> Timeline:
    """The timeline of operations that are sorted by the time at which they were invoked."""
    sweep = _Sweep(model)
    for _, is_answer, index in sorted(_events(operations)):
        (sweep.answered if is_answer else sweep.invoked)(index, operations[index])
    return Timeline(sweep.answers, sweep.unanswered)


def _events(operations: Sequence[Operation]) -> Iterator[tuple[int, bool, int]]:
    """Times, with invocations before answers at the same time: such operations overlap."""
    for index, operation in enumerate(operations):
        yield operation.invoked, False, index
        if operation.answered is not None:
            yield operation.answered, True, index
