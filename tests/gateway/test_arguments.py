"""Arguments and results as JSON: what fits comes through as it was, and no bytes do harm."""

import datetime
import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ordercast.core import LocalError, Service, ServiceType, operation, read
from ordercast.net.gateway.arguments import JsonOperation, as_json, describe

UTC = datetime.UTC


class Colour(Enum):
    RED = "red"


class Part(msgspec.Struct):
    name: str
    parts: list["Part"] = []


@dataclass
class Place:
    x: float
    y: float


class Everything(Service):
    """Parameters of many types."""

    def __init__(self) -> None:
        self.calls = 0

    @operation
    def put(self, thing: Any, /, times: int = 1) -> None: ...

    @operation
    def typed(
        self,
        data: bytes,
        moment: datetime.datetime,
        colour: Colour,
        place: Place,
        part: Part,
        counts: dict[int, tuple[str, float]],
        names: set[str],
    ) -> None: ...

    @read
    def plain(self) -> None: ...


KIND = ServiceType.of(Everything)


def unpacked(name: str, body: bytes) -> tuple[Any, ...]:
    """The arguments in a body, as a replica reads them."""
    kind = KIND.find(name)
    payload = JsonOperation(kind).pack(body)
    assert payload.startswith(kind.head)
    return tuple(kind.unpack(payload[len(kind.head) :]))


def test_each_type_has_its_form_in_json() -> None:
    body = b"""{
        "data": "AAECvw==", "moment": "2026-01-02T03:04:05.678901Z", "colour": "red",
        "place": {"x": 1, "y": -2.5}, "part": {"name": "a", "parts": [{"name": "b"}]},
        "counts": {"7": ["seven", 7]}, "names": ["a", "b"]
    }"""
    assert unpacked("typed", body) == (
        b"\x00\x01\x02\xbf",
        datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        Colour.RED,
        Place(1.0, -2.5),
        Part("a", [Part("b")]),
        {7: ("seven", 7.0)},
        {"a", "b"},
    )


@pytest.mark.parametrize(
    "data", ["AAECvw", "AAECv", "AAEC_w==", "AAEC\\nvw==", " AAECvw==", "AAECvw===", "!", [0, 1], 5, None]
)
def test_bytes_are_in_base64_with_padding_and_nothing_else(data: object) -> None:
    good = {"moment": "2026-01-02T03:04:05Z", "colour": "red", "place": {"x": 1, "y": 1}, "names": []}
    body = msgspec.json.encode({"data": data, "part": {"name": "a"}, "counts": {}, **good})
    with pytest.raises(LocalError, match=r"wrong arguments for typed.*'data': "):
        unpacked("typed", body)


def test_defaults_are_filled_in_and_names_work_for_all_parameters() -> None:
    assert unpacked("put", b'{"thing": [1]}') == ([1], 1)
    assert unpacked("put", b'{"times": 3, "thing": null}') == (None, 3)
    assert unpacked("put", b'["x"]') == ("x", 1)
    assert unpacked("plain", b"") == unpacked("plain", b"[]") == unpacked("plain", b"{}") == ()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_any_value_of_json_comes_through_as_it_was(value: object) -> None:
    assert unpacked("put", msgspec.json.encode([value])) == (value, 1)
    assert msgspec.json.decode(as_json(value)) == value


@given(st.sampled_from(["put", "typed", "plain"]), st.binary())
@example("put", b"[" * 5000 + b"]" * 5000)
@example("put", b'{"thing": ' + b'{"a":' * 990 + b"1" + b"}" * 991)
@example("put", b'["\\ud800"]')
@example("put", b'["' + b'\\"' * 100_000)
@example("put", b"[1e999]")
@example("put", b"[123456789012345678901234567890]")
@example("put", b'{"thing": 1, "thing": 1}')
@example("put", b'[{"a": {"b": 1, "b": 2}}]')
@example("typed", b'{"\x00": 1}')
def test_no_bytes_do_harm(name: str, body: bytes) -> None:
    harmless(name, body)


def harmless(name: str, body: bytes) -> None:
    """Arguments for a replica, or an error in some words."""
    try:
        args = unpacked(name, body)
    except LocalError as error:
        assert len(str(error)) < 1000
    else:
        assert len(args) == len(KIND.find(name).parameters)


@given(json_values, st.data())
def test_no_json_that_was_cut_or_changed_does_harm(value: object, data: st.DataObject) -> None:
    body = bytearray(msgspec.json.encode({"thing": value, "times": 2}))
    at = data.draw(st.integers(0, len(body) - 1))
    body[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    harmless("put", bytes(body))


def test_a_name_that_comes_twice_is_refused_at_any_depth() -> None:
    for body in (b'{"thing": 1, "thing": 1}', b'[{"a": [{"b": 1, "b": 2}]}]'):
        with pytest.raises(LocalError, match="a name comes twice in an object"):
            unpacked("put", body)


def test_what_json_cannot_say_is_told() -> None:
    assert as_json([math.nan, math.inf]) == b"[null,null]"
    assert as_json({1: {"b"}, b"\xff": 2.5}) == b'{"1":["b"],"/w==":2.5}'
    for value in ({(1, 2): 3}, object()):
        with pytest.raises(LocalError, match="the value cannot be written as JSON: "):
            as_json(value)


def test_schemas_describe_the_operations() -> None:
    described = describe(KIND)
    assert msgspec.json.decode(as_json(described)) == described
    typed = next(one for one in described["operations"] if one["name"] == "typed")
    schemas = {one["name"]: one["schema"] for one in typed["parameters"]}
    assert schemas["data"] == {"type": "string", "contentEncoding": "base64"}
    assert schemas["part"] == {"$ref": "#/$defs/Part"} and "Part" in described["$defs"]
    assert schemas["names"]["uniqueItems"] is True


def test_types_without_a_schema_are_listed_all_the_same() -> None:
    class Strange(Service):
        @read
        def get(self, value: complex = 0j) -> int:
            raise NotImplementedError

    described = describe(ServiceType.of(Strange))
    (only,) = described["operations"]
    assert only["signature"] == "(value: complex = 0j) -> int"
    assert only["parameters"] == [{"name": "value", "required": False, "schema": {}}]
