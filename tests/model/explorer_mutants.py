"""Broken variants of Hydra's real classes, and what the explorer must say of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from ordercast.core import NodeId
from ordercast.lab.model.explorer_case import Case
from ordercast.lab.model.explorer_hydra import BOTH, FIRST, LEFT, RIGHT, case
from ordercast.protocols.hydra.follower import Follower
from ordercast.protocols.hydra.keeper import Keeper
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import ACTIVE, FROZEN
from ordercast.protocols.hydra.merge import END, Merge, Position
from ordercast.protocols.hydra.messages import (
    NEVER,
    Announce,
    Flush,
    Groupcast,
    Inquiry,
    Outcome,
    Plans,
    Report,
    Step,
)
from ordercast.protocols.hydra.origins import Origins
from ordercast.protocols.hydra.receiver import Receiver
from ordercast.protocols.hydra.sender import Sender


@dataclass(frozen=True, slots=True)
class Mutant:
    """One part replaced by a broken one, a case, and a part of the fault that must be found."""

    name: str
    where: Any
    attribute: str
    broken: Any
    case: Callable[[], Case]
    finds: str


def plain() -> Case:
    """Three messages, no change."""
    return case("plain", "", ((1, BOTH), (2, LEFT), (2, RIGHT)))


def removal() -> Case:
    """A sequencer is removed that still sends."""
    mixed = ((1, BOTH), (2, BOTH), (2, RIGHT))
    return case("removal", "", mixed, removed=2, flush="periodic", flushes=FIRST)


def addition() -> Case:
    """A sequencer is added that sends at once."""
    both = ((1, BOTH), (2, BOTH))
    clocks = (20, 0)
    return case("addition", "", both, first=1, added=True, flush="periodic", flushes=FIRST, clocks=clocks)


def resend() -> Case:
    """A sequencer is removed to which a sender that keeps has sent a message."""
    return case("resend", "", (), kept=(BOTH,), removed=2, flush="periodic", flushes=FIRST)


def _highest_floor(self: Merge) -> Position:
    """Deliver up to the clock of the sequencer that is ahead, not of the one behind."""
    return max(((lane.safe, sequencer) for sequencer, lane in self.lanes.items()), default=END)


def _take_without_ties(self: Merge, limit: Position = END) -> Groupcast | None:
    """Of messages with the same clock take that of the highest sequencer, if it is here."""
    heads = self._heads
    if not heads or heads[0] > limit or heads[0] > self.floor():
        return None
    place = self.last = max(head for head in heads if head[0] == heads[0][0])
    packet = self.lanes[place[1]].queue.popleft()
    self.held -= 1
    self._rebuild()
    return packet


_offer = Merge.offer


def _offer_after_report(self: Merge, lane: Lane, packet: Groupcast, number: int, room: int = 0) -> bool:
    """Accept packets of a sequencer after what was seen of it has been reported."""
    state = lane.state
    lane.state = ACTIVE if state is FROZEN else state
    kept = _offer(self, lane, packet, number, room)
    lane.state = state
    return kept


def _offer_own_number(self: Merge, lane: Lane, packet: Groupcast, number: int, room: int = 0) -> bool:
    """Accept a packet of a removed sequencer without a look at its numbers for other groups."""
    final = lane.final
    if final is not None:
        lane.final = tuple(last if group == self.group else NEVER for group, last in enumerate(final))
    kept = _offer(self, lane, packet, number, room)
    lane.final = final
    return kept


def _report_own_group(self: Lane, group: int) -> tuple[int, ...]:
    """Report only what the own group has seen, not the other numbers of multi-stamps."""
    return tuple(self.high if other == group else 0 for other in range(len(self._seen)))


def _skip_silently(self: Receiver, lane: Lane) -> bool:
    """Go on past missing numbers without a word."""
    return bool(self._merge.skip(lane, lane.high))


_apply = Follower._apply


def _start_early(self: Follower, step: Step) -> None:
    """Begin an added sequencer one number before the agreed one."""
    if step.change == "added":
        earlier = tuple(max(0, number - 1) for number in step.numbers)
        early = msgspec.structs.replace(step, numbers=earlier)
        _apply(self, early)
        self.boundaries[-1] = (self.boundaries[-1][0], step)
    else:
        _apply(self, step)


_on_flush = Follower.on_flush


def _not_held_back(self: Follower, flush: Flush) -> None:
    """Deliver above the flush that was reported of a sequencer which is being added."""
    _on_flush(self, flush)
    lane = self._merge.lanes.get(flush.sequencer)
    if lane is not None:
        lane.hold(NEVER)


def _never_report(self: Follower, report: Report) -> None:
    """Keep what was seen to oneself."""


take_part = Follower.take_part


def _report_nothing(self: Follower, planned: Plans) -> None:
    """Report an empty lane, whatever was seen."""
    lane = self._merge.lanes.get(planned.sequencer)
    if planned.change == "removed" and lane is not None and self.planned.report is None:
        self.planned.propose(planned, self._env.now)
        lane.freeze()
        self._send_report(Report(self.steps, planned.sequencer, lane.clock, (0,) * self._groups))
    else:
        take_part(self, planned)


def _recognise_nothing(self: Origins, sender: NodeId, inquiry: Inquiry) -> Outcome:
    """Tell a sender that nothing of what it asks about has come."""
    return Outcome(inquiry.sequencer, (), inquiry.numbers, ())


def _miss_nothing(self: Origins, sequencer: int) -> None:
    """Forget that a number was given up, of which nobody here knows what it was."""


_follow = Sender._follow


def _send_again_at_once(self: Sender, source: NodeId, message: Announce, keeper: Keeper) -> None:
    """Send to another sequencer as soon as a removal is planned, not when it is decided."""
    _follow(self, source, message, keeper)
    planned = message.planned
    ledger = None if planned is None else keeper._ledgers.pop(planned.sequencer, None)
    if ledger is not None:
        keeper.again.extend((held.groups, held.payload) for held in ledger.kept.values())
        self._send_again()


def _forget_removed(self: Keeper, sequencer: int, *, complete: bool) -> None:
    """Keep nothing that was sent to a removed sequencer."""
    self._ledgers.pop(sequencer, None)


MUTANTS = [
    Mutant("highest floor", Merge, "floor", _highest_floor, plain, "delivery: m"),
    Mutant("no tie-break", Merge, "take", _take_without_ties, plain, "global order"),
    Mutant("silent gaps", Receiver, "_notify", _skip_silently, plain, "delivery: m"),
    Mutant("accepts after its report", Merge, "offer", _offer_after_report, removal, "views: sequencer 2"),
    Mutant("other groups ignored", Merge, "offer", _offer_own_number, removal, "delivery: m2"),
    Mutant("own group reported", Lane, "report", _report_own_group, removal, "delivery: m2"),
    Mutant("nothing reported", Follower, "take_part", _report_nothing, removal, "views: sequencer 2"),
    Mutant("never reports", Follower, "_send_report", _never_report, removal, "does not settle"),
    Mutant("starts early", Follower, "_apply", _start_early, addition, "views: number 1 of sequencer 2"),
    Mutant("not held back", Follower, "on_flush", _not_held_back, addition, "delivery: m2"),
    Mutant("recognises nothing", Origins, "outcome", _recognise_nothing, resend, "at most once: k1"),
    Mutant("misses nothing", Origins, "miss", _miss_nothing, resend, "at most once: k1"),
    Mutant("sends again at once", Sender, "_follow", _send_again_at_once, resend, "at most once: k1"),
    Mutant("forgets what was removed", Keeper, "_end", _forget_removed, resend, "validity: receiver"),
]
