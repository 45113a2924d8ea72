"""Processes that are broken on purpose, the play in which that shows, and the promise that it breaks."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ordercast.protocols.atoms import registry
from ordercast.protocols.atoms.distribution import Distribution
from ordercast.protocols.atoms.ingress import Ingress
from ordercast.protocols.atoms.ordering import Ordering
from ordercast.protocols.atoms.publisher import Publisher
from ordercast.protocols.atoms.registry import Registry
from ordercast.protocols.atoms.sealing import Reports
from ordercast.protocols.atoms.sequencing_node import SequencingNode
from ordercast.protocols.atoms.subscriber import Subscriber
from tests.atoms import defects, plays


class Mutant(NamedTuple):
    """A defect."""

    name: str
    owner: Any
    attribute: str
    value: Any
    play: Callable[[], set[str]]
    breaks: str
    also: tuple[tuple[Any, str, Any], ...] = ()
    """Further defects, where one alone is caught by another remedy."""


MUTANTS = (
    Mutant(
        "a node goes on in its old epoch after a restart",
        SequencingNode,
        "on_start",
        defects.same_life,
        plays.a_node_restarts_at_once,
        "number",
    ),
    Mutant(
        "a node takes messages in a sealed epoch",
        SequencingNode,
        "_on_seal",
        defects.report_only,
        plays.a_node_that_is_cut_off_goes_on,
        "agreement",
    ),
    Mutant(
        "the store decides without the report of the last holder",
        Reports,
        "final",
        defects.any_report,
        plays.the_last_holder_crashes_before_its_report,
        "total-order",
    ),
    Mutant(
        "a subscriber gets what only one node has",
        SequencingNode,
        "_run",
        defects.send_early,
        plays.the_distributor_crashes_with_what_a_subscriber_has,
        "agreement",
    ),
    Mutant(
        "an epoch begins before the earlier ones of its kin end",
        Registry,
        "_kin",
        defects.no_kin,
        plays.two_trees_merge,
        "pair-order",
    ),
    Mutant(
        "a subscriber does not wait for kin",
        Ordering,
        "blockers",
        lambda self, stream, begin: [],
        plays.two_trees_merge,
        "pair-order",
    ),
    Mutant(
        "a missing number is passed over before the other groups are complete",
        Ordering,
        "_is_next",
        lambda self, stream, atom, number: True,
        plays.a_number_is_missing_at_the_end_of_an_epoch,
        "pair-order",
    ),
    Mutant(
        "the horizon is ignored",
        Subscriber,
        "_set_horizon",
        lambda self: None,
        plays.a_join_is_not_known_to_the_one_who_asked,
        "pair-order",
    ),
    Mutant(
        "an atom is relevant to whoever is in two of its groups",
        Ordering,
        "_inside",
        defects.two_will_do,
        plays.three_groups_share_an_atom,
        "agreement",
    ),
    Mutant(
        "what is expected from publishers is not carried over",
        Reports,
        "final",
        defects.altered_final(serials=()),
        plays.a_change_with_messages_on_their_way,
        "integrity",
    ),
    Mutant(
        "the beginning of an epoch is lost",
        registry,
        "_rare_begins",
        lambda before, final, copies: (),
        plays.an_epoch_begins_where_no_reporter_knows_of_it,
        "validity",
    ),
    Mutant(
        "a node obeys a store that is behind",
        SequencingNode,
        "_seen",
        property(lambda self: 0, lambda self, value: None),
        plays.a_restarted_node_hears_of_a_store_that_is_behind,
        "agreement",
    ),
    Mutant(
        "a distributor believes that a subscriber keeps what it has received",
        Distribution,
        "on_got",
        defects.never_lower,
        plays.a_subscriber_restarts_with_entries_that_it_holds,
        "agreement",
    ),
    Mutant(
        "a distributor does not learn how far subscribers have come",
        Subscriber,
        "on_message",
        defects.deaf_to_where,
        plays.a_distributor_follows_that_knows_nothing_of_subscribers,
        "validity",
        (
            (Reports, "final", defects.altered_final(low=0)),
            (registry, "_rare_begins", lambda before, final, copies: ()),
        ),
    ),
    Mutant(
        "a publisher knows nothing of what its earlier life has sent",
        Publisher,
        "on_start",
        defects.without_mark,
        plays.a_publisher_restarts_with_a_message_on_its_way,
        "causal",
    ),
    Mutant(
        "messages of earlier lives get places after those of later ones",
        Ingress,
        "take",
        defects.any_life,
        plays.a_publisher_restarts_with_a_message_on_its_way,
        "causal",
    ),
    Mutant(
        "a message gets a place in a group that has got its members since",
        SequencingNode,
        "_take",
        defects.any_plan,
        plays.a_copy_comes_when_its_group_has_members_again,
        "causal",
    ),
)
