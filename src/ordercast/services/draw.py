"""Values for the parameters of an operation, drawn at random by their types.

Values are few and small, so that operations meet: two calls often name the same key. They are drawn as plain
data, from which msgspec makes what the types say.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
from msgspec import inspect

from ordercast.core import LocalError, OperationType, ServiceType, TransactionType
from ordercast.services.workload import Generate

TRIES = 100
"""A type may be narrower than what is drawn for it; so many values are tried."""
LENGTH_MAX = 3
_WORDS = ("", "a", "b", "c", "key", "x" * 40, "\u00e4\u4e2d")
_NUMBERS = (-1, 0, 1, 2, 3, 5, 7, 100, 2**31)
_TEXTS: dict[type[inspect.Type], tuple[str, ...]] = {
    inspect.DateTimeType: ("2024-02-29T12:00:00Z", "1999-12-31T23:59:59Z"),
    inspect.DateType: ("2024-02-29", "1999-12-31"),
    inspect.TimeType: ("12:00:00", "00:00:01"),
    inspect.TimeDeltaType: ("PT1S", "P1D"),
    inspect.UUIDType: ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"),
    inspect.DecimalType: ("0", "1.5", "-2"),
}


def by_types(service: ServiceType) -> Generate:
    """A generator of operations by the types of their parameters. A service without reads gives operations
    instead, and the other way round."""
    kinds = list(service.operations.values())

    def generate(rng: Random, number: int, reads: bool, size: int) -> tuple[str, tuple[object, ...]]:
        kind = rng.choice([one for one in kinds if one.reads is reads] or kinds)
        return kind.name, draw_arguments(kind, rng)

    return generate


def draw_arguments(kind: OperationType, rng: Random) -> tuple[object, ...]:
    """Arguments for an operation; `LocalError` if there is a type for which nothing can be drawn."""
    found: tuple[object, ...] = tuple(_draw_value(kind, one, rng) for one in kind.argument_types)
    if isinstance(kind, TransactionType):
        for _ in range(TRIES):
            if kind.keys_of(found).all:
                break
            found = tuple(_draw_value(kind, one, rng) for one in kind.argument_types)
    return found


def _draw_value(kind: OperationType, wanted: Any, rng: Random) -> object:
    described = inspect.type_info(wanted)
    for _ in range(TRIES):
        try:
            return msgspec.convert(_draw(described, rng), wanted)
        except msgspec.ValidationError:
            continue
        except KeyError as unknown:
            raise LocalError(
                f"no values can be drawn for {kind.name}{kind.signature}: {unknown.args[0]} is not known;"
                " give the class a static method generate(rng, number, reads, size)"
            ) from unknown
    raise LocalError(
        f"no values can be drawn for {kind.name}{kind.signature}: {TRIES} were all refused; give the class a"
        " static method generate(rng, number, reads, size)"
    )


def _draw(kind: inspect.Type, rng: Random) -> Any:
    """Plain data for a type; KeyError with its name if it is unknown."""
    if type(kind) in _TEXTS:
        return rng.choice(_TEXTS[type(kind)])
    return _DRAWS[type(kind)](kind, rng) if type(kind) in _DRAWS else _unknown(kind)


def _unknown(kind: inspect.Type) -> Any:
    raise KeyError(type(kind).__name__)


def _items(kind: Any, rng: Random) -> list[Any]:
    return [_draw(kind.item_type, rng) for _ in range(rng.randint(kind.min_length or 0, LENGTH_MAX))]


def _dict(kind: Any, rng: Random) -> dict[Any, Any]:
    count = rng.randint(kind.min_length or 0, LENGTH_MAX)
    return {_draw(kind.key_type, rng): _draw(kind.value_type, rng) for _ in range(count)}


def _fields(kind: Any, rng: Random) -> Any:
    """The fields of a class: as a list where they are encoded so."""
    drawn = {field.encode_name: _draw(field.type, rng) for field in kind.fields}
    if getattr(kind, "tag_field", None):
        drawn = {kind.tag_field: kind.tag, **drawn}
    return list(drawn.values()) if getattr(kind, "array_like", False) else drawn


def _number(kind: Any, rng: Random) -> int:
    low = kind.ge if kind.ge is not None else kind.gt
    return rng.choice(_NUMBERS) if low is None else int(low) + rng.choice(_NUMBERS)


_DRAWS: dict[type[inspect.Type], Callable[[Any, Random], Any]] = {
    inspect.AnyType: lambda kind, rng: rng.choice((*_WORDS, *_NUMBERS)),
    inspect.NoneType: lambda kind, rng: None,
    inspect.BoolType: lambda kind, rng: rng.random() < 0.5,
    inspect.IntType: _number,
    inspect.FloatType: lambda kind, rng: rng.choice((0.0, 0.5, -1.5, 3.0)),
    inspect.StrType: lambda kind, rng: rng.choice(_WORDS),
    inspect.BytesType: lambda kind, rng: rng.choice(_WORDS).encode(),
    inspect.LiteralType: lambda kind, rng: rng.choice(kind.values),
    inspect.EnumType: lambda kind, rng: rng.choice([member.value for member in kind.cls]),
    inspect.UnionType: lambda kind, rng: _draw(rng.choice(kind.types), rng),
    inspect.ListType: _items,
    inspect.SetType: _items,
    inspect.FrozenSetType: _items,
    inspect.VarTupleType: _items,
    inspect.CollectionType: _items,
    inspect.TupleType: lambda kind, rng: [_draw(one, rng) for one in kind.item_types],
    inspect.DictType: _dict,
    inspect.StructType: _fields,
    inspect.DataclassType: _fields,
    inspect.TypedDictType: _fields,
    inspect.NamedTupleType: lambda kind, rng: [_draw(field.type, rng) for field in kind.fields],
}
