"""Gap agreement (NOPaxos section 5.3): every slot of the log has a call, or is given up by a majority.

A replica that lacks a slot asks the leader; the leader asks all. If nobody has it, the leader gives the slot
up. It goes on past it only when f others have taken note, so that no later leader can fill the slot. A
replica that has the call takes it out of its log again: the leader never answered it, so no client has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.components.network_ordered.messages import Entries, GapCommit, GapCommitReply, GapRequest
from ordercast.core import Nanos, NodeId

if TYPE_CHECKING:
    from ordercast.components.network_ordered.place import Slot
    from ordercast.components.network_ordered.replica import NetworkReplica

GAPS = "gaps"
"""The timer of the replica for gaps."""
SLOTS_MAX = 256
"""How many slots one message asks for, or gives up."""


class Gap:
    """A slot that is missing here."""

    __slots__ = ("acks", "asked", "committing", "lacking", "since")

    def __init__(self, now: Nanos) -> None:
        self.since = now
        self.asked: Nanos | None = None
        """When the leader began to ask for it."""
        self.lacking: set[NodeId] = set()
        """Who does not have it either."""
        self.committing = False
        self.acks: set[NodeId] = set()


class GapAgreement:
    """The gaps of one replica."""

    def __init__(self, replica: NetworkReplica) -> None:
        self._replica = replica
        self._gaps: dict[Slot, Gap] = {}
        self._armed = False

    @property
    def open(self) -> dict[Slot, Nanos]:
        """The missing slots, and since when."""
        return {slot: gap.since for slot, gap in self._gaps.items()}

    def clear(self) -> None:
        """A view ends: what was proposed in it counts no more, unless the next leader takes it over."""
        self._gaps.clear()

    def ask_anew(self) -> None:
        """The tag has changed: answers to what was said before count no more."""
        self._gaps = {slot: gap for slot, gap in self._gaps.items() if gap.committing}
        for gap in self._gaps.values():
            gap.acks.clear()

    def doubt_again(self) -> None:
        """The ordering was reset: it must not pass slots that others have not agreed to give up."""
        for slot, gap in self._gaps.items():
            if gap.committing:
                self._replica.ordering.doubt(slot)

    def missing(self, slots: list[Slot]) -> None:
        """Slots are missing."""
        now = self._replica.env.now
        for slot in slots:
            known = slot in self._gaps or slot in self._replica.log.noops
            if len(self._gaps) < SLOTS_MAX and not known:
                self._gaps[slot] = Gap(now)
                self._arm(self._replica.options.ask_ns)

    def _arm(self, after: Nanos) -> None:
        if not self._armed:
            self._armed = True
            self._replica.env.set_timer(GAPS, max(1, after))

    def on_timer(self) -> None:
        """Ask, or go on with giving up."""
        self._armed = False
        replica = self._replica
        self._prune()
        if not self._gaps or not replica.is_normal:
            return
        if replica.leads:
            self._lead()
        else:
            asked = tuple(self._gaps)
            replica.env.send(replica.leader, GapRequest(replica.view, replica.tag, asked))
        self._arm(replica.options.gap_ns)

    def _prune(self) -> None:
        """Forget the slots that have come meanwhile."""
        self._gaps = {slot: gap for slot, gap in self._gaps.items() if gap.committing or self._lacks(slot)}

    def _lacks(self, slot: Slot) -> bool:
        """Whether a slot is neither in the log nor given up."""
        log = self._replica.log
        return slot not in log.noops and not log.is_behind(slot) and self._replica.find(slot) is None

    def _lead(self) -> None:
        """Ask for what has not been asked for, and give up what nobody has."""
        self._prune()
        replica, now = self._replica, self._replica.env.now
        asking, giving_up = [], []
        for slot, gap in self._gaps.items():
            if gap.asked is None:
                gap.asked = now
            late = now - gap.asked >= replica.options.gap_ns
            if gap.committing or late or len(gap.lacking) == len(replica.others):
                giving_up.append(slot)
            else:
                asking.append(slot)
        if asking:
            request = GapRequest(replica.view, replica.tag, tuple(asking))
            replica.env.multicast(replica.others, request)
        if giving_up:
            self._give_up(giving_up)

    def _give_up(self, slots: list[Slot]) -> None:
        replica = self._replica
        for slot in slots:
            if not self._gaps[slot].committing:
                self._gaps[slot].committing = True
                replica.log.give_up(slot)
                replica.ordering.doubt(slot)
        # What comes next in the log rests on it: a leader that forgot it would wait for the slot for ever, or
        # let another replica fill it.
        replica.save_noops()
        replica.env.multicast(replica.others, GapCommit(replica.view, replica.tag, tuple(slots)))
        self._settle()  # a replica alone needs nobody

    def on_request(self, source: NodeId, message: GapRequest) -> None:
        """Send what is here; a slot that somebody lacks exists."""
        replica = self._replica
        entries, lacking, given_up = [], [], []
        for slot in message.slots:
            entry = replica.find(slot)
            if entry is not None and slot not in replica.log.noops:
                entries.append(entry)
            elif slot in replica.log.noops:
                given_up.append(slot)
            elif replica.log.is_behind(slot):
                replica.supply.offer_state(source)
            elif replica.ordering.exists(slot):
                lacking.append(slot)
        replica.supply.send_entries(source, entries, tuple(lacking))
        certain = tuple(slot for slot in given_up if not self._is_committing(slot))
        if certain and replica.leads:
            replica.env.send(source, GapCommit(replica.view, replica.tag, certain))

    def _is_committing(self, slot: Slot) -> bool:
        gap = self._gaps.get(slot)
        return gap is not None and gap.committing

    def on_entries(self, source: NodeId, message: Entries) -> None:
        """Take what another replica has, and note what it lacks."""
        replica = self._replica
        for entry in message.entries:
            if not self._is_committing(entry.slot):
                replica.ordering.offer(entry)
        hopeless = False
        for slot in message.lacking:
            gap = self._gaps.get(slot)
            if gap is not None:
                gap.lacking.add(source)
                hopeless = hopeless or len(gap.lacking) == len(replica.others)
        if hopeless and replica.leads:
            self._on_hopeless()

    def _on_hopeless(self) -> None:
        """Nobody has some slot: do not wait any longer."""
        self._lead()

    def on_commit(self, source: NodeId, message: GapCommit) -> None:
        """Take note that slots are given up."""
        replica = self._replica
        if source != replica.leader:
            return
        replica.give_up(source, message.slots)
        for slot in message.slots:
            self._gaps.pop(slot, None)
        replica.env.send(source, GapCommitReply(replica.view, replica.tag, message.slots))

    def on_commit_reply(self, source: NodeId, message: GapCommitReply) -> None:
        """Another replica has taken note."""
        for slot in message.slots:
            gap = self._gaps.get(slot)
            if gap is not None and gap.committing:
                gap.acks.add(source)
        self._settle()

    def _settle(self) -> None:
        """Go on past the slots that enough replicas have given up."""
        replica = self._replica
        done = [
            slot for slot, gap in self._gaps.items() if gap.committing and len(gap.acks) >= replica.support
        ]
        for slot in done:
            del self._gaps[slot]
            replica.ordering.settle(slot)
