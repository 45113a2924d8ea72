"""Wrong ways for a replica or a client to do one thing."""

from typing import Any

import msgspec

from ordercast.components.execution.client_table import ClientTable
from ordercast.components.network_ordered import client, votes
from ordercast.components.network_ordered.catch_up import CatchUp, Target
from ordercast.components.network_ordered.gaps import GapAgreement
from ordercast.components.network_ordered.inbox import Inbox
from ordercast.components.network_ordered.ledger import Ledger, Taken
from ordercast.components.network_ordered.log import SlotLog
from ordercast.components.network_ordered.messages import Reply, StartView, SyncPrepare, ViewChange
from ordercast.components.network_ordered.replica import NetworkReplica as Replica
from ordercast.components.network_ordered.syncs import PART, Synchronisation
from ordercast.components.network_ordered.views import Views
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import ACTIVE
from ordercast.protocols.hydra.replica_ordering import HydraOrdering

_agrees = client._agrees


def any_view(answer: Any, other: Any) -> bool:
    """Count replies of any view: the leader's is then not that of their leader."""
    return isinstance(other, Reply) and isinstance(answer, Reply) and answer.slot == other.slot


def any_tag(answer: Any, other: Any) -> bool:
    """Match replies without the steps, by slot and view alone."""
    if isinstance(answer, Reply) and isinstance(other, Reply):
        return (answer.view, answer.slot) == (other.view, other.slot)
    return _agrees(answer, other)


def leader_reads_alone(self: Any, source: int, reply: Any) -> None:
    """Take the leader's answer to a read for good."""
    if reply.results is not None and not isinstance(reply, Reply):
        self._settle(reply.first, reply.results, None, source)
    else:
        _take(self, source, reply)


_take = client.Replies.take


def any_place(answer: Any, other: Any) -> bool:
    """Count replies to a read without a look at how far their logs are."""
    if not isinstance(answer, Reply) and not isinstance(other, Reply):
        return (answer.view, answer.tag) == (other.view, other.tag)
    return _agrees(answer, other)


_give_up = GapAgreement._give_up


def pass_at_once(self: GapAgreement, slots: Any) -> None:
    """Go on past a slot before anybody else has given it up."""
    _give_up(self, slots)
    for slot in slots:
        self._replica.ordering.settle(slot)


def give_up_in_memory(self: GapAgreement, slots: Any) -> None:
    """Give up slots as a leader, but save nothing of it."""
    replica = self._replica
    save, replica.save_noops = replica.save_noops, lambda: None  # type: ignore[method-assign]
    _give_up(self, slots)
    replica.save_noops = save  # type: ignore[method-assign]


_merge = votes.merge


def longest_of_all(found: dict[int, ViewChange]) -> Target:
    """Take the longest log, whatever view it is from."""
    return _merge({node: msgspec.structs.replace(vote, normal=0) for node, vote in found.items()})


def most_calls(found: dict[int, ViewChange]) -> Target:
    """Take the log with the most calls, not the one that ends last."""

    def calls(node: int) -> int:
        return sum(number for _, number in found[node].place.numbers) - len(found[node].noops)

    source = max(found, key=calls)
    return msgspec.structs.replace(_merge(found), place=found[source].place, source=source)


def no_noops(found: dict[int, ViewChange]) -> Target:
    """Forget what was given up."""
    return msgspec.structs.replace(_merge(found), noops=frozenset())


def append(self: HydraOrdering, entry: Any) -> None:
    """Append a recovered message at the end of the log."""
    self._owner.ordered(entry)


def keep_table(self: Ledger, stop: int) -> None:
    """Undo the service, but not the client table."""
    if self.executed > stop:
        table = self.executor._table
        self.executor.restore(self.state)
        self.executor._table = table
        self.executed = 0
        self.outcomes.clear()
        self.execute(stop)


def undo_nothing(self: Ledger, stop: int) -> None:
    """Keep what was executed."""


_start = Replica.on_start


def vote_without_memory(self: Replica, saved: Any) -> None:
    """Begin as if for the first time."""
    self.env.forgot = False  # type: ignore[misc]
    _start(self, {})


def take_any(self: HydraOrdering, place: Any) -> bool:
    """Take entries beyond what was reported."""
    return True


def accept_any(self: Lane, packet: Any) -> bool:
    """Accept packets beyond what was reported."""
    return True


def offer_any(self: HydraOrdering, entry: Any) -> None:
    """Take what another replica supplies as if nothing had been reported."""
    lane = self.reception.merge.lanes[entry.sequencer]
    state, lane.state = lane.state, ACTIVE
    self.reception.on_groupcast(self._packet(entry))
    lane.state = state


def always_execute(self: Replica) -> None:
    """Execute before anything is certain, everywhere."""
    self.ledger.execute(len(self.log.entries))


def admit_any(self: Views, source: int, message: StartView) -> None:
    """Come back with any view."""
    returns = ((self._replica.env.me, self.life),)
    _admit(self, source, msgspec.structs.replace(message, returns=returns))


_admit = Views.on_start_view_returning
_reconfigured = Replica.reconfigured


def cut_nothing(self: Replica, is_void: Any, beyond: Any) -> None:
    """Keep what the step has cut off."""
    _reconfigured(self, lambda entry: False, beyond)


def order_stays(self: Replica, is_void: Any, beyond: Any) -> None:
    """Do not go back to where a new sequencer begins."""
    _reconfigured(self, is_void, None)


def reply_nothing(self: Any) -> None:
    """Do not reply anew."""


def keep_in_log(self: Replica, source: Any, slots: Any) -> None:
    """Take note of slots that are given up, and keep their entries."""
    for slot in slots:
        self.log.give_up(slot)
        self.ordering.settle(slot)


_forget = HydraOrdering.forget


def forget_at_once(self: HydraOrdering, synced: Any, kept: Any) -> None:
    """Forget a removed sequencer although the log has entries of it."""
    _forget(self, synced, ())


def take_and_ask(self: CatchUp, entries: Any) -> None:
    """Ask for the rest after each entry."""
    if self.target is not None:
        self._found.update((entry.slot, entry) for entry in entries)
        self.go_on()


def ask_for_more(self: CatchUp, source: int, chunk: Any) -> None:
    """Ask for the next part of a state after each part, also after a copy."""
    _on_chunk(self, source, chunk)
    if self._transfer is not None:
        self._ask_for_state(source)


_on_chunk = CatchUp.on_chunk


_decided = HydraOrdering.decided


def discard_at_once(self: HydraOrdering, step: Any) -> None:
    """Discard the lane of a removed sequencer with the step."""
    _decided(self, step)
    if step.change == "removed":
        self.reception.discard(step.sequencer)


def spans_of_known(self: CatchUp, target: Target) -> dict[int, range]:
    """Pass over sequencers of which nothing is known."""
    log, ordering = self._replica.log, self._replica.ordering
    certain = dict(log.place_at(log.synced).numbers)
    begun = {one: certain.get(one, ordering.begun(one)) for one, _ in target.place.numbers}
    return {
        one: range(first + 1, last + 1)
        for one, last in target.place.numbers
        if (first := begun[one]) is not None
    }


def no_steps(self: HydraOrdering, tag: int) -> None:
    """Tell nobody of steps."""


def no_question(self: HydraOrdering, slot: Any) -> bool:
    """Do not believe that a slot exists because somebody lacks it."""
    return False


_lose_memory = HydraOrdering.lose_memory


def report_anyway(self: HydraOrdering) -> None:
    """Take part in changes of the sequencers before the log is back."""
    self.reception.begin(self._initial)
    _lose_memory(self)
    self._takes_part = True


_on_in_view = Inbox._on_in_view


def any_steps(self: Inbox, source: int, message: Any) -> None:
    """Merge logs without a look at their steps."""
    if isinstance(message, ViewChange):
        message = msgspec.structs.replace(message, tag=self._replica.tag)
    _on_in_view(self, source, message)


def early_checkpoint(self: Ledger) -> Taken | None:
    """Let a state count before it is certain."""
    return self._taken.pop(0) if self._taken else None


_replace_tail = SlotLog.replace_tail


def keep_noops(self: SlotLog, entries: Any, noops: Any) -> Any:
    """Keep what was given up here, though the view begins with a log that has its call."""
    return _replace_tail(self, entries, {*noops, *self.noops})


def always_fresh(self: Any, call: Any, groups: Any = ()) -> Any:
    """Forget every result."""
    record = _admitted(self, call, groups)
    if record is not None:
        record.results.clear()
    return record


_admitted = ClientTable.admit


def miss_the_leader_alone(self: Views) -> bool:
    """Replace a leader that is silent; a leader itself may be deaf."""
    return not self._replica.leads and self._replica.leader not in self._heard


def try_views_alone(self: Views) -> None:
    """Try one leader after the other, also without hearing anybody."""
    self._heard.add(self._replica.env.me)
    _on_timer(self)


def agree_to_news(self: Synchronisation, message: SyncPrepare) -> None:
    """Say nothing if nothing is new."""
    if not message.is_certain or self._replica.log.synced_rank < message.place.rank:
        _agree(self, message)


def stop_after_a_part(self: Synchronisation) -> None:
    """Forget that more is certain."""
    _go_on(self)
    self._certain = self._replica.log.synced_rank


def restore_in_parts(self: Synchronisation) -> None:
    """Execute in parts also what an earlier life may have delivered."""
    log = self._replica.log
    part = min(log.index_of(self._certain), log.synced + self._part)
    if part > log.synced:
        self._make_certain(part)
        self._replica.env.set_timer(PART, 1)


_agree = Synchronisation._agree
_go_on = Synchronisation.go_on
_on_timer = Views.on_timer
