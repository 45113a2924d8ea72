"""The codec: accepts just what the message types declare, and blames the peer for all else."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.catalogue import find_protocol, protocol_names
from ordercast.core import Codec, Deployment, LocalError, Message, Payload, RemoteError
from ordercast.core.message import MESSAGE_DATA_MAX, PAYLOAD_BYTES_MAX


class Note(Message, frozen=True, tag=1):
    number: int
    groups: tuple[int, ...]
    payload: Payload
    word: str = ""


class Ping(Message, frozen=True, tag=2):
    pass


class Nest(Message, frozen=True, tag=300):
    items: tuple[tuple[int, bytes], ...]
    owner: int | None = None
    table: dict[int, str] | None = None


class Part(msgspec.Struct, frozen=True, array_like=True):
    number: int


class Loose(Message, frozen=True, tag=301):
    part: Part


class Stranger(Message, frozen=True, tag=4):
    pass


CODEC = Codec([Note, Ping, Nest])
INTEGERS = st.integers(-(1 << 63), (1 << 64) - 1)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        Note, INTEGERS, st.lists(INTEGERS, max_size=4).map(tuple), st.binary(max_size=60), st.text(max_size=9)
    ),
    st.just(Ping()),
    st.builds(
        Nest,
        st.lists(st.tuples(INTEGERS, st.binary(max_size=9)), max_size=4).map(tuple),
        st.none() | INTEGERS,
        st.none() | st.dictionaries(INTEGERS, st.text(max_size=5), max_size=3),
    ),
)


@given(MESSAGES)
def test_a_message_survives_the_round_trip(message: Message) -> None:
    copy = CODEC.decode(CODEC.encode(message))
    assert copy == message
    assert type(copy) is type(message)


@given(st.binary(max_size=80))
def test_random_bytes_are_a_message_or_the_peers_fault(data: bytes) -> None:
    _decodes_or_blames(data)


@given(MESSAGES, st.data())
@settings(max_examples=300)
def test_mangled_bytes_are_a_message_or_the_peers_fault(message: Message, data: st.DataObject) -> None:
    mangled = bytearray(CODEC.encode(message))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(mangled) - 1))
        mangled[place] = data.draw(st.integers(0, 255))
    _decodes_or_blames(bytes(mangled))


def _decodes_or_blames(data: bytes) -> None:
    try:
        message = CODEC.decode(data)
    except RemoteError:
        return
    assert type(message) in CODEC.types
    assert CODEC.decode(CODEC.encode(message)) == message


def test_what_nests_too_deeply_is_the_peers_fault() -> None:
    """What a later version adds to a part of a message is skipped, however deep it is."""
    head = b"\x92\xcd\x01\x2d\x92\x05"
    assert Codec([Loose]).decode(head + b"\x91" * 20 + b"\xc0") == Loose(Part(5))
    with pytest.raises(RemoteError, match="recursion"):
        Codec([Loose]).decode(head + b"\x91" * 20_000 + b"\xc0")


@given(MESSAGES, st.data())
def test_truncated_bytes_are_refused(message: Message, data: st.DataObject) -> None:
    encoded = CODEC.encode(message)
    with pytest.raises(RemoteError):
        CODEC.decode(encoded[: data.draw(st.integers(0, len(encoded) - 1))])


@given(MESSAGES, st.binary(min_size=1, max_size=9))
def test_trailing_bytes_are_refused(message: Message, more: bytes) -> None:
    with pytest.raises(RemoteError):
        CODEC.decode(CODEC.encode(message) + more)


@pytest.mark.parametrize(
    "content",
    [
        [99],
        ["Ping"],
        [],
        {"type": 2},
        2,
        None,
        [2, 1],
        [1, 5, [1]],
        [1, "5", [1], b""],
        [1, 5, 1, b""],
        [1, 5, [1.5], b""],
        [1, 5, [1], "text"],
        [1, 5, [1], b"", 7],
        [1, 5, [1], b"", "", 0],
        [300, [[1]]],
        [300, [], "owner"],
    ],
    ids=repr,
)
def test_what_no_type_declares_is_refused(content: object) -> None:
    with pytest.raises(RemoteError, match="malformed packet"):
        CODEC.decode(msgspec.msgpack.encode(content))


def test_text_that_is_not_utf_8_is_the_peers_fault() -> None:
    good = CODEC.encode(Note(1, (), b"", "word"))
    with pytest.raises(RemoteError):
        CODEC.decode(good.replace(b"word", b"\xff\xfe\xfd\xfc"))


def test_deep_nesting_is_the_peers_fault() -> None:
    for head in (b"", b"\x92\xcd\x01\x2c"):
        with pytest.raises(RemoteError):
            CODEC.decode(head + b"\x91" * 200_000)


def test_a_payload_may_be_as_large_as_the_limit_and_no_larger() -> None:
    for size, accepted in ((PAYLOAD_BYTES_MAX, True), (PAYLOAD_BYTES_MAX + 1, False)):
        encoded = CODEC.encode(Note(1, (), bytes(size)))
        if accepted:
            assert CODEC.decode(encoded) == Note(1, (), bytes(size))
        else:
            with pytest.raises(RemoteError, match="length"):
                CODEC.decode(encoded)


def test_a_packet_over_the_limit_is_not_even_parsed() -> None:
    with pytest.raises(RemoteError, match=f"limit is {MESSAGE_DATA_MAX}"):
        CODEC.decode(bytes(MESSAGE_DATA_MAX + 1))


def test_an_undeclared_type_is_the_callers_fault() -> None:
    with pytest.raises(LocalError, match="Stranger is not a message of this protocol"):
        CODEC.encode(Stranger())


def test_a_subclass_of_a_declared_type_is_undeclared() -> None:
    class Louder(Ping, frozen=True, tag=2):
        pass

    with pytest.raises(LocalError, match="Louder"):
        CODEC.encode(Louder())


def test_two_types_with_one_tag_are_refused_by_name() -> None:
    class Twin(Message, frozen=True, tag=2):
        pass

    with pytest.raises(LocalError, match="Ping=2, Twin=2"):
        Codec([Ping, Twin])


def test_a_type_without_a_tag_is_refused() -> None:
    class Untagged(Message, frozen=True):
        pass

    with pytest.raises(LocalError, match="Untagged=None"):
        Codec([Ping, Untagged])


def test_tags_of_words_and_numbers_do_not_mix() -> None:
    class Wordy(Message, frozen=True, tag="wordy"):
        pass

    with pytest.raises(LocalError, match="cannot build a codec"):
        Codec([Ping, Wordy])


def test_a_codec_needs_a_type() -> None:
    with pytest.raises(LocalError):
        Codec([])


def test_messages_are_immutable() -> None:
    with pytest.raises(AttributeError):
        Ping().number = 3  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        Note(1, (), b"").number = 2  # type: ignore[misc]


def _types_of_protocols() -> Iterator[tuple[str, type[Message]]]:
    for name in protocol_names():
        protocol = find_protocol(name)
        plan = protocol.deploy(Deployment.disjoint(2, 3, 2), protocol.options())
        yield from ((name, kind) for kind in plan.codec.types)


@pytest.mark.parametrize(("protocol", "kind"), list(_types_of_protocols()))
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_every_message_of_every_protocol_survives(
    protocol: str, kind: type[Message], data: st.DataObject
) -> None:
    codec = Codec([kind])
    message = data.draw(_instances(kind))
    assert codec.decode(codec.encode(message)) == message


def _instances(kind: type[Message]) -> st.SearchStrategy[Message]:
    fields = msgspec.inspect.type_info(kind)
    assert isinstance(fields, msgspec.inspect.StructType)
    return st.builds(kind, *(_values(field.type) for field in fields.fields))


def _values(kind: msgspec.inspect.Type) -> st.SearchStrategy[object]:
    inspect = msgspec.inspect
    match kind:
        case inspect.IntType():
            low = kind.ge if kind.ge is not None else -(1 << 63) if kind.gt is None else kind.gt + 1
            high = kind.le if kind.le is not None else (1 << 63) - 1 if kind.lt is None else kind.lt - 1
            return st.integers(low, high)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.FloatType():
            return st.floats(allow_nan=False)
        case inspect.BytesType():
            least = kind.min_length or 0
            most = 40 + least if kind.max_length is None else min(40 + least, kind.max_length)
            return st.binary(min_size=least, max_size=most)
        case inspect.StrType():
            return st.text(max_size=9)
        case inspect.TupleType():
            return st.tuples(*map(_values, kind.item_types))
        case inspect.VarTupleType() | inspect.ListType():
            least = kind.min_length or 0
            lists = st.lists(_values(kind.item_type), min_size=least, max_size=least + 3)
            return lists.map(tuple) if isinstance(kind, inspect.VarTupleType) else lists
        case inspect.DictType():
            return st.dictionaries(_values(kind.key_type), _values(kind.value_type), max_size=3)
        case inspect.FrozenSetType():
            return st.frozensets(_values(kind.item_type), max_size=3)
        case inspect.UnionType():
            return st.one_of(*map(_values, kind.types))
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.EnumType():
            return st.sampled_from(list(kind.cls))
        case inspect.StructType() | inspect.NamedTupleType():
            return st.builds(kind.cls, *(_values(field.type) for field in kind.fields))
        case _:
            raise NotImplementedError(f"no strategy for {kind}")
