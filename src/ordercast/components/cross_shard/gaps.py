"""Gap agreement where messages go to several groups: no group gives a slot up by itself.

Within the group everything is as ever. But before the leader proposes to give a slot up, the coordinator must
have decided that the message is gone from all of its groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.components.network_ordered.gaps import GapAgreement

BACK_OFF_MAX = 16
"""Questions are repeated at last after so many times `gap_ns`."""

if TYPE_CHECKING:
    from collections.abc import Callable

    from ordercast.components.cross_shard.replica import ShardReplica
    from ordercast.components.network_ordered import LogEntry
    from ordercast.components.network_ordered.place import Slot
    from ordercast.core import Nanos


class ShardGaps(GapAgreement):
    """The gaps of one replica of several groups."""

    def __init__(self, replica: ShardReplica) -> None:
        super().__init__(replica)
        self._owner = replica
        self._searched: dict[Slot, tuple[Nanos, Nanos]] = {}
        """When the coordinator is asked for a slot again, and how long after the last time that is."""

    def on_ruling(self) -> None:
        """The coordinator has decided on something: as the leader, give up what is gone."""
        if self._owner.is_normal and self._owner.leads:
            waiting = [slot for slot, gap in self._gaps.items() if not gap.committing]
            gone = [slot for slot in waiting if self._owner.counts_nowhere(slot)]
            if gone:
                super()._give_up(gone)

    def give_up_passed(self, is_void: Callable[[LogEntry], bool]) -> None:
        """Give up slots of the log that another group's last number makes void, before others that count.
        This replica has passed them, so it has to tell those that never had them."""
        owner, log = self._owner, self._owner.log
        open_ = log.entries[log.synced :]
        last = {entry.sequencer: entry.number for entry in open_ if not is_void(entry)}
        passed = [
            entry.slot for entry in open_ if entry.number < last.get(entry.sequencer, 0) and is_void(entry)
        ]
        for slot in passed:
            log.give_up(slot)
        if passed:
            owner.save_noops()

    def _give_up(self, slots: list[Slot]) -> None:
        """Give up what counts nowhere, and ask the coordinator for the rest."""
        owner = self._owner
        gone = [slot for slot in slots if self._is_committing(slot) or owner.counts_nowhere(slot)]
        self._owner.search([slot for slot in slots if slot not in gone and self._is_due(slot)])
        if gone:
            super()._give_up(gone)

    def _on_hopeless(self) -> None:
        """Nobody in this group has some slots: ask whether others have them."""
        others = len(self._owner.others)
        slots = [
            slot for slot, gap in self._gaps.items() if len(gap.lacking) == others and not gap.committing
        ]
        self._give_up(slots)

    def _is_due(self, slot: Slot) -> bool:
        """Whether to ask the coordinator for a slot, less and less often."""
        now, first = self._owner.env.now, self._owner.options.gap_ns
        due, wait = self._searched.get(slot, (now, first // 2))
        if due > now:
            return False
        wait = min(2 * wait, BACK_OFF_MAX * first)
        self._searched[slot] = now + wait, wait
        return True

    def _prune(self) -> None:
        super()._prune()
        self._searched = {slot: asked for slot, asked in self._searched.items() if slot in self._gaps}
