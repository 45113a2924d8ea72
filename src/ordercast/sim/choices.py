"""What may stand at a key of a scenario, where it is one of a few names: for messages that help."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import inspect


def choices(schema: Any, key: str) -> list[str]:
    """The names allowed at a key, as ``fault[0].kind``, of data of this type; none if it is not a choice."""
    *path, last = re.findall(r"[^.\[\]]+", key) or [""]
    types = list(_variants(inspect.type_info(schema)))
    for part in path:
        types = [below for one in types for below in _below(one, part)]
    return list(dict.fromkeys(name for one in types for name in _names(one, last)))


def _variants(one: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(one, inspect.UnionType):
        for variant in one.types:
            yield from _variants(variant)
    elif isinstance(one, inspect.Metadata):
        yield from _variants(one.type)
    else:
        yield one


def _below(one: inspect.Type, part: str) -> Iterator[inspect.Type]:
    match one:
        case inspect.StructType():
            for field in one.fields:
                if field.encode_name == part:
                    yield from _variants(field.type)
        case inspect.VarTupleType() | inspect.ListType():
            yield from _variants(one.item_type)
        case inspect.DictType():
            yield from _variants(one.value_type)


def _names(one: inspect.Type, last: str) -> Iterator[str]:
    if isinstance(one, inspect.StructType) and one.tag_field == last:
        yield str(one.tag)
    for below in _below(one, last):
        match below:
            case inspect.LiteralType():
                yield from map(str, below.values)
            case inspect.EnumType():
                yield from (str(member.value) for member in below.cls)
