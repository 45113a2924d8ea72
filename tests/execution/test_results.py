"""Results that do not fit into one answer: no size stops a replica, and the others are not lost."""

import pytest

from ordercast.components.execution.results import pack_results
from ordercast.core import Outcome, message_id, outcome_of
from ordercast.core.bundle import BUNDLE_MESSAGES_MAX, Bundle, unpack_bundle
from ordercast.core.message import PAYLOAD_BYTES_MAX

FIRST = message_id(3, 7)


def packed(results: list[bytes]) -> list[bytes]:
    content = pack_results(Bundle(FIRST, (5,) * len(results), [b"x"] * len(results)), results)
    assert len(content) <= PAYLOAD_BYTES_MAX
    found = unpack_bundle(content)
    assert (found.first, len(found.payloads)) == (FIRST, len(results))
    return found.payloads


def test_results_that_fit_stay_as_they_are() -> None:
    results = [b"\0" + bytes(size) for size in (0, 1, 1000, 500_000, 500_000)]
    assert packed(results) == results


def test_a_result_that_is_too_large_becomes_a_failure_and_the_others_stay() -> None:
    first, second, third = packed([b"\0a", b"\0" * (1 << 20), b"\0b"])
    assert (first, third) == (b"\0a", b"\0b")
    assert outcome_of(second) is Outcome.FAILED
    assert b"was executed, but its result of 1048576 bytes cannot be sent" in second


def test_of_results_that_are_too_large_together_the_first_ones_stay() -> None:
    found = packed([b"\0" * 400_000] * 5)
    assert [outcome_of(one) for one in found] == [Outcome.ANSWERED] * 2 + [Outcome.FAILED] * 3


@pytest.mark.parametrize("size", [10, 100, 300])
def test_the_largest_bundle_has_room_for_its_outcomes(size: int) -> None:
    found = packed([b"\0" * size] * BUNDLE_MESSAGES_MAX)
    kinds = {outcome_of(one) for one in found}
    assert kinds == {Outcome.ANSWERED, Outcome.FAILED}
