"""The judgement on a history: linearizable, not linearizable with the reason, or not decided."""

from typing import NamedTuple

from ordercast.judge.finding import listed
from ordercast.judge.histories.history import History
from ordercast.judge.histories.operation import Value, shown
from ordercast.judge.histories.search import PLACEMENTS_MAX, STATES_MAX, Stuck, Watch, endless, search

ORDER_SHOWN = 3
"""How many operations an explanation shows of the end of an order."""


class Counterexample(NamedTuple):
    """The key whose operations have no order, and where the search for one ended."""

    key: Value
    stuck: Stuck


class Judgement(NamedTuple):
    """Whether a history is linearizable; None if the search ended early."""

    linearizable: bool | None
    counterexample: Counterexample | None = None
    undecided: tuple[Value, ...] = ()
    """The keys on which the search ended early."""


def judge_history(
    history: History, watch: Watch = endless, placements_max: int = PLACEMENTS_MAX
) -> Judgement:
    """Judge a history key by key, until one of them has no order."""
    undecided: list[Value] = []
    for key, operations in history.parts().items():
        found = search(history.model, operations, watch, placements_max)
        if found.stuck is not None:
            return Judgement(False, Counterexample(key, found.stuck))
        if found.linearizable is None:
            undecided.append(key)
    return Judgement(None, None, tuple(undecided)) if undecided else Judgement(True)


def explained(counterexample: Counterexample) -> list[str]:
    """The reason why a history is not linearizable, as sentences for people."""
    stuck = counterexample.stuck
    key = "" if counterexample.key is None else f" of {shown(counterexample.key)}"
    lines = [
        f"no order explains this answer: {stuck.operation}",
        f"every order that explains all earlier answers leads to a value{key} of {_states(stuck)}",
    ]
    if stuck.order:
        more = "..., " if len(stuck.order) > ORDER_SHOWN else ""
        last = ", ".join(map(str, stuck.order[-ORDER_SHOWN:]))
        lines.append(f"one of them has {len(stuck.order)} operations: {more}{last}")
    unused = [operation for operation in stuck.under_way if operation not in stuck.order]
    if unused:
        lines.append(f"placing more of what was under way does not help: {listed(unused)}")
    return lines


def _states(stuck: Stuck) -> str:
    names = [shown(state) for state in stuck.states]
    if len(names) == STATES_MAX:
        return f"{', '.join(names)}, and perhaps others"
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
