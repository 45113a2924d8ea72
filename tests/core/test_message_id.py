"""A message's identity: a sender and its own number in 63 bits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core import LocalError, message_id, message_name, message_number, message_sender
from ordercast.core.ids import NODE_MAX, NUMBER_MAX

SENDERS = st.integers(0, NODE_MAX)
NUMBERS = st.integers(0, NUMBER_MAX)


@given(SENDERS, NUMBERS)
def test_sender_and_number_come_back(sender: int, number: int) -> None:
    message = message_id(sender, number)
    assert (message_sender(message), message_number(message)) == (sender, number)


@given(SENDERS, NUMBERS)
def test_an_identity_fits_into_a_signed_64_bit_column(sender: int, number: int) -> None:
    assert 0 <= message_id(sender, number) < 1 << 63


@given(st.tuples(SENDERS, NUMBERS), st.tuples(SENDERS, NUMBERS))
def test_identities_sort_by_sender_then_number(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (message_id(*one) < message_id(*other)) == (one < other)


@pytest.mark.parametrize(
    ("sender", "number"), [(-1, 0), (0, -1), (NODE_MAX + 1, 0), (0, NUMBER_MAX + 1), (1 << 40, 1 << 50)]
)
def test_what_does_not_fit_is_refused(sender: int, number: int) -> None:
    with pytest.raises(LocalError, match=f"sender {sender} and number {number} make no message identity"):
        message_id(sender, number)


def test_the_largest_identity_uses_all_63_bits() -> None:
    assert message_id(NODE_MAX, NUMBER_MAX) == (1 << 63) - 1


def test_people_write_sender_hash_number() -> None:
    assert message_name(message_id(4, 17)) == "4#17"
