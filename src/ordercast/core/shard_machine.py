"""A shard as the state machine that the replicas of its group run.

A transaction changes all of its keys here or, if it raises an exception, none. Every shard that runs it
decides that by itself: what a transaction refuses should depend on its arguments alone, or on the keys of one
shard.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from ordercast.core.errors import LocalError
from ordercast.core.ids import GroupId
from ordercast.core.operation_type import Refused
from ordercast.core.service import Context, Outcome, StateMachine
from ordercast.core.service_class import Service, failed, fresh
from ordercast.core.shard import Scope, Shard

if TYPE_CHECKING:
    from ordercast.core.shard_type import TransactionType

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(dict[str, bytes])


class ShardMachine(StateMachine):
    """One of so many shards."""

    __slots__ = ("_data", "_kinds", "_service", "_shard", "_shards")

    def __init__(
        self,
        service: type[Service],
        kinds: Mapping[bytes, "TransactionType"],
        shard: GroupId,
        shards: int,
    ) -> None:
        made = fresh(service)
        assert isinstance(made, Shard)
        self._service = made
        self._kinds = kinds
        self._shard = shard
        self._shards = shards
        self._data: dict[str, bytes] = {}
        """The value of each key, as bytes: a value that was read can be changed by nobody."""

    def apply(self, operation: bytes, context: Context) -> bytes:
        """Run a transaction on the keys of this shard."""
        start = 1 + operation[0] if operation else 0
        kind = self._kinds.get(operation[:start])
        if kind is None:
            return failed(f"{type(self._service).__name__} has no such transaction")
        try:
            arguments = kind.unpack(operation[start:])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return failed(f"malformed arguments of {kind.name}: {error}")
        named = kind.keys_of(arguments)
        here = named.within(self._shard, self._shards)
        if not here.all:
            return failed(f"{kind.name} names no key that this shard holds")
        return self._run(kind, arguments, Scope(self._data, named, here), context)

    def _run(
        self, kind: "TransactionType", arguments: tuple[object, ...], scope: Scope, context: Context
    ) -> bytes:
        service = self._service
        service.context, service._scope = context, scope
        try:
            result = kind.pack_result(getattr(service, kind.name)(*arguments))
        except Refused as refusal:
            result = bytes((Outcome.REFUSED,)) + str(refusal).encode(errors="replace")
        except Exception as error:
            result = failed(f"{type(error).__name__}: {error}")
        if scope.fault:
            return failed(f"WrongKey: {scope.fault}")
        if result[0] == Outcome.ANSWERED:
            self._write(scope.written)
        return result

    def _write(self, written: Mapping[str, bytes | None]) -> None:
        for key, value in written.items():
            if value is None:
                self._data.pop(key, None)
            else:
                self._data[key] = value

    def read(self, operation: bytes, context: Context) -> bytes:
        """A shard has no reads that pass the order."""
        return failed("a transaction is not a read")

    def snapshot(self) -> bytes:
        """All keys with their values."""
        return _encoder.encode(self._data)

    def restore(self, state: bytes) -> None:
        """Take over the keys and values of a snapshot."""
        try:
            self._data = _decoder.decode(state)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise LocalError(f"the state of a shard cannot be read: {error}") from error
