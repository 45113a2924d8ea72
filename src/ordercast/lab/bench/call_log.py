"""What one program called and was answered in a measurement, and whether that can have come of one service.

Each reply names the place at which its operation was executed. So the operations are given to a fresh service
in the order of their places, and its answers must be the same. And the order must respect time: no operation
was answered before one with an earlier place was called.
"""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from ordercast.core import Context, MessageId, Nanos, ServiceSpec, StateMachine, message_name
from ordercast.net.host.delivered import RepliedBundle

VIOLATIONS_TOLD = 10


class AnsweredCall(NamedTuple):
    """An operation with its answer."""

    place: tuple[int, int]
    """Where it was executed: a clock and an issuer."""
    read: bool
    """A read stands behind the operation at its place."""
    message: MessageId
    called_ns: Nanos
    answered_ns: Nanos
    digest: int


class CallLog:
    """The calls of one client, in the order of their identities."""

    def __init__(self) -> None:
        # What is noted during the measurement is noted by bundles, so that it costs next to nothing.
        self._submitted: list[tuple[MessageId, Sequence[bytes]]] = []
        self._answered: list[RepliedBundle] = []
        self.answered = 0
        """How many operations have an answer."""

    def on_submit(self, first: MessageId, operations: Sequence[bytes]) -> None:
        """Note what was called."""
        self._submitted.append((first, operations))

    def on_answer(self, answered: RepliedBundle) -> None:
        """Note a bundle of answers."""
        self._answered.append(answered)
        self.answered += len(answered.bundle.payloads)

    def _answers(self) -> list[AnsweredCall]:
        """The operations with their answers, in the order of their places."""
        found = []
        for replied, (message, times, results), now in self._answered:
            stamp = replied.stamp
            place = (-1, -1) if stamp is None else (stamp.clock, stamp.issuer)
            for called, result in zip(times, results, strict=True):
                found.append(AnsweredCall(place, replied.read, message, called, now, crc32(result)))
                message += 1
        return sorted(found)

    def violations(self, service: ServiceSpec) -> list[str]:
        """What is wrong with the answers; all calls must have one."""
        machine, latest, found = service.make(), 0, []
        operations: dict[MessageId, bytes] = {}
        for first, submitted in self._submitted:
            operations.update(enumerate(submitted, first))
        for answer in self._answers():
            latest = max(latest, answer.called_ns)
            if answer.answered_ns < latest:
                found.append(f"{message_name(answer.message)} was answered before an earlier one was called")
            expected = _expected(machine, operations[answer.message], answer)
            if crc32(expected) != answer.digest:
                found.append(f"{message_name(answer.message)} has another answer than {expected!r}")
            if len(found) >= VIOLATIONS_TOLD:
                break
        return found


def _expected(machine: StateMachine, operation: bytes, answer: AnsweredCall) -> bytes:
    run = machine.read if answer.read else machine.apply
    return run(operation, Context(answer.message, answer.called_ns))
