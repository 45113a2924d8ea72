"""Replicas and clients that are broken on purpose, and the play in which each breaks a promise."""

from ordercast.components.execution.client_table import ClientTable
from ordercast.components.network_ordered import client, views
from ordercast.components.network_ordered.answers import Answers
from ordercast.components.network_ordered.catch_up import CatchUp
from ordercast.components.network_ordered.gaps import GapAgreement
from ordercast.components.network_ordered.inbox import Inbox
from ordercast.components.network_ordered.ledger import Ledger
from ordercast.components.network_ordered.log import SlotLog
from ordercast.components.network_ordered.replica import NetworkReplica as Replica
from ordercast.components.network_ordered.supply import Supply
from ordercast.components.network_ordered.syncs import Synchronisation
from ordercast.components.network_ordered.views import Views
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.replica_ordering import HydraOrdering
from tests.network_ordered import defects, plays, plays_logs, plays_reports
from tests.network_ordered import plays_catching_up as behind
from tests.network_ordered import plays_deaf as deaf
from tests.network_ordered import plays_traps as traps
from tests.play_mutants import Mutant

MUTANTS = (
    Mutant("a quorum without the leader", client, "_agrees", defects.any_view, plays.a_quorum_over_two_views),
    Mutant(
        "a tag without steps", client, "_agrees", defects.any_tag, traps.a_boundary_above_what_a_group_knows
    ),
    Mutant(
        "a gap passed before f acknowledgements",
        GapAgreement,
        "_give_up",
        defects.pass_at_once,
        plays.a_slot_is_given_up_by_the_leader_alone,
    ),
    Mutant(
        "the longest log of an old view",
        views,
        "merge",
        defects.longest_of_all,
        traps.a_view_change_with_a_vote_of_an_old_view,
    ),
    Mutant(
        "a NO-OP of the leader not saved",
        GapAgreement,
        "_give_up",
        defects.give_up_in_memory,
        traps.a_leader_that_gave_up_a_slot_restarts,
    ),
    Mutant("a NO-OP forgotten", views, "merge", defects.no_noops, plays.a_noop_survives_a_view_change),
    Mutant(
        "a NO-OP kept in the log", Replica, "give_up", defects.keep_in_log, plays.one_holds_what_is_given_up
    ),
    Mutant(
        "a recovered packet at the end of the log",
        HydraOrdering,
        "offer",
        defects.append,
        plays.a_recovered_message_ranks_among_buffered_ones,
    ),
    Mutant(
        "a table not rolled back", Ledger, "roll_back", defects.keep_table, traps.a_leader_executed_too_much
    ),
    Mutant(
        "nothing rolled back", Ledger, "roll_back", defects.undo_nothing, traps.a_leader_executed_too_much
    ),
    Mutant(
        "a vote without memory",
        Replica,
        "on_start",
        defects.vote_without_memory,
        traps.a_replica_without_memory_returns,
    ),
    Mutant(
        "a return with an old view",
        Views,
        "on_start_view_returning",
        defects.admit_any,
        traps.an_old_view_does_not_take_back_a_replica,
    ),
    Mutant(
        "an entry taken beyond a report",
        HydraOrdering,
        "may_take",
        defects.take_any,
        traps.who_has_reported_takes_nothing_beyond,
    ),
    Mutant(
        "a packet accepted beyond a report",
        Lane,
        "accepts",
        defects.accept_any,
        plays.a_packet_comes_after_the_report,
    ),
    Mutant(
        "a read of a deposed leader",
        client.Replies,
        "take",
        defects.leader_reads_alone,
        traps.a_read_of_a_deposed_leader,
    ),
    Mutant(
        "a read without places", client, "_agrees", defects.any_place, traps.a_read_of_what_is_not_certain
    ),
    Mutant(
        "execution before sync",
        Replica,
        "execute_all",
        defects.always_execute,
        plays.one_holds_what_is_given_up,
    ),
    Mutant(
        "nothing cut off",
        Replica,
        "reconfigured",
        defects.cut_nothing,
        plays.a_sequencer_reaches_only_the_leader,
    ),
    Mutant(
        "an addition without going back",
        Replica,
        "reconfigured",
        defects.order_stays,
        traps.a_sequencer_is_added_below_what_was_delivered,
    ),
    Mutant(
        "a removed lane discarded at once",
        HydraOrdering,
        "decided",
        defects.discard_at_once,
        traps.going_back_crosses_a_removal,
        also=((CatchUp, "_spans", defects.spans_of_known),),
    ),
    Mutant(
        "steps kept to oneself",
        HydraOrdering,
        "steps_since",
        defects.no_steps,
        traps.steps_are_told_by_replicas,
    ),
    Mutant(
        "the log with the most calls",
        views,
        "merge",
        defects.most_calls,
        plays_logs.the_longest_log_has_fewer_calls,
    ),
    Mutant("a NO-OP never undone", SlotLog, "replace_tail", defects.keep_noops, traps.a_noop_is_undone),
    Mutant(
        "a checkpoint before it is certain",
        Ledger,
        "next_checkpoint",
        defects.early_checkpoint,
        plays_logs.a_checkpoint_lies_ahead_of_what_is_certain,
    ),
    Mutant(
        "a question that tells nothing",
        HydraOrdering,
        "exists",
        defects.no_question,
        plays_logs.a_question_tells_that_a_slot_exists,
    ),
    Mutant(
        "an answer to a gap beyond a report",
        HydraOrdering,
        "offer",
        defects.offer_any,
        plays_reports.an_answer_to_a_gap_brings_what_was_not_reported,
    ),
    Mutant(
        "a synchronisation beyond a report",
        HydraOrdering,
        "may_take",
        defects.take_any,
        plays_reports.a_synchronisation_brings_what_was_not_reported,
    ),
    Mutant(
        "a state beyond a report",
        HydraOrdering,
        "may_take",
        defects.take_any,
        plays_reports.a_state_brings_what_was_not_reported,
    ),
    Mutant(
        "an entry above a reported addition",
        HydraOrdering,
        "may_take",
        defects.take_any,
        plays_reports.an_addition_was_reported,
    ),
    Mutant(
        "logs with other steps merged",
        Inbox,
        "_on_in_view",
        defects.any_steps,
        plays_reports.a_log_with_other_steps_is_not_merged,
    ),
    Mutant(
        "a report without memory",
        HydraOrdering,
        "lose_memory",
        defects.report_anyway,
        plays_reports.who_has_forgotten_reports_nothing,
    ),
    Mutant(
        "no reply with a new tag",
        Answers,
        "reply_anew",
        defects.reply_nothing,
        plays_reports.a_call_is_answered_with_the_tag_of_its_step,
    ),
    Mutant(
        "a base that moves under a transfer",
        Supply,
        "holds_base",
        property(lambda self: False),
        plays_logs.a_state_is_fetched_while_calls_go_on,
    ),
    Mutant(
        "results forgotten",
        ClientTable,
        "admit",
        defects.always_fresh,
        plays.a_retry_through_another_sequencer,
    ),
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
        defects.forget_at_once,
        behind.entries_of_a_removed_sequencer,
    ),
    Mutant(
        "a question after every entry",
        CatchUp,
        "on_entries",
        defects.take_and_ask,
        behind.entries_come_one_by_one,
    ),
    Mutant(
        "a question after every part of a state",
        CatchUp,
        "on_chunk",
        defects.ask_for_more,
        behind.parts_of_a_state_come_twice,
    ),
    Mutant(
        "a deaf leader", Views, "_is_cut_off", defects.miss_the_leader_alone, deaf.a_deaf_leader_gives_way
    ),
    Mutant(
        "views of a deaf replica",
        Views,
        "on_timer",
        defects.try_views_alone,
        deaf.a_deaf_leader_disturbs_once,
    ),
    Mutant(
        "only the first part executed",
        Synchronisation,
        "go_on",
        defects.stop_after_a_part,
        plays_logs.what_is_certain_is_executed_in_parts,
    ),
    Mutant(
        "a state restored in parts",
        Synchronisation,
        "go_on",
        defects.restore_in_parts,
        plays_logs.a_replica_that_returns_executes_what_it_may_have_delivered_at_once,
    ),
    Mutant(
        "a follower with no news", Synchronisation, "_agree", defects.agree_to_news, deaf.an_idle_leader_stays
    ),
)
