"""Replicas and clients that are broken on purpose, and the play in which each breaks a promise."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from ordercast.components.execution.client_table import ClientTable
from ordercast.components.network_ordered import client, views, votes
from ordercast.components.network_ordered.answers import Answers
from ordercast.components.network_ordered.catch_up import CatchUp, Target
from ordercast.components.network_ordered.gaps import GapAgreement
from ordercast.components.network_ordered.inbox import Inbox
from ordercast.components.network_ordered.ledger import Ledger, Taken
from ordercast.components.network_ordered.log import SlotLog
from ordercast.components.network_ordered.messages import Reply, StartView, ViewChange
from ordercast.components.network_ordered.replica import NetworkReplica as Replica
from ordercast.components.network_ordered.supply import Supply
from ordercast.components.network_ordered.syncs import Synchronisation
from ordercast.components.network_ordered.views import Views
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.lane_life import ACTIVE
from ordercast.protocols.hydra.replica_ordering import HydraOrdering
from tests.network_ordered import plays, plays_logs, plays_reports
from tests.network_ordered import plays_catching_up as behind
from tests.network_ordered import plays_traps as traps


class Mutant(NamedTuple):
    """A defect."""

    name: str
    owner: Any
    attribute: str
    value: Any
    play: Callable[[], None]
    also: tuple[tuple[Any, str, Any], ...] = ()
    """Further defects, where one alone is caught by another remedy."""


_agrees = client._agrees


def _any_view(answer: Any, other: Any) -> bool:
    """Count replies of any view: the leader's is then not that of their leader."""
    return isinstance(other, Reply) and isinstance(answer, Reply) and answer.slot == other.slot


def _any_tag(answer: Any, other: Any) -> bool:
    """Match replies without the steps, by slot and view alone."""
    if isinstance(answer, Reply) and isinstance(other, Reply):
        return (answer.view, answer.slot) == (other.view, other.slot)
    return _agrees(answer, other)


def _leader_reads_alone(self: Any, source: int, reply: Any) -> None:
    """Take the leader's answer to a read for good."""
    if reply.results is not None and not isinstance(reply, Reply):
        self._settle(reply.first, reply.results, None, source)
    else:
        _take(self, source, reply)


_take = client.Replies.take


def _any_place(answer: Any, other: Any) -> bool:
    """Count replies to a read without a look at how far their logs are."""
    if not isinstance(answer, Reply) and not isinstance(other, Reply):
        return (answer.view, answer.tag) == (other.view, other.tag)
    return _agrees(answer, other)


_give_up = GapAgreement._give_up


def _pass_at_once(self: GapAgreement, slots: Any) -> None:
    """Go on past a slot before anybody else has given it up."""
    _give_up(self, slots)
    for slot in slots:
        self._replica.ordering.settle(slot)


_merge = votes.merge


def _longest_of_all(found: dict[int, ViewChange]) -> Target:
    """Take the longest log, whatever view it is from."""
    return _merge({node: msgspec.structs.replace(vote, normal=0) for node, vote in found.items()})


def _most_calls(found: dict[int, ViewChange]) -> Target:
    """Take the log with the most calls, not the one that ends last."""

    def calls(node: int) -> int:
        return sum(number for _, number in found[node].place.numbers) - len(found[node].noops)

    source = max(found, key=calls)
    return msgspec.structs.replace(_merge(found), place=found[source].place, source=source)


def _no_noops(found: dict[int, ViewChange]) -> Target:
    """Forget what was given up."""
    return msgspec.structs.replace(_merge(found), noops=frozenset())


def _append(self: HydraOrdering, entry: Any) -> None:
    """Append a recovered message at the end of the log."""
    self._owner.ordered(entry)


def _keep_table(self: Ledger, stop: int) -> None:
    """Undo the service, but not the client table."""
    if self.executed > stop:
        table = self.executor._table
        self.executor.restore(self.state)
        self.executor._table = table
        self.executed = 0
        self.outcomes.clear()
        self.execute(stop)


def _undo_nothing(self: Ledger, stop: int) -> None:
    """Keep what was executed."""


_start = Replica.on_start


def _vote_without_memory(self: Replica, saved: Any) -> None:
    """Begin as if for the first time."""
    self.env.forgot = False  # type: ignore[misc]
    _start(self, {})


def _take_any(self: HydraOrdering, place: Any) -> bool:
    """Take entries beyond what was reported."""
    return True


def _accept_any(self: Lane, packet: Any) -> bool:
    """Accept packets beyond what was reported."""
    return True


def _offer_any(self: HydraOrdering, entry: Any) -> None:
    """Take what another replica supplies as if nothing had been reported."""
    lane = self.reception.merge.lanes[entry.sequencer]
    state, lane.state = lane.state, ACTIVE
    self.reception.on_groupcast(self._packet(entry))
    lane.state = state


def _always_execute(self: Replica) -> None:
    """Execute before anything is certain, everywhere."""
    self.ledger.execute(len(self.log.entries))


def _admit_any(self: Views, source: int, message: StartView) -> None:
    """Come back with any view."""
    returns = ((self._replica.env.me, self.life),)
    _admit(self, source, msgspec.structs.replace(message, returns=returns))


_admit = Views.on_start_view_returning
_reconfigured = Replica.reconfigured


def _cut_nothing(self: Replica, is_void: Any, beyond: Any) -> None:
    """Keep what the step has cut off."""
    _reconfigured(self, lambda entry: False, beyond)


def _order_stays(self: Replica, is_void: Any, beyond: Any) -> None:
    """Do not go back to where a new sequencer begins."""
    _reconfigured(self, is_void, None)


def _reply_nothing(self: Any) -> None:
    """Do not reply anew."""


def _keep_in_log(self: Replica, source: Any, slots: Any) -> None:
    """Take note of slots that are given up, and keep their entries."""
    for slot in slots:
        self.log.give_up(slot)
        self.ordering.settle(slot)


_forget = HydraOrdering.forget


def _forget_at_once(self: HydraOrdering, synced: Any, kept: Any) -> None:
    """Forget a removed sequencer although the log has entries of it."""
    _forget(self, synced, ())


def _take_and_ask(self: CatchUp, entries: Any) -> None:
    """Ask for the rest after each entry."""
    if self.target is not None:
        self._found.update((entry.slot, entry) for entry in entries)
        self.go_on()


def _ask_for_more(self: CatchUp, source: int, chunk: Any) -> None:
    """Ask for the next part of a state after each part, also after a copy."""
    _on_chunk(self, source, chunk)
    if self._transfer is not None:
        self._ask_for_state(source)


_on_chunk = CatchUp.on_chunk


_decided = HydraOrdering.decided


def _discard_at_once(self: HydraOrdering, step: Any) -> None:
    """Discard the lane of a removed sequencer with the step."""
    _decided(self, step)
    if step.change == "removed":
        self.reception.discard(step.sequencer)


def _spans_of_known(self: CatchUp, target: Target) -> dict[int, range]:
    """Pass over sequencers of which nothing is known."""
    log, ordering = self._replica.log, self._replica.ordering
    certain = dict(log.place_at(log.synced).numbers)
    begun = {one: certain.get(one, ordering.begun(one)) for one, _ in target.place.numbers}
    return {
        one: range(first + 1, last + 1)
        for one, last in target.place.numbers
        if (first := begun[one]) is not None
    }


def _no_steps(self: HydraOrdering, tag: int) -> None:
    """Tell nobody of steps."""


def _no_question(self: HydraOrdering, slot: Any) -> bool:
    """Do not believe that a slot exists because somebody lacks it."""
    return False


_lose_memory = HydraOrdering.lose_memory


def _report_anyway(self: HydraOrdering) -> None:
    """Take part in changes of the sequencers before the log is back."""
    self.reception.begin(self._initial)
    _lose_memory(self)
    self._takes_part = True


_on_in_view = Inbox._on_in_view


def _any_steps(self: Inbox, source: int, message: Any) -> None:
    """Merge logs without a look at their steps."""
    if isinstance(message, ViewChange):
        message = msgspec.structs.replace(message, tag=self._replica.tag)
    _on_in_view(self, source, message)


def _early_checkpoint(self: Ledger) -> Taken | None:
    """Let a state count before it is certain."""
    return self._taken.pop(0) if self._taken else None


_replace_tail = SlotLog.replace_tail


def _keep_noops(self: SlotLog, entries: Any, noops: Any) -> Any:
    """Keep what was given up here, though the view begins with a log that has its call."""
    return _replace_tail(self, entries, {*noops, *self.noops})


def _always_fresh(self: Any, call: Any) -> Any:
    """Forget every result."""
    record = _admitted(self, call)
    if record is not None:
        record.results.clear()
    return record


_admitted = ClientTable.admit


MUTANTS = (
    Mutant("a quorum without the leader", client, "_agrees", _any_view, plays.a_quorum_over_two_views),
    Mutant("a tag without steps", client, "_agrees", _any_tag, traps.a_boundary_above_what_a_group_knows),
    Mutant(
        "a gap passed before f acknowledgements",
        GapAgreement,
        "_give_up",
        _pass_at_once,
        plays.a_slot_is_given_up_by_the_leader_alone,
    ),
    Mutant(
        "the longest log of an old view",
        views,
        "merge",
        _longest_of_all,
        traps.a_view_change_with_a_vote_of_an_old_view,
    ),
    Mutant("a NO-OP forgotten", views, "merge", _no_noops, plays.a_noop_survives_a_view_change),
    Mutant("a NO-OP kept in the log", Replica, "give_up", _keep_in_log, plays.one_holds_what_is_given_up),
    Mutant(
        "a recovered packet at the end of the log",
        HydraOrdering,
        "offer",
        _append,
        plays.a_recovered_message_ranks_among_buffered_ones,
    ),
    Mutant("a table not rolled back", Ledger, "roll_back", _keep_table, traps.a_leader_executed_too_much),
    Mutant("nothing rolled back", Ledger, "roll_back", _undo_nothing, traps.a_leader_executed_too_much),
    Mutant(
        "a vote without memory",
        Replica,
        "on_start",
        _vote_without_memory,
        traps.a_replica_without_memory_returns,
    ),
    Mutant(
        "a return with an old view",
        Views,
        "on_start_view_returning",
        _admit_any,
        traps.an_old_view_does_not_take_back_a_replica,
    ),
    Mutant(
        "an entry taken beyond a report",
        HydraOrdering,
        "may_take",
        _take_any,
        traps.who_has_reported_takes_nothing_beyond,
    ),
    Mutant(
        "a packet accepted beyond a report",
        Lane,
        "accepts",
        _accept_any,
        plays.a_packet_comes_after_the_report,
    ),
    Mutant(
        "a read of a deposed leader",
        client.Replies,
        "take",
        _leader_reads_alone,
        traps.a_read_of_a_deposed_leader,
    ),
    Mutant("a read without places", client, "_agrees", _any_place, traps.a_read_of_what_is_not_certain),
    Mutant(
        "execution before sync",
        Replica,
        "execute_all",
        _always_execute,
        plays.one_holds_what_is_given_up,
    ),
    Mutant(
        "nothing cut off",
        Replica,
        "reconfigured",
        _cut_nothing,
        plays.a_sequencer_reaches_only_the_leader,
    ),
    Mutant(
        "an addition without going back",
        Replica,
        "reconfigured",
        _order_stays,
        traps.a_sequencer_is_added_below_what_was_delivered,
    ),
    Mutant(
        "a removed lane discarded at once",
        HydraOrdering,
        "decided",
        _discard_at_once,
        traps.going_back_crosses_a_removal,
        also=((CatchUp, "_spans", _spans_of_known),),
    ),
    Mutant(
        "steps kept to oneself",
        HydraOrdering,
        "steps_since",
        _no_steps,
        traps.steps_are_told_by_replicas,
    ),
    Mutant(
        "the log with the most calls",
        views,
        "merge",
        _most_calls,
        plays_logs.the_longest_log_has_fewer_calls,
    ),
    Mutant("a NO-OP never undone", SlotLog, "replace_tail", _keep_noops, traps.a_noop_is_undone),
    Mutant(
        "a checkpoint before it is certain",
        Ledger,
        "next_checkpoint",
        _early_checkpoint,
        plays_logs.a_checkpoint_lies_ahead_of_what_is_certain,
    ),
    Mutant(
        "a question that tells nothing",
        HydraOrdering,
        "exists",
        _no_question,
        plays_logs.a_question_tells_that_a_slot_exists,
    ),
    Mutant(
        "an answer to a gap beyond a report",
        HydraOrdering,
        "offer",
        _offer_any,
        plays_reports.an_answer_to_a_gap_brings_what_was_not_reported,
    ),
    Mutant(
        "a synchronisation beyond a report",
        HydraOrdering,
        "may_take",
        _take_any,
        plays_reports.a_synchronisation_brings_what_was_not_reported,
    ),
    Mutant(
        "a state beyond a report",
        HydraOrdering,
        "may_take",
        _take_any,
        plays_reports.a_state_brings_what_was_not_reported,
    ),
    Mutant(
        "an entry above a reported addition",
        HydraOrdering,
        "may_take",
        _take_any,
        plays_reports.an_addition_was_reported,
    ),
    Mutant(
        "logs with other steps merged",
        Inbox,
        "_on_in_view",
        _any_steps,
        plays_reports.a_log_with_other_steps_is_not_merged,
    ),
    Mutant(
        "a report without memory",
        HydraOrdering,
        "lose_memory",
        _report_anyway,
        plays_reports.who_has_forgotten_reports_nothing,
    ),
    Mutant(
        "no reply with a new tag",
        Answers,
        "reply_anew",
        _reply_nothing,
        plays_reports.a_call_is_answered_with_the_tag_of_its_step,
    ),
    Mutant(
        "a base that moves under a transfer",
        Supply,
        "holds_base",
        property(lambda self: False),
        plays_logs.a_state_is_fetched_while_calls_go_on,
    ),
    Mutant("results forgotten", ClientTable, "admit", _always_fresh, plays.a_retry_through_another_sequencer),
    Mutant(
        "a log agreed to without its early NO-OPs",
        Synchronisation,
        "_is_verified",
        lambda self, rank: True,
        behind.a_noop_is_behind_the_base,
    ),
    Mutant(
        "a commit taken without agreement",
        Synchronisation,
        "_is_verified",
        lambda self, rank: True,
        behind.a_commit_of_what_was_not_agreed_to,
    ),
    Mutant(
        "a removed sequencer forgotten before its entries",
        HydraOrdering,
        "forget",
        _forget_at_once,
        behind.entries_of_a_removed_sequencer,
    ),
    Mutant(
        "a question after every entry", CatchUp, "on_entries", _take_and_ask, behind.entries_come_one_by_one
    ),
    Mutant(
        "a question after every part of a state",
        CatchUp,
        "on_chunk",
        _ask_for_more,
        behind.parts_of_a_state_come_twice,
    ),
)
