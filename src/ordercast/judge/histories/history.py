"""A history: the operations of all clients on one object, and the model that says how the object behaves."""

from dataclasses import dataclass

from ordercast.core import LocalError
from ordercast.judge.histories.models import Model
from ordercast.judge.histories.operation import Operation, Value


@dataclass(frozen=True, slots=True)
class History:
    """Operations in any order; one that the model does not have is refused."""

    model: Model
    operations: tuple[Operation, ...]

    def __post_init__(self) -> None:
        for operation in self.operations:
            _check(self.model, operation)

    def parts(self) -> dict[Value, list[Operation]]:
        """The operations on each key, by the time at which they were invoked.

        A history is linearizable if the operations on each key are (Herlihy and Wing call this locality).
        """
        parts: dict[Value, list[Operation]] = {}
        for operation in sorted(self.operations, key=lambda operation: operation.invoked):
            parts.setdefault(operation.key, []).append(operation)
        return parts


def _check(model: Model, operation: Operation) -> None:
    count = model.calls.get(operation.call)
    if count is None:
        known = ", ".join(model.calls)
        raise LocalError(
            f"{operation}: a {model.name} has no operation {operation.call!r}; there are: {known}"
        )
    if len(operation.arguments) != count:
        given = len(operation.arguments)
        raise LocalError(f"{operation}: {operation.call!r} has {count} arguments, not {given}")
    if operation.answered is not None and operation.answered < operation.invoked:
        raise LocalError(f"{operation}: answered at {operation.answered}, before it was invoked")
