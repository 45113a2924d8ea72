"""Clients that send what no correct client makes: they are answered, and no replica falls over it."""

import pytest

from ordercast.core import Outcome
from ordercast.core.general import CONCLUDE, PREPARE
from tests.logged_shards.lab import BANK, FAR, ShardsWorld, transfer

NESTED = b"\x91" * 20_000
"""Arrays within arrays, deeper than a decoder goes."""
HEADS = {
    "half that locks": PREPARE + b"\x93\x90\x90",
    "half that ends": CONCLUDE + b"\x95\x01\x92\x00\x01\xc2\x80",
    "transaction": BANK.find("transfer").head + b"\x94\xa1a\xa1b\x01",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("protocol", ["hydra_txn", "eris", "granola", "lock_store"])
def test_an_operation_that_nests_too_deeply_fails(protocol: str, head: bytes) -> None:
    world = ShardsWorld(protocol)
    world.run_ms(100)
    hostile = world.submit(world.CLIENT, (0, 1), head + NESTED + b"\xc0")
    sound = world.call(transfer(*FAR, 1), client=1)
    world.run_ms(200)
    assert hostile is not None and world.answered(hostile) and world.answered(sound)
    assert world.calls.results[hostile][0] == Outcome.FAILED
    assert world.calls.results[sound][0] == Outcome.ANSWERED
    assert world.violations() == []
