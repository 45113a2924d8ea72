"""A subscriber and the answers of the store."""

from ordercast.protocols.atoms.messages import Told
from tests.atoms.lab import Lab, kinds


def test_an_answer_from_before_the_last_request_does_not_settle_it() -> None:
    lab = Lab((0, 1), (0, 1))
    lab.lost = kinds(Told)
    lab.leave(1, 1)
    (store,) = lab.store
    horizon = lab.process(1)._ordering.horizon
    lab.give(store, 1, Told(1, 1, horizon, (), False))  # carried out, and not decided
    lab.give(store, 1, Told(0, 0, horizon, (), True))  # from before it asked
    assert lab.process(1)._ordering.horizon == horizon
    assert lab.finish() == set()
