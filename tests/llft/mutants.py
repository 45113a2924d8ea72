"""Replicas and clients that are broken on purpose, the play in which that shows, and the promise that it
breaks."""

from typing import Any, NamedTuple

from ordercast.replication.llft.client import Client
from ordercast.replication.llft.messaging import Messaging
from ordercast.replication.llft.notices import Notices
from ordercast.replication.llft.performing import Performer
from ordercast.replication.llft.primary import Primary
from ordercast.replication.llft.recovery import Recovery
from ordercast.replication.llft.remote_views import RemoteViews
from ordercast.replication.llft.replica import Replica
from ordercast.replication.llft.succession import Succession
from ordercast.replication.llft.upkeep import Upkeep
from tests.llft import defects, plays, plays_semi_passive
from tests.llft.plays import Play


class Mutant(NamedTuple):
    """A defect."""

    name: str
    owner: Any
    attribute: str
    value: Any
    play: Play
    breaks: str
    also: tuple[tuple[Any, str, Any], ...] = ()
    """Further defects, where one alone is caught by another remedy."""


MUTANTS = (
    Mutant(
        "a reply without the order of other connections",
        Messaging,
        "head",
        defects.own_orders_only,
        plays.an_answer_rests_on_the_request_of_another_client,
        "undone",
    ),
    Mutant(
        "a reply without any order",
        Replica,
        "orders",
        defects.no_orders,
        plays.only_a_client_knows_the_order,
        "undone",
    ),
    Mutant(
        "a backup that performs what comes",
        Replica,
        "follow",
        defects.in_order_of_arrival,
        plays.backups_get_requests_in_another_order,
        "states",
    ),
    Mutant(
        "a new primary that does not ask remote groups",
        Recovery,
        "begin",
        defects.ask_nobody,
        plays.only_a_client_knows_the_order,
        "undone",
    ),
    Mutant(
        "a new primary that does not follow what remote groups hold",
        Recovery,
        "on_view_ack",
        defects.ignore_orders,
        plays.only_a_client_knows_the_order,
        "undone",
    ),
    Mutant(
        "a new primary that does not wait for messages",
        Recovery,
        "conclude",
        defects.give_up_at_once,
        plays.only_a_client_has_a_request_that_was_answered,
        "undone",
    ),
    Mutant(
        "a reply that was lost counts as received",
        Recovery,
        "on_view_ack",
        defects.received_with_gaps,
        plays.a_reply_is_lost_before_a_change,
        "validity",
        also=((Upkeep, "_nack", defects.ask_for_nothing),),
    ),
    Mutant(
        "numbers given again after a change",
        Performer,
        "_renumber",
        defects.count_from_one,
        plays.a_call_follows_a_change,
        "validity",
    ),
    Mutant(
        "an old primary that is heard",
        RemoteViews,
        "heeds",
        defects.heed_all,
        plays.an_old_primary_answers,
        "answers",
    ),
    Mutant(
        "a voter that accepts an older proposal",
        Succession,
        "on_propose",
        defects.accept_any,
        plays.an_older_proposal_comes_late,
        "answers",
    ),
    Mutant(
        "a proposer that replaces a later state",
        Succession,
        "on_propose",
        defects.accept_older_state,
        plays.a_proposer_has_an_older_state,
        "undone",
    ),
    Mutant(
        "a proposer that ignores what members know",
        Succession,
        "on_accept",
        defects.accept_nothing,
        plays.only_a_member_knows_the_order,
        "answers",
    ),
    Mutant(
        "a replica that restarts as a member",
        Replica,
        "__init__",
        defects.stay_a_member,
        plays.a_backup_restarts_before_the_primary_crashes,
        "answers",
    ),
    Mutant(
        "a state without the table of clients",
        Performer,
        "restore",
        defects.without_table,
        plays.a_newcomer_becomes_primary_and_a_call_is_repeated,
        "exactly-once",
    ),
    Mutant(
        "a semi-passive backup that performs again what its state has",
        Performer,
        "update",
        defects.keep_log,
        plays_semi_passive.two_clients_of_a_semi_passive_service,
        "exactly-once",
    ),
    Mutant(
        "a semi-passive backup that forgets what it has logged",
        Performer,
        "wake",
        defects.wake_without_log,
        plays_semi_passive.a_semi_passive_backup_has_no_state_yet,
        "answers",
    ),
    Mutant(
        "undone work that is not reported by replicas",
        Notices,
        "undo",
        defects.report_nothing,
        plays.two_sides_work_and_meet,
        "total-order",
    ),
    Mutant(
        "undone answers that are not reported by clients",
        Client,
        "on_lineage",
        defects.report_nothing,
        plays.two_sides_work_and_meet,
        "answers",
    ),
    Mutant(
        "a backup that confirms what it has not produced",
        Messaging,
        "_on_first_ack",
        defects.confirm_at_once,
        plays.a_first_ack_comes_before_the_order,
        "second-ack",
    ),
    Mutant(
        "messages forgotten before all members have them",
        Primary,
        "release",
        defects.release_own,
        plays.a_backup_lacks_what_all_others_have_long_forgotten,
        "states",
    ),
    Mutant(
        "an order dropped before backups have it",
        Primary,
        "settle",
        defects.safe_at_once,
        plays.only_a_client_knows_the_order,
        "undone",
    ),
    Mutant(
        "a new primary that knows no view that it has not entered",
        Replica,
        "_missed",
        defects.know_no_other_view,
        plays.a_view_fails_before_its_backup_has_entered_it,
        "undone",
    ),
    Mutant(
        "a new primary that does not look at the number of a view that it learns of",
        Succession,
        "renew",
        defects.take_a_number_again,
        plays.a_view_begins_with_the_number_of_a_proposal,
        "views",
    ),
    Mutant(
        "a minority that goes on",
        Replica,
        "majority_of",
        defects.one_is_enough,
        plays.a_minority_is_called,
        "answers",
    ),
    Mutant(
        "an answer before a majority has it",
        Performer,
        "pass_on",
        defects.answer_at_once,
        plays.an_answer_before_a_majority_has_it,
        "answers",
    ),
)
