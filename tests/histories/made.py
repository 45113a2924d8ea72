"""Histories that tests make, by correct objects and by broken ones, and linearizability by its definition."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

import msgspec

from ordercast.judge.histories import IMPOSSIBLE, Model, Operation, Register, State, TextStore, Value


def explained_by(
    model: Model, order: Sequence[Operation], operations: Sequence[Operation], end: float = inf
) -> bool:
    """Whether an order has all that was answered by the end, keeps to the times, and gives the answers."""
    if len(set(order)) != len(order) or not set(order) <= set(operations):
        return False
    due = [one for one in operations if one.answered is not None and one.answered <= end]
    if not set(due) <= set(order):
        return False
    state = model.start
    for place, operation in enumerate(order):
        if any(before(later, operation) for later in order[place:]):
            return False
        state = model.step(state, operation)
        if state is IMPOSSIBLE:
            return False
    return True


def before(one: Operation, other: Operation) -> bool:
    """Whether one operation was answered before the other was invoked."""
    return one.answered is not None and one.answered < other.invoked


def has_order(model: Model, operations: Sequence[Operation], end: float = inf) -> bool:
    """The definition: try every order, and every choice of operations of unknown outcome.

    With an end, the order need not have operations that were answered later, or invoked later.
    """
    return _extends(model, model.start, tuple(one for one in operations if one.invoked <= end), end)


def _extends(model: Model, state: State, left: tuple[Operation, ...], end: float) -> bool:
    if all(one.answered is None or one.answered > end for one in left):
        return True
    for operation in left:
        if any(before(other, operation) for other in left):
            continue
        after = model.step(state, operation)
        rest = tuple(other for other in left if other is not operation)
        if after is not IMPOSSIBLE and _extends(model, after, rest, end):
            return True
    return False


@dataclass
class Made:
    """An object that executes operations one after the other, as its model says."""

    model: Model
    rng: Random
    states: list[State] = field(default_factory=list)
    """All states that it has had on the key, the last one at the end."""

    def __post_init__(self) -> None:
        self.states.append(self.model.start)

    def execute(self, operation: Operation) -> Value:
        """Execute an operation, and answer it."""
        state = self.states[-1]
        self.states.append(self.model.step(state, operation))
        return self.answer(operation, state)

    def answer(self, operation: Operation, state: State) -> Value:
        """What the operation is answered in this state."""
        if operation.call in ("read", "get"):
            return state
        return state == operation.arguments[0] if operation.call == "cas" else None


class StaleRead(Made):
    """Sometimes answers from an earlier state."""

    def execute(self, operation: Operation) -> Value:
        if operation.call in ("read", "get") and self.rng.random() < 0.4:
            return self.rng.choice(self.states)
        return super().execute(operation)


class LostUpdate(Made):
    """Sometimes confirms an update and forgets it."""

    def execute(self, operation: Operation) -> Value:
        if operation.call not in ("read", "get") and self.rng.random() < 0.4:
            return self.answer(operation, self.states[-1])
        return super().execute(operation)


class Unseen(Made):
    """Sometimes takes back what it has shown."""

    def execute(self, operation: Operation) -> Value:
        answer = super().execute(operation)
        if len(self.states) > 1 and self.rng.random() < 0.25:
            self.states.append(self.states[-2])
        return answer


class ForgottenSwap(Made):
    """Swaps, and says that it did not."""

    def execute(self, operation: Operation) -> Value:
        answer = super().execute(operation)
        return False if operation.call == "cas" else answer


REGISTER, TEXTS = Register(), TextStore()
BROKEN: tuple[Callable[[Model, Random], Made], ...] = (StaleRead, LostUpdate, Unseen, ForgottenSwap)


@dataclass
class Clients:
    """Clients of one object. Each operation takes effect between its invocation and its answer.

    Of operations of unknown outcome, some take effect while they are under way, some later, some never.
    """

    thing: Made
    count: int
    """How many operations they invoke."""
    clients: int = 3
    unknown: float = 0.2
    """The fraction of operations of unknown outcome."""
    ties: bool = True
    """Whether events may have the same time."""
    time: int = 0
    done: list[Operation] = field(default_factory=list)
    under_way: dict[int, Operation] = field(default_factory=dict)
    answers: dict[int, Value] = field(default_factory=dict)
    """What operations under way are going to be answered: they have taken effect."""
    late: list[Operation] = field(default_factory=list)

    def run(self) -> list[Operation]:
        """All operations, by the time of their invocation."""
        for _ in range(8 * self.count):
            self.time += self.thing.rng.randint(0 if self.ties else 1, 2)
            self.act(self.thing.rng.randrange(self.clients))
        return sorted([*self.done, *self.under_way.values()], key=lambda operation: operation.invoked)

    def act(self, client: int) -> None:
        """Let one client, or an operation that is late, go one step further."""
        if client not in self.under_way:
            self.invoke(client)
        elif client not in self.answers and self.happens(0.5):
            self.answers[client] = self.thing.execute(self.under_way[client])
        elif self.happens(self.unknown):
            self.give_up(client)
        elif client in self.answers:
            begun = self.under_way.pop(client)
            self.done.append(answered(begun, self.time, self.answers.pop(client)))
        elif self.late:
            self.thing.execute(self.late.pop())

    def invoke(self, client: int) -> None:
        """Draw an operation, unless there are enough."""
        number = len(self.done) + len(self.under_way)
        if number < self.count:
            rng, call = self.thing.rng, self.thing.rng.choice(tuple(self.thing.model.calls))
            values = "xyz" if self.thing.model is TEXTS else range(3)
            drawn = tuple(rng.choice(values) for _ in range(self.thing.model.calls[call]))
            source = f"operation {number}"
            self.under_way[client] = Operation(client, call, self.time, None, drawn, source=source)

    def give_up(self, client: int) -> None:
        """Leave the outcome of an operation open. If it has not taken effect, it may do so later."""
        begun = self.under_way.pop(client)
        self.done.append(begun)
        if client not in self.answers and self.happens(0.5):
            self.late.append(begun)
        self.answers.pop(client, None)

    def happens(self, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self.thing.rng.random() < probability


def answered(begun: Operation, time: int, result: Value) -> Operation:
    """The operation, with its answer."""
    return msgspec.structs.replace(begun, answered=time, result=result)
