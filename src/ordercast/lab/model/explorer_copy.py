"""Copies and fingerprints of a running process, whatever it is made of.

Both walk the graph of objects that hangs on a process: plain containers, objects with attributes or slots,
and bound methods. Immutable things (numbers, bytes, tuples, states, messages) are shared by copies. What
belongs to the driver or never changes (the environment, options) is shared too, and is no part of a
fingerprint. The environment of an inner process is copied, for it leads to the outer one.
"""

from collections import deque
from enum import Enum
from hashlib import blake2b
from types import BuiltinMethodType, FunctionType, MemberDescriptorType, MethodType
from typing import Any

import msgspec

from ordercast.core import Env, InnerEnv, OperationType, Options, ServiceSpec, ServiceType

_PLAIN: frozenset[type] = frozenset({int, str, bytes, bool, type(None), float})
_shared: set[type] = {*_PLAIN, tuple, frozenset}
"""Types of what copies share, as far as they have been met."""
_SERVICE = (ServiceSpec, ServiceType, OperationType)
"""What describes a service, which never changes."""
_CONSTANT = (msgspec.Struct, Env, Enum, FunctionType, type, tuple, *_SERVICE)
_encoder = msgspec.msgpack.Encoder()


def clone(thing: Any, copies: dict[int, Any]) -> Any:
    """A copy that shares nothing mutable with the original; `copies` keeps shared references shared."""
    kind = type(thing)
    if kind in _shared:
        return thing
    if isinstance(thing, _CONSTANT) and not isinstance(thing, InnerEnv):
        _shared.add(kind)
        return thing
    known = copies.get(id(thing))
    if known is not None:
        return known
    if isinstance(thing, MethodType):
        return MethodType(thing.__func__, clone(thing.__self__, copies))
    if isinstance(thing, BuiltinMethodType):  # such as the `append` of a list
        return getattr(clone(thing.__self__, copies), thing.__name__)
    if kind is list:
        copy: Any = [clone(item, copies) for item in thing]
    elif kind is dict:
        copy = {key: clone(value, copies) for key, value in thing.items()}
    elif kind is deque:
        copy = deque((clone(item, copies) for item in thing), thing.maxlen)
    elif kind is set or kind is bytearray:
        copy = kind(thing)
    else:
        copy = object.__new__(kind)
        copies[id(thing)] = copy  # before its parts, which may refer to it
        for name in _names(thing):
            # Not `setattr`: a class may forbid or redefine it, and copying is no assignment.
            object.__setattr__(copy, name, clone(getattr(thing, name), copies))
    copies[id(thing)] = copy
    return copy


def fingerprint(*things: Any) -> bytes:
    """Equal for things in the same state, and practically never else."""
    return blake2b(_encoder.encode(_freeze(things, {})), digest_size=16).digest()


def _freeze(thing: Any, seen: dict[int, int]) -> Any:
    kind = type(thing)
    if kind in _PLAIN:
        return thing
    if isinstance(thing, (Env, Options, FunctionType, type, *_SERVICE)):
        return None
    if isinstance(thing, Enum):
        return (kind.__name__, thing.name)
    if isinstance(thing, msgspec.Struct):
        return (kind.__name__, thing)
    if isinstance(thing, MethodType | BuiltinMethodType):
        return thing.__name__
    if kind is bytearray:
        return bytes(thing)
    if isinstance(thing, tuple) or kind is list or kind is deque:
        return [_freeze(item, seen) for item in thing]
    if kind is dict:  # in its own order, for a process may walk through it
        return [(_freeze(key, seen), _freeze(value, seen)) for key, value in thing.items()]
    if kind is set or kind is frozenset:
        return sorted((_freeze(item, seen) for item in thing), key=repr)
    if id(thing) in seen:
        return ("again", seen[id(thing)])
    seen[id(thing)] = len(seen)
    return [kind.__name__, *(_freeze(getattr(thing, name), seen) for name in _names(thing))]


_known_slots: dict[type, tuple[str, ...]] = {}


def _names(thing: Any) -> tuple[str, ...]:
    """The attributes of an object: those in slots of all its classes, and those of its own."""
    kind = type(thing)
    slots = _known_slots.get(kind)
    if slots is None:
        declared = (name for base in kind.__mro__ for name in base.__dict__.get("__slots__", ()))
        # A class may put a property over a slot of its base: then there is nothing in the slot.
        slots = tuple(name for name in declared if isinstance(getattr(kind, name), MemberDescriptorType))
        _known_slots[kind] = slots
    return (*slots, *getattr(thing, "__dict__", ()))
