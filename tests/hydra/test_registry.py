"""The replicated state of Hydra's configuration service: commands in, the sequence of configurations out."""

import pytest

from ordercast.protocols.hydra.messages import Plans
from ordercast.protocols.hydra.registry import (
    Add,
    Claim,
    Command,
    Decide,
    GiveUp,
    Registry,
    Remove,
    decode,
    encode,
)
from tests.hydra.lab import SEQUENCERS


def test_commands_survive_the_log() -> None:
    commands: tuple[Command, ...] = (Claim(4, 5), Remove(1), Add(4, 6), Decide(0, 7, (1, 2)), GiveUp(3))
    assert [decode(encode(command)) for command in commands] == list(commands)


def test_a_command_that_no_longer_fits_changes_nothing() -> None:
    registry = Registry(SEQUENCERS, 10)
    stale: tuple[Command, ...] = (Remove(9), Decide(0, 1, (1,)), GiveUp(0), Add(21, 5))
    before = registry.snapshot()
    for command in stale:
        registry.apply(command)
    assert registry.snapshot() == before
    registry.apply(Remove(1))
    registry.apply(Remove(2))
    registry.apply(Add(23, 1))
    registry.apply(Decide(1, 5, (1,)))
    registry.apply(GiveUp(0))
    assert (registry.planned, registry.steps) == (Plans("removed", 1, 21), 0), "a removal is not given up"


def test_numbers_are_never_used_again() -> None:
    registry = Registry(SEQUENCERS, 10)
    given = []
    for life in range(1, 6):
        registry.apply(Add(23, life))
        assert registry.planned is not None
        given.append(registry.planned.sequencer)
        registry.apply(GiveUp(registry.steps) if life % 2 else Decide(registry.steps, life, (0,)))
        if life % 2 == 0:
            registry.apply(Remove(given[-1]))
            registry.apply(Decide(registry.steps, life, (0,)))
    assert given == [3, 4, 5, 6, 7]


def test_a_life_is_added_once() -> None:
    registry = Registry(SEQUENCERS, 10)
    registry.apply(Add(23, 5))
    registry.apply(GiveUp(0))
    registry.apply(Add(23, 5))
    assert registry.planned is None
    registry.apply(Add(23, 4))
    assert registry.planned is None
    registry.apply(Add(23, 6))
    assert registry.planned == Plans("added", 4, 23)


def test_a_given_up_addition_makes_no_configuration() -> None:
    registry = Registry(SEQUENCERS, 10)
    registry.apply(Add(23, 5))
    registry.apply(GiveUp(0))
    registry.apply(Remove(1))
    registry.apply(Decide(1, 9, (0,)))
    assert [(step.change, step.config) for step in registry.kept] == [("void", 0), ("removed", 1)]


@pytest.mark.parametrize("history", [1, 3])
def test_old_steps_are_forgotten_and_counted(history: int) -> None:
    registry = Registry(SEQUENCERS, history)
    for life in range(6):
        registry.apply(Add(23, life))
        registry.apply(GiveUp(life))
    assert (registry.steps, registry.forgotten, len(registry.kept)) == (6, 6 - history, history)


def test_a_snapshot_holds_everything() -> None:
    registry = Registry(SEQUENCERS, 2)
    registry.apply(Claim(21, 0))
    for life in range(1, 5):
        registry.apply(Add(23, life))
        registry.apply(GiveUp(life - 1))
    registry.apply(Remove(2))
    other = Registry({}, 2)
    other.restore(registry.snapshot())
    assert other.snapshot() == registry.snapshot()
    for copy in (registry, other):
        copy.apply(Decide(4, 50, (1, 2)))
        copy.apply(Add(24, 1))
    assert other.planned == registry.planned == Plans("added", 7, 24)
    assert other.lives == registry.lives
