"""A rehearsal of a service: random operations in one process, and what each of them did.

Replicas of a service run in different processes, and must do the same. So the same rehearsal is held in two
processes whose hash orders differ, and in one in which the service is saved and restored in between; then
the accounts must be equal (`ordercast service check`).
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from ordercast.core import (
    SECOND,
    Asking,
    Context,
    LocalError,
    OperationType,
    ServiceType,
    StateMachine,
    message_id,
)
from ordercast.services.find import workload_of
from ordercast.services.workload import GENERAL

READS = 0.25
SIZE = 16
RESTORE_EVERY = 5
_START_NS = 1_700_000_000 * SECOND
_CLIENT = 1


class Deed(NamedTuple):
    """One operation of a rehearsal, and what it did."""

    operation: str
    """The operation with its arguments, for people."""
    result: str
    state: str
    """The state after it, as text; what cannot be saved begins with "!"."""


class Difference(NamedTuple):
    """The first operation that did different things in two rehearsals."""

    number: int
    """Counted from 1."""
    one: Deed
    other: Deed

    @property
    def text(self) -> str:
        """What differs, in words."""
        if self.one.result != self.other.result:
            return f"its results are {self.one.result} and {self.other.result}"
        return f"the states after it are {self.one.state} and {self.other.state}"


def rehearse(
    name: str, folder: Path | None, seed: int, count: int, *, restoring: bool = False
) -> Iterator[Deed]:
    """Call `count` random operations of a service; with `restoring`, save and restore it in between."""
    workload = workload_of(name, folder)
    kinds = ServiceType.of(workload.service)
    machine, rng = kinds.spec(name).make(), Random(seed)
    others: dict[str, StateMachine] = {}
    for number in range(count):
        drawn, arguments = workload.generate(rng, number, rng.random() < READS, SIZE)
        if drawn == GENERAL:  # its two halves are not of the service
            continue
        kind = kinds.find(drawn)
        payload = kind.pack(arguments, {})
        context = Context(message_id(_CLIENT, number), _START_NS + number * SECOND)
        before = _state(machine) if kind.reads else ""
        result = machine.read(payload, context) if kind.reads else _run(machine, payload, context, others)
        called = f"{kind.name}({', '.join(map(repr, arguments))})"
        after = _state(machine)
        if kind.reads and after != before:
            after = f"!it is a read, but it changed the state: {before} became {after}"
        yield Deed(called, _result_text(kind, result), after)
        if restoring and number % RESTORE_EVERY == RESTORE_EVERY - 1 and not after.startswith("!"):
            machine.restore(machine.snapshot())


def _run(machine: StateMachine, payload: bytes, context: Context, others: dict[str, StateMachine]) -> bytes:
    """The result of an operation; services that it asks are rehearsed along, each once."""
    found, answers = machine.begin(payload, context), 0
    while isinstance(found, Asking):
        if found.service not in others:
            others[found.service] = ServiceType.known(found.service).spec().make()
        asked = others[found.service]
        answer = (
            asked.read(found.operation, context)
            if found.read
            else _run(asked, found.operation, context, others)
        )
        answers += 1
        found = machine.resume(found.token, answer, Context(context.message, context.now_ns, answers))
    return found


def _result_text(kind: OperationType, result: bytes) -> str:
    try:
        return repr(kind.unpack_result(result))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _state(machine: StateMachine) -> str:
    try:
        state = machine.snapshot()
    except Exception as error:
        return f"!the state cannot be saved: {type(error).__name__}: {error}"
    try:
        return repr(msgspec.msgpack.decode(state))
    except (msgspec.MsgspecError, ValueError):  # the service has a snapshot of its own kind
        return repr(state)


def first_difference(one: Sequence[Deed], other: Sequence[Deed]) -> Difference | None:
    """The first operation that two rehearsals differ in."""
    for number, (left, right) in enumerate(zip(one, other, strict=True), 1):
        if left != right:
            return Difference(number, left, right)
    return None


def first_fault(deeds: Sequence[Deed]) -> tuple[int, Deed] | None:
    """The first operation after which the state cannot be saved, or a read that changed it."""
    return next(((number, deed) for number, deed in enumerate(deeds, 1) if deed.state.startswith("!")), None)


def main(arguments: Sequence[str]) -> None:
    """Hold a rehearsal for another process, and print its deeds."""
    name, folder, seed, count, restoring = arguments
    try:
        deeds = list(rehearse(name, Path(folder), int(seed), int(count), restoring=restoring == "restoring"))
    except LocalError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    sys.stdout.buffer.write(msgspec.json.encode(deeds))


if __name__ == "__main__":
    main(sys.argv[1:])
