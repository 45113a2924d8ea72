"""Why a message is not delivered yet, in words."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping

from ordercast.core import Nanos, Stamp, Wait
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import LaneState
from ordercast.protocols.hydra.merge import Merge

_REASONS = {
    LaneState.JOINING: " (it is being added)",
    LaneState.FROZEN: " (it is being removed)",
    LaneState.BLIND: " (what was known of it is lost)",
}
NAMED_MAX = 20
"""Up to this many missing numbers are named one by one."""


def explain_waits(merge: Merge, since: Nanos) -> Iterator[Wait]:
    """One wait for each message held: the sequencer whose clock it waits for, or the missing numbers."""
    lanes = sorted((lane.safe, sequencer) for sequencer, lane in merge.lanes.items())
    for lane in merge.lanes.values():
        for number, packet in enumerate(lane.queue, lane.settled + 1):
            place = (packet.clock, lane.sequencer)
            behind = lanes[: bisect_left(lanes, place)]
            blocker = _blocker(merge, place, behind)
            asked = tuple(merge.lanes[sequencer].node for _, sequencer in behind)
            stamp = Stamp(*place)
            yield Wait(_name(lane, number), blocker, since, packet.payload, stamp=stamp, on=asked)
        for number, packet in sorted(lane.early.items()):
            subject = f"{_name(lane, number)} at clock {packet.clock}"
            missing = _missing(lane)
            stamp = Stamp(packet.clock, lane.sequencer)
            noticed = _gap_since(lane) or since
            yield Wait(subject, missing, noticed, packet.payload, stamp=stamp, on=(lane.node,))


def explain_behind(merge: Merge, began: Mapping[int, int]) -> str:
    """The sequencers that a life has not heard of since it `began` with these clocks, or whose messages it
    lacks."""
    lanes = merge.lanes.values()
    silent = [lane for lane in lanes if lane.clock <= began.get(lane.sequencer, -1)]
    gaps = [lane for lane in lanes if lane.has_gap]
    names = ", ".join(f"sequencer {lane.sequencer}" for lane in silent or gaps)
    return f"{'news' if silent else 'missing messages'} of {names}" if names else ""


def _gap_since(lane: Lane) -> Nanos:
    """Since when numbers are missing; 0 if that has not been noticed yet."""
    return 0 if lane.gap is None else lane.gap[0]


def _name(lane: Lane, number: int) -> str:
    return f"message {number} of sequencer {lane.sequencer}"


def _blocker(merge: Merge, place: tuple[int, int], behind: list[tuple[int, int]]) -> str:
    """The slowest sequencer of those whose messages could still come before this place."""
    if not behind:
        return "messages before it, which come first"
    safe, sequencer = behind[0]
    lane = merge.lanes[sequencer]
    others = "".join(f"; the clock of sequencer {other} is at {clock}" for clock, other in behind[1:])
    if lane.has_gap:
        return f"{_missing(lane)}; its clock is at {lane.clock}{others}"
    reason = _REASONS.get(lane.state, "")
    must = f"which is at {safe} and must reach {place[0]}"
    return f"the clock of sequencer {sequencer}{reason}, {must}{others}"


def _missing(lane: Lane) -> str:
    missing = lane.missing()
    asked = lane.search is not None and lane.search.first == missing.start
    more = " and have been asked for" if asked else ""
    if len(missing) == 1:
        more = more.replace("have", "has")
        return f"number {missing.start} of sequencer {lane.sequencer}, which is missing{more}"
    if len(missing) <= NAMED_MAX:
        named = ", ".join(map(str, missing))
    else:
        named = f"{missing.start} to {missing.stop - 1}"
    return f"numbers {named} of sequencer {lane.sequencer}, which are missing{more}"
