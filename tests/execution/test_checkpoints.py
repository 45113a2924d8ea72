"""Checkpoints of a large state are rarer, and replicas agree on when they are."""

import pytest

from ordercast.components.execution import Executor, pack_call, unpack_call
from ordercast.components.execution.executor import RARE
from ordercast.core import Context, ServiceSpec, Stamp, StateMachine, checkpoint_pace, message_id
from ordercast.core.bundle import pack_bundle
from ordercast.testing import RecordingEnv

EVERY = 4
LARGE = 10_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes are a lot here."""
    monkeypatch.setattr(checkpoint_pace, "SMALL_BYTES", LARGE)


class Notes(StateMachine):
    """Keeps all operations."""

    def __init__(self) -> None:
        self.notes = b""

    def apply(self, operation: bytes, context: Context) -> bytes:
        """Add it."""
        self.notes += operation
        return b"\0"

    def read(self, operation: bytes, context: Context) -> bytes:
        """Nothing."""
        return b"\0"

    def snapshot(self) -> bytes:
        """The notes."""
        return self.notes

    def restore(self, state: bytes) -> None:
        """Take them back."""
        self.notes = state


def make() -> Executor:
    return Executor(RecordingEnv(), ServiceSpec("notes", Notes))


def carry_out(executor: Executor, calls: int, size: int) -> list[int]:
    """Carry out calls of a size; returns after which of all there was a checkpoint."""
    taken = []
    for number in range(executor.executed + 1, executor.executed + calls + 1):
        name = message_id(5, number)
        packed = pack_call(name, pack_bundle(name, [number], [bytes(size)]))
        executor.execute(unpack_call(packed, 5), Stamp(number, 0))
        if executor.is_checkpoint(EVERY):
            taken.append(number)
            executor.checkpoint()
    return taken


def test_a_small_state_is_written_as_often_as_it_may_be() -> None:
    assert carry_out(make(), 20, 100) == [4, 8, 12, 16, 20]


def test_a_large_state_is_written_rarely() -> None:
    executor = make()
    assert carry_out(executor, 16, LARGE) == [4, 8, 12, 16]
    assert carry_out(executor, RARE * EVERY, 10) == [RARE * EVERY]


def test_a_large_state_that_changes_much_is_written_more_often() -> None:
    executor = make()
    assert carry_out(executor, 8, LARGE) == [4, 8]
    size = len(executor.snapshot())
    assert carry_out(executor, 16, 2 * size // checkpoint_pace.SHARE // EVERY) == [12, 16, 20, 24]


def test_who_takes_a_state_over_goes_on_with_the_same_checkpoints() -> None:
    one, other = make(), make()
    assert carry_out(one, RARE * EVERY, LARGE // 100)[-1] == RARE * EVERY
    state, digest = one.checkpoint()
    assert digest == one.digest() and digest[0] == len(state)
    other.restore(state)
    later = carry_out(one, 400, LARGE // 100)
    assert 0 < len(later) < 400 // EVERY
    assert carry_out(other, 400, LARGE // 100) == later
