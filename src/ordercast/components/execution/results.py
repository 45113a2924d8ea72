"""The results of a call as one bundle, which has a limit.

A result of any size must not stop a replica. If the results of a call do not fit together, those that
are left are replaced by failures that say so, at all replicas alike. The operations have taken effect.
"""

from collections.abc import Sequence

from ordercast.core import Outcome, RemoteError, Sharding
from ordercast.core.bundle import HEAD_BYTES, Bundle, bundle_size, pack_bundle, unpack_bundle
from ordercast.core.message import PAYLOAD_BYTES_MAX

_FAILED = bytes((Outcome.FAILED,))
_TOO_LARGE = (
    "the operation was executed, but its result of {} bytes cannot be sent: the results of operations that"
    " are called together have at most {} bytes"
)


def pack_results(bundle: Bundle, results: list[bytes]) -> bytes:
    """The bundle of the results of a bundle of operations."""
    room = PAYLOAD_BYTES_MAX - HEAD_BYTES - bundle_size(0) * len(results)
    if sum(map(len, results)) > room:
        results = _cut(results, room)
    return pack_bundle(bundle.first, list(bundle.times), results)


def combine_results(sharding: Sharding, call: bytes, results: Sequence[bytes]) -> bytes:
    """The results of a bundle of operations, from those of all shards that ran it, in their order."""
    bundle, found = unpack_bundle(call), [unpack_bundle(one) for one in results]
    count = len(bundle.payloads)
    if any((one.first, len(one.payloads)) != (bundle.first, count) for one in found):
        raise RemoteError("a shard answers other operations than it was sent")
    told = zip(bundle.payloads, zip(*(one.payloads for one in found), strict=True), strict=True)
    return pack_results(bundle, [sharding.combine(operation, parts) for operation, parts in told])


def _cut(results: list[bytes], room: int) -> list[bytes]:
    """As many results as fit, in their order. Failures without a text fit always: each is one byte."""
    kept: list[bytes] = []
    room -= len(_FAILED) * len(results)
    for result in results:
        told = _FAILED + _TOO_LARGE.format(len(result), PAYLOAD_BYTES_MAX).encode()
        found = next((one for one in (result, told) if len(one) - len(_FAILED) <= room), _FAILED)
        room -= len(found) - len(_FAILED)
        kept.append(found)
    return kept
