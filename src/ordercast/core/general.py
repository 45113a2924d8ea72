"""General transactions: a client locks and reads all of its keys, and then writes some of them, or aborts.

Each is two operations, which go to the same shards. The first one prepares it, and gives its identity to the
transaction. The second one concludes it. Their names cannot be those of methods.

`PREPARE`, and the keys to write and to read; its result is the values of those that have one. `CONCLUDE`, the
identity, the shards, whether it commits, and the new values; None for a key that is removed.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ordercast.core.errors import MALFORMED, LocalError, RemoteError
from ordercast.core.ids import Groups, MessageId
from ordercast.core.operation_type import Refused, ServiceFailed
from ordercast.core.service import Outcome, outcome_of
from ordercast.core.shard import Keys, shard_of

PREPARE = b"\x08*prepare"
CONCLUDE = b"\x09*conclude"
DONE = bytes((Outcome.ANSWERED,)) + msgspec.msgpack.encode(None)
"""The result of a conclusion that counts."""
_encode = msgspec.msgpack.Encoder().encode
_values = msgspec.msgpack.Decoder(dict[str, bytes])


class Prepare(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Lock some keys, and read them."""

    writes: tuple[str, ...]
    reads: tuple[str, ...]

    @property
    def keys(self) -> Keys:
        """The keys, each once."""
        return Keys.of(self.writes, self.reads)


class Conclude(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Write some of the keys that are locked, or none, and end the transaction."""

    transaction: MessageId
    groups: Groups
    commits: bool
    values: dict[str, bytes | None] = {}


_prepare = msgspec.msgpack.Decoder(Prepare)
_conclude = msgspec.msgpack.Decoder(Conclude)


def read_general(operation: bytes) -> Prepare | Conclude | None:
    """One half of a general transaction; None if the bytes are another operation. `LocalError` if they are
    malformed."""
    try:
        if operation.startswith(PREPARE):
            return _prepare.decode(operation[len(PREPARE) :])
        if operation.startswith(CONCLUDE):
            return _conclude.decode(operation[len(CONCLUDE) :])
    except MALFORMED as error:
        raise LocalError(f"malformed general transaction: {error}") from error
    return None


def general_groups(general: Prepare | Conclude, shards: int) -> Groups:
    """The shards that one half of a transaction goes to; `LocalError` if there is none."""
    if isinstance(general, Prepare):
        groups = tuple(sorted({shard_of(key, shards) for key in general.keys.all}))
    else:
        groups = general.groups
    if not groups or list(groups) != sorted(set(groups)) or groups[0] < 0 or groups[-1] >= shards:
        raise LocalError(f"a general transaction needs keys in some of {shards} shards; it has {groups}")
    return groups


def pack_prepare(writes: Sequence[object], reads: Sequence[object] = ()) -> bytes:
    """The operation that locks and reads; `LocalError` if it has no key, or one that is no text."""
    keys = Keys.of(_texts(writes), _texts(reads))
    if not keys.all:
        raise LocalError("a general transaction needs a key")
    try:
        return PREPARE + _encode(Prepare(*keys))
    except UnicodeEncodeError as error:
        raise LocalError(f"a key cannot be sent: {error}") from error


def _texts(keys: Sequence[object]) -> list[str]:
    if isinstance(keys, str):
        raise LocalError(f"a general transaction needs a list of keys, not the text {keys!r}")
    texts: list[str] = []
    for key in keys:
        if not isinstance(key, str):
            raise LocalError(f"a key must be text, not {key!r}")
        texts.append(key)
    return texts


def pack_commit(transaction: MessageId, groups: Groups, values: Mapping[str, object | None]) -> bytes:
    """The operation that writes values, and ends the transaction; None removes a key."""
    try:
        packed = {key: None if value is None else _encode(value) for key, value in values.items()}
        return CONCLUDE + _encode(Conclude(transaction, groups, True, packed))
    except (TypeError, ValueError, OverflowError) as error:
        raise LocalError(f"a value cannot be written: {error}") from error


def pack_abort(transaction: MessageId, groups: Groups) -> bytes:
    """The operation that ends a transaction, and writes nothing."""
    return CONCLUDE + _encode(Conclude(transaction, groups, False))


def pack_values(values: Mapping[str, bytes]) -> bytes:
    """The result of the first half."""
    return bytes((Outcome.ANSWERED,)) + _encode(values)


def unpack_values(result: bytes) -> dict[str, bytes]:
    """The values that the first half has read; what the shards refused is raised."""
    check_done(result)
    try:
        return _values.decode(result[1:])
    except MALFORMED as error:
        raise RemoteError(f"malformed values of a general transaction: {error}") from error


def check_done(result: bytes) -> None:
    """Raise what the shards say, if they did not do what one half of a transaction asked for."""
    outcome = outcome_of(result)
    if outcome is not Outcome.ANSWERED:
        text = result[1:].decode(errors="replace")
        raise Refused(text) if outcome is Outcome.REFUSED else ServiceFailed(text)


def combine_general(general: Prepare | Conclude, results: Sequence[bytes]) -> bytes:
    """One result of those of all shards."""
    bad = next((one for one in results if outcome_of(one) is not Outcome.ANSWERED), None)
    if bad is not None or len(results) == 1 or isinstance(general, Conclude):
        return bad or results[0]
    return pack_values({key: value for one in results for key, value in unpack_values(one).items()})
