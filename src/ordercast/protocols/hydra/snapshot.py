"""What a durable receiver keeps over a restart: its place in every lane, and in the configurations.

Packets in its buffer are not kept: after a restart they count as lost, and are notified of.
"""

import msgspec

from ordercast.core import Nanos
from ordercast.protocols.hydra.follower import Follower
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import LanePlace
from ordercast.protocols.hydra.merge import Merge, Position
from ordercast.protocols.hydra.messages import Plans, Report, Step


class _State(msgspec.Struct, frozen=True, array_like=True):
    config: int
    steps: int
    newest: int
    last: Position
    latest: Position
    boundaries: list[tuple[Position, Step]]
    lanes: list[LanePlace]
    planned: Plans | None
    report: tuple[int, int, int, tuple[int, ...]] | None
    since: int = 0


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_State)


def take(merge: Merge, follower: Follower, config: int) -> bytes:
    """The state of a receiver."""
    lanes = [lane.place() for lane in merge.lanes.values()]
    given = follower.planned.report
    report = None if given is None else (given.step, given.sequencer, given.clock, given.numbers)
    state = _State(
        config, follower.steps, follower.newest, merge.last, follower.latest, list(follower.boundaries),
        lanes, follower.planned.plan, report, follower.since,
    )  # fmt: skip
    return _encoder.encode(state)


def restore(saved: bytes, merge: Merge, follower: Follower, now: Nanos) -> int:
    """Take the state back; returns the configuration."""
    state = _decoder.decode(saved)
    merge.last = state.last
    follower.steps, follower.newest, follower.latest = state.steps, state.newest, state.latest
    follower.since = state.since
    follower.boundaries.extend(state.boundaries)
    follower.planned.restore(state.planned, Report(*state.report) if state.report else None, now)
    for place in state.lanes:
        merge.add(Lane.at(place))
    return state.config
