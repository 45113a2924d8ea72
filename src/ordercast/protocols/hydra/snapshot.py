"""What a durable receiver keeps over a restart: its place in every lane, and in the configurations.

Packets in its buffer are not kept: after a restart they count as lost, and are notified of.
"""

import msgspec

from ordercast.protocols.hydra.follower import Follower
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.merge import Merge, Position
from ordercast.protocols.hydra.messages import Plans, Report, Step


class _Lane(msgspec.Struct, frozen=True, array_like=True):
    sequencer: int
    node: int
    settled: int
    high: int
    clock: int
    safe: int
    seen: list[int]
    joining: bool
    frozen: bool
    final: tuple[int, ...] | None


class _State(msgspec.Struct, frozen=True, array_like=True):
    config: int
    steps: int
    newest: int
    last: Position
    latest: Position
    boundaries: list[tuple[Position, Step]]
    lanes: list[_Lane]
    planned: Plans | None
    report: tuple[int, int, int, tuple[int, ...]] | None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_State)


def take(merge: Merge, follower: Follower, config: int) -> bytes:
    """The state of a receiver."""
    lanes = [
        _Lane(
            lane.sequencer, lane.node, lane.settled, lane.high, lane.clock, _safe(lane), lane.seen,
            lane.joining, lane.frozen, lane.final,
        )
        for lane in merge.lanes.values()
    ]  # fmt: skip
    report = None
    if follower.report is not None:
        report = (
            follower.report.step, follower.report.sequencer, follower.report.clock, follower.report.numbers
        )  # fmt: skip
    state = _State(
        config, follower.steps, follower.newest, merge.last, follower.latest, list(follower.boundaries),
        lanes, follower.planned, report,
    )  # fmt: skip
    return _encoder.encode(state)


def restore(saved: bytes, merge: Merge, follower: Follower, groups: int) -> int:
    """Take the state back; returns the configuration."""
    state = _decoder.decode(saved)
    merge.last = state.last
    follower.steps, follower.newest, follower.latest = state.steps, state.newest, state.latest
    follower.boundaries.extend(state.boundaries)
    follower.planned, follower.report = state.planned, Report(*state.report) if state.report else None
    for kept in state.lanes:
        lane = Lane(kept.sequencer, kept.node, groups, kept.clock, kept.settled)
        lane.high, lane.safe = kept.high, kept.safe
        lane.seen, lane.final = kept.seen, kept.final
        lane.joining, lane.frozen = kept.joining, kept.frozen
        merge.add(lane)
    return state.config


def _safe(lane: Lane) -> int:
    """Everything up to here is settled, were the queue lost."""
    return min(lane.safe, lane.queue[0].clock - 1) if lane.queue else lane.safe
