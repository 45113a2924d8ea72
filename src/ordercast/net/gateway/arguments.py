"""Operations of a service by JSON: arguments from the body of a request, results as JSON.

The arguments are an object with their names, or an array in the order of the parameters. They must have the
types of the parameters: nothing is converted but what JSON cannot say. Bytes are text in base64 (RFC 4648,
section 4, with padding), dates and times are text of RFC 3339, and numbers as keys of objects are text. An
object with the same name twice is refused, because programs differ in which one they take.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from ordercast.core import LocalError, OperationType, ServiceType

_decode_values = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode

Values: TypeAlias = dict[str, msgspec.Raw] | list[msgspec.Raw]


class JsonOperation:
    """One operation of a service, as clients outside call it."""

    def __init__(self, kind: OperationType) -> None:
        self.kind = kind
        names = zip(kind.parameters, kind.argument_types, strict=True)
        self._decoders = {name: msgspec.json.Decoder(found) for name, found in names}

    def pack(self, body: bytes) -> bytes:
        """The bytes of a call with the arguments in a body; `LocalError` if they do not fit."""
        given = self._named(_read(body)) if body else {}
        values = {name: self._value(name, raw) for name, raw in given.items()}
        for name, parameter in self.kind.parameters.items():
            if name not in values and parameter.default is parameter.empty:
                raise self._wrong(f"'{name}' is missing")
        args = (values.get(name, found.default) for name, found in self.kind.parameters.items())
        return self.kind.pack(tuple(args), {})

    def _named(self, given: Values) -> Mapping[str, msgspec.Raw]:
        if isinstance(given, list):
            if len(given) > len(self._decoders):
                raise self._wrong(f"{len(given)} values for {len(self._decoders)} parameters")
            return dict(zip(self._decoders, given, strict=False))
        for name in given:
            if name not in self._decoders:
                raise self._wrong(f"there is no parameter {name[:80]!r}")
        return given

    def _value(self, name: str, raw: msgspec.Raw) -> Any:
        try:
            return self._decoders[name].decode(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise self._wrong(f"'{name}': {error}") from error

    def _wrong(self, what: str) -> LocalError:
        return LocalError(f"wrong arguments for {self.kind.name}{self.kind.signature}: {what}")


def _read(body: bytes) -> Values:
    """The values in a body, which are not decoded yet."""
    try:
        json.loads(body.decode(), object_pairs_hook=_once)
        values: Values = _decode_values(body)
        return values
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise LocalError(f"the body is not JSON with an object or an array of arguments: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> None:
    names = {name for name, _ in pairs}
    if len(names) < len(pairs):
        raise ValueError("a name comes twice in an object")


def as_json(content: object) -> bytes:
    """A value as JSON; `LocalError` if JSON cannot say it."""
    try:
        return _encode(content)
    except (TypeError, ValueError, RecursionError) as error:
        raise LocalError(f"the value cannot be written as JSON: {error}") from error


def describe(service: ServiceType) -> dict[str, Any]:
    """The operations of a service, with the types of their parameters and results as JSON schemas."""
    kinds = list(service.operations.values())
    try:
        shapes, shared = _shapes(kinds)
    except TypeError:  # types of the user's own, of which a schema is not known
        shapes, shared = {}, {}
    return {
        "service": service.service.__name__,
        "operations": [_described(kind, shapes) for kind in kinds],
        "$defs": shared,
    }


def _shapes(kinds: list[OperationType]) -> tuple[dict[tuple[str, int], Any], dict[str, Any]]:
    """The schema of each parameter (by its place) and of each result (-1), and what they share."""
    found = {(kind.name, place): a_type for kind in kinds for place, a_type in enumerate(kind.argument_types)}
    found |= {(kind.name, -1): kind.result_type for kind in kinds}
    schemas, shared = msgspec.json.schema_components(found.values(), ref_template="#/$defs/{name}")
    return dict(zip(found, schemas, strict=True)), shared


def _described(kind: OperationType, shapes: Mapping[tuple[str, int], Any]) -> dict[str, object]:
    parameters = [
        {
            "name": name,
            "required": parameter.default is parameter.empty,
            "schema": shapes.get((kind.name, place), {}),
        }
        for place, (name, parameter) in enumerate(kind.parameters.items())
    ]
    return {
        "name": kind.name,
        "signature": kind.signature,
        "reads": kind.reads,
        "summary": kind.summary,
        "parameters": parameters,
        "result": shapes.get((kind.name, -1), {}),
    }
