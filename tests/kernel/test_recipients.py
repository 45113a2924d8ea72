"""Where a message may go, and what may be one: checked alike by both drivers."""

import pytest

from ordercast.core import LocalError
from ordercast.core.bundle import MESSAGE_BYTES_MAX
from ordercast.kernel import recipients
from ordercast.kernel.payloads import check_payload, check_payloads
from ordercast.kernel.recipients import Recipients

GROUPS = {0: (0, 1, 2), 1: (2, 3), 2: (4,)}


def test_a_receiver_of_several_groups_counts_once() -> None:
    found = Recipients(GROUPS, len(GROUPS))
    assert [found.count(groups) for groups in [(0,), (1,), (0, 1), (0, 1, 2), (0, 1)]] == [3, 2, 4, 5, 4]


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ((), "ascending order"),
        ((1, 0), "ascending order"),
        ((1, 1), "ascending order"),
        ((0, 7), "there is no group 7; there are: 0, 1, 2"),
    ],
)
def test_groups_that_are_not_there_or_in_disorder_are_refused_each_time(
    groups: tuple[int, ...], text: str
) -> None:
    found = Recipients(GROUPS, len(GROUPS))
    for _ in range(2):
        with pytest.raises(LocalError, match=text):
            found.count(groups)


def test_more_groups_than_the_protocol_sends_a_message_to_are_refused() -> None:
    assert [Recipients(GROUPS, 2).count(groups) for groups in [(0,), (0, 2)]] == [3, 4]
    for most, text in ((2, "2 groups at most, not to 3"), (1, "one group at most, not to 3")):
        with pytest.raises(LocalError, match=text):
            Recipients(GROUPS, most).count((0, 1, 2))


def test_what_was_forgotten_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipients, "KNOWN_MAX", 2)
    found = Recipients(GROUPS, len(GROUPS))
    assert [found.count(groups) for groups in [(0,), (1,), (2,), (0,)]] == [3, 2, 1, 3]
    assert len(found._known) <= 2


def test_a_message_is_of_bytes_and_no_larger_than_a_packet() -> None:
    check_payloads([b"", bytes(MESSAGE_BYTES_MAX)])
    for wrong in ("text", bytearray(b"x"), None, bytes(MESSAGE_BYTES_MAX + 1)):
        with pytest.raises(LocalError, match=r"of type bytes, not|the limit is"):
            check_payload(wrong)  # type: ignore[arg-type]
        with pytest.raises(LocalError, match=r"of type bytes, not|the limit is"):
            check_payloads([b"good", wrong])  # type: ignore[list-item]


def test_no_message_at_all_is_refused() -> None:
    with pytest.raises(LocalError, match="no message"):
        check_payloads([])
