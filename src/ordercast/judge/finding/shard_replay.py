"""Executes the operations of shards again, each shard by itself, and combines the results.

A shard may hold an answer back until locks are free; then the result comes with a later operation. Shards end
general transactions whose clients died, which no client calls: traces say where.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ordercast.core import Consistency, Context, GroupId, Guarantees, MessageId, Nanos, ShardMachine
from ordercast.judge.finding.replay import Replay

SHARDED = (Consistency.SERIALIZABLE, Consistency.STRICT_SERIALIZABLE)


class ShardStep(NamedTuple):
    """An operation at its place in a shard; or the end of a transaction, behind the operation there."""

    place: tuple[int, int]
    ends: bool
    message: MessageId
    submitted: Nanos = 0


def is_sharded(promised: Guarantees, replay: Replay) -> bool:
    """Whether the service of a run is cut into shards."""
    return replay.service.sharding is not None and promised.consistency in SHARDED


def replay_shard(
    replay: Replay,
    operations: Mapping[MessageId, bytes],
    shard: GroupId,
    shards: int,
    steps: Iterable[ShardStep],
) -> dict[MessageId, bytes]:
    """The results of a fresh shard for the operations that it answers."""
    machine = replay.service.for_group(shard, shards).make()
    assert isinstance(machine, ShardMachine)
    results: dict[MessageId, bytes] = {}
    now: Nanos = 0
    for step in sorted(steps):
        if step.ends:
            machine.end(step.message, Context(step.message, now))
        else:
            now = max(now, step.submitted)
            result = machine.apply(operations[step.message], Context(step.message, now))
            results |= {step.message: result} if result else {}
        results |= dict(machine.released)
        machine.released.clear()
    return results


def combined(
    replay: Replay, operation: bytes, message: MessageId, parts: Iterable[Mapping[MessageId, bytes]]
) -> bytes | None:
    """The answer to an operation from the results of its shards; None if one has no result."""
    found = [part.get(message, b"") for part in parts]
    assert replay.service.sharding is not None
    return replay.service.sharding.combine(operation, found) if all(found) else None
