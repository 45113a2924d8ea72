"""The epochs that a coordinator has begun, as its log has them."""

from ordercast.protocols.hydra.limits import Limits
from ordercast.protocols.hydra.messages import Steps
from ordercast.replication.nopaxos.session import SESSION_BITS
from ordercast.transactions.eris.epochs import Begin, Epochs, Reborn, decode, encode

SECOND = Begin(0, 90, (5, 7), 2, 22)
THIRD = Begin(2, 190, (1, 0), 4, 24)


def begun(*commands: Begin | Reborn, history: int = 100) -> Epochs:
    epochs = Epochs(21, 2, history)
    for command in commands:
        assert epochs.apply(command)
    return epochs


def test_the_end_of_an_epoch_and_the_next_are_one_decision() -> None:
    epochs = begun(SECOND)
    assert (epochs.epoch, epochs.node, epochs.steps) == (2, 22, 2)
    _, (ended, next_one) = epochs.since(0)
    assert (ended.change, ended.sequencer, ended.numbers) == ("removed", 1, (5, 7))
    assert (next_one.change, next_one.sequencer, next_one.clock) == ("added", 2, 2 << SESSION_BITS)


def test_an_epoch_ends_once() -> None:
    epochs = begun(SECOND)
    before = epochs.snapshot()
    assert not epochs.apply(Begin(0, 95, (6, 7), 3, 23)), "it was decided on the same step before"
    assert not epochs.apply(Begin(2, 95, (6, 7), 2, 22)), "there is no later epoch"
    assert not epochs.apply(Begin(2, 95, (6,), 3, 23)), "there are two groups"
    assert epochs.snapshot() == before


def test_a_replica_returns_at_a_step_of_its_own() -> None:
    epochs = begun(SECOND, Reborn(3, 70))
    revived = epochs.revival(3)
    assert (revived.life, revived.steps, revived.newest) == (70, 3, 2)
    assert not epochs.apply(Reborn(3, 70)), "the same life returns once"
    assert not epochs.apply(THIRD), "its reports were for the step before"


def test_a_reading_of_its_snapshot_is_the_same() -> None:
    epochs = begun(SECOND, THIRD, Reborn(3, 70))
    other = Epochs(21, 2, 100)
    other.restore(epochs.snapshot())
    assert other.snapshot() == epochs.snapshot()
    assert other.since(1) == epochs.since(1)


def test_few_steps_are_kept() -> None:
    epochs = begun(SECOND, THIRD, history=3)
    first, steps = epochs.since(0)
    assert (first, len(steps), epochs.steps) == (1, 3, 4)
    assert epochs.since(9) == (4, ())


def test_replicas_believe_the_steps() -> None:
    epochs = begun(SECOND, Reborn(0, 5), Begin(3, 190, (1, 0), 4, 24))
    Limits((41,), 2).check_steps(41, Steps(*epochs.since(0)))


def test_other_commands_are_none_of_epochs() -> None:
    assert decode(encode(SECOND)) == SECOND
    assert decode(b"") is None
    assert decode(encode((1, 2))) is None
