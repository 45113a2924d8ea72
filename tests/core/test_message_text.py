"""Messages in words: short, in one line, with what distinguishes them."""

import msgspec

from ordercast.core import Message, Payload, message_id, message_text, named
from ordercast.core.bundle import Item, pack
from ordercast.core.message_text import TEXT_MAX
from ordercast.protocols.hydra.messages import Ask, Probe


class Inner(Message, frozen=True, tag=1):
    number: int
    payload: Payload


class Outer(Message, frozen=True, tag=2):
    ring: int
    entries: tuple[Inner, ...]
    members: tuple[int, ...] = ()
    places: dict[int, str] = msgspec.field(default_factory=dict)
    names: frozenset[str] = frozenset()


def test_a_message_shows_its_fields_and_those_of_messages_inside() -> None:
    entries = (Inner(1, pack([Item(message_id(4, 17), 0, b"x")])), Inner(2, b"\x01\x02"))
    assert message_text(Outer(3, entries, (0, 2), {1: "a"}, frozenset({"b", "a"}))) == (
        "Outer(ring=3, entries=[Inner(number=1, payload=<4#17>), Inner(number=2, payload=<0102>)],"
        " members=[0, 2], places={1: 'a'}, names={'a', 'b'})"
    )


def test_payloads_are_shown_by_their_messages_and_other_bytes_are_cut() -> None:
    bundle = pack([Item(message_id(4, number), 0, b"x") for number in range(3)])
    assert message_text(Inner(1, bundle)) == "Inner(number=1, payload=<4#0 to 4#2>)"
    assert (
        message_text(Inner(1, bytes(range(100)))) == "Inner(number=1, payload=<0001020304050607.. 100 bytes>)"
    )
    assert message_text(Inner(1, b"")) == "Inner(number=1, payload=<>)"


def test_long_lists_and_long_texts_are_cut() -> None:
    text = message_text(Outer(1, (), tuple(range(20))))
    assert "members=[0, 1, 2, 3, 4, 5, 6, 7, ... 20 in all]" in text
    assert len(message_text(Outer(1, (Inner(10**40, b"x" * 9),) * 8, tuple(range(20))))) == TEXT_MAX + 3


def test_a_type_has_its_article() -> None:
    assert [named(message) for message in (Ask(1, 0, 1, 1), Probe(1))] == ["an Ask", "a Probe"]
