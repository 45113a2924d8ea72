"""The search for an order that explains all answers, after Wing and Gong (1993) and Lowe (2017).

The search goes from answer to answer, and places operations **just in time**: when an operation was answered,
it must have its place in the order, and only operations that were under way then may be placed right before
it. So a *placement* is: how many answers have been passed, which of the operations under way are placed
already, and the state after the order so far. The search goes depth first, and remembers all its placements.

Three rules keep the number of placements small. None of them loses an order:

- An operation that changes no state is placed as soon as its answer fits. Later ones do not notice.
- Operations of unknown outcome are placed only if they help. A placement is not tried if an earlier one was
  at the same answer and state, had placed the same operations under way, and had used only operations of
  unknown outcome that this one has used too: everything possible from here was possible from there.
- Of operations of unknown outcome that ask for the same, the earliest is used first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ordercast.judge.histories.models import IMPOSSIBLE, Model, State
from ordercast.judge.histories.operation import Operation
from ordercast.judge.histories.timeline import Answer, Timeline, timeline

PLACEMENTS_MAX = 2_000_000
"""How many placements a search may remember. Each takes 300 to 500 bytes."""
STATES_MAX = 10
"""How many states a counterexample lists."""
_LOOK_EVERY = 1024

Watch: TypeAlias = Callable[[int], bool]
"""Is told now and then how many placements there are, and says whether the search may go on."""
_Chain: TypeAlias = "tuple[Operation, _Chain] | None"


class Stuck(NamedTuple):
    """Why there is no order."""

    operation: Operation
    """The answer to this operation is the first that no order explains.

    Operations under way that are answered later may be left out of the order; those in it fit their answers.
    """
    under_way: tuple[Operation, ...]
    """The operations that overlap with that answer, and all earlier ones of unknown outcome."""
    order: tuple[Operation, ...]
    """One of the orders that explain all earlier answers."""
    states: tuple[State, ...]
    """The states that such orders lead to, at most `STATES_MAX`."""


class Found(NamedTuple):
    """The result of a search."""

    linearizable: bool | None
    """None if the search ended early."""
    order: tuple[Operation, ...]
    """An order that explains all answers, if there is one. Operations of unknown outcome may be left out."""
    stuck: Stuck | None
    placements: int


def endless(_: int) -> bool:
    """Watches over a search that may take as long as it needs."""
    return True


def search(
    model: Model,
    operations: Sequence[Operation],
    watch: Watch = endless,
    placements_max: int = PLACEMENTS_MAX,
) -> Found:
    """Search for an order of the operations on one key, which are sorted by the time of invocation."""
    return _Search(model, timeline(model, operations), watch, placements_max).run()


class _Placement(NamedTuple):
    passed: int
    placed: int
    used: int
    """The operations of unknown outcome that are placed."""
    state: State
    chain: _Chain
    """The order so far, the last operation first."""


@dataclass(slots=True)
class _Search:
    model: Model
    line: Timeline
    watch: Watch
    placements_max: int
    _seen: dict[tuple[int, int, State], list[int]] = field(default_factory=dict)
    _count: int = 0
    _ended: bool = False
    _furthest: _Placement | None = None
    _states: dict[State, None] = field(default_factory=dict)

    def run(self) -> Found:
        """Go depth first. Each frame has the ways to pass one answer that are left to try."""
        frames = [iter((self._pass(_Placement(0, 0, 0, self.model.start, None)),))]
        while frames and not self._ended:
            placement = next(frames[-1], None)
            if placement is None:
                frames.pop()
            elif placement.passed == len(self.line.answers):
                return Found(True, _order(placement), None, self._count)
            else:
                frames.append(self._ways(placement))
        if self._ended or self._furthest is None:
            return Found(None, (), None, self._count)
        return Found(False, (), self._stuck(self._furthest), self._count)

    def _ways(self, first: _Placement) -> Iterator[_Placement]:
        """All ways to pass the next answer; those that use few operations of unknown outcome come first.

        So a placement is tried before all those that it makes superfluous.
        """
        now, later = [first], list[_Placement]()
        while now:
            placement = self._pass(now.pop())
            if placement.passed > first.passed:
                yield placement
            elif self._is_new(placement):
                if not self._may_go_on():
                    self._ended = True
                    return
                now.extend(self._with_known(placement))
                later.extend(self._with_unknown(placement))
            if not now:
                now, later = later[::-1], []

    def _pass(self, placement: _Placement) -> _Placement:
        """Pass all answers of operations that are placed, and of those that change nothing and fit."""
        passed, placed, used, state, chain = placement
        answers, step = self.line.answers, self.model.step
        while passed < len(answers):
            answer = answers[passed]
            for bit, operation in answer.observers:
                if not placed & bit and step(state, operation) is not IMPOSSIBLE:
                    placed |= bit
                    chain = (operation, chain)
            if not placed & answer.bit:
                break
            placed ^= answer.bit
            passed += 1
        return _Placement(passed, placed, used, state, chain)

    def _is_new(self, placement: _Placement) -> bool:
        """Whether no earlier placement could do all that this one can; then it is remembered."""
        passed, placed, used, state, _ = placement
        earlier = self._seen.setdefault((passed, placed, state), [])
        if any(other & used == other for other in earlier):
            return False
        earlier.append(used)
        self._count += 1
        self._note(placement)
        return True

    def _note(self, placement: _Placement) -> None:
        """Remember what a counterexample tells: how far an order goes, and to which states."""
        if self._furthest is None or placement.passed > self._furthest.passed:
            self._furthest, self._states = placement, {}
        if placement.passed == self._furthest.passed and len(self._states) < STATES_MAX:
            self._states[placement.state] = None

    def _may_go_on(self) -> bool:
        if self._count > self.placements_max:
            return False
        return self._count % _LOOK_EVERY != 0 or self.watch(self._count)

    def _with_known(self, placement: _Placement) -> Iterator[_Placement]:
        """All ways to place one more operation whose answer is known; that of the next answer comes last."""
        passed, placed, used, state, chain = placement
        for bit, operation in reversed(self.line.answers[passed].changers):
            if not placed & bit and (after := self.model.step(state, operation)) is not IMPOSSIBLE:
                yield _Placement(passed, placed | bit, used, after, (operation, chain))

    def _with_unknown(self, placement: _Placement) -> Iterator[_Placement]:
        """All ways to place one more operation of unknown outcome, if that changes the state."""
        passed, placed, used, state, chain = placement
        for bit, operation, earlier in self.line.unanswered[: self.line.answers[passed].unanswered]:
            if not used & bit and used & earlier == earlier:
                after = self.model.step(state, operation)
                if after is not IMPOSSIBLE and after != state:
                    yield _Placement(passed, placed, used | bit, after, (operation, chain))

    def _stuck(self, furthest: _Placement) -> Stuck:
        answer = self.line.answers[furthest.passed]
        return Stuck(answer.operation, self._under_way(answer), _order(furthest), tuple(self._states))

    def _under_way(self, answer: Answer) -> tuple[Operation, ...]:
        overlapping = (*answer.observers, *answer.changers)
        known = (marked.operation for marked in overlapping if marked.bit != answer.bit)
        return *known, *(other.operation for other in self.line.unanswered[: answer.unanswered])


def _order(placement: _Placement) -> tuple[Operation, ...]:
    order, chain = [], placement.chain
    while chain is not None:
        operation, chain = chain
        order.append(operation)
    return tuple(reversed(order))
