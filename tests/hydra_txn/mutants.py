"""Shards and coordinators that are broken on purpose, and the play in which each breaks a promise."""

from ordercast.components.cross_shard import replica
from ordercast.components.cross_shard.coordinator import FailureCoordinator
from ordercast.components.cross_shard.gaps import ShardGaps
from ordercast.components.cross_shard.replica import ShardReplica
from ordercast.components.cross_shard.rulings import Rulings
from ordercast.components.network_ordered import LogEntry
from ordercast.protocols.hydra import lane
from ordercast.protocols.hydra.shard_ordering import HydraShardOrdering
from tests.hydra_txn import defects, plays
from tests.play_mutants import Mutant

MUTANTS = (
    Mutant(
        "only the own stamp checked",
        replica,
        "marks_of",
        defects.own_mark,
        plays.a_late_copy_comes_to_another_shard,
    ),
    Mutant(
        "DROP told to one shard",
        ShardReplica,
        "_on_gone",
        defects.hear_of_own_losses,
        plays.a_late_copy_comes_to_another_shard,
    ),
    Mutant(
        "promises lost in a view change",
        ShardReplica,
        "take_pledges",
        defects.drop_pledges,
        plays.a_shard_changes_its_view_after_it_promised,
    ),
    Mutant(
        "promises lost in a restart",
        ShardReplica,
        "_save_book",
        defects.save_nothing,
        plays.a_shard_restarts_after_it_promised,
    ),
    Mutant(
        "a decision without the leader's promise",
        FailureCoordinator,
        "_has_promised",
        defects.majority_alone,
        plays.only_the_leader_has_it,
    ),
    Mutant(
        "promises of two views counted together",
        FailureCoordinator,
        "_has_promised",
        defects.any_views,
        plays.promises_of_two_views,
    ),
    Mutant(
        "decisions forgotten",
        FailureCoordinator,
        "_take_office",
        defects.forget_all,
        plays.the_coordinator_loses_its_leader,
    ),
    Mutant("found after it was gone", Rulings, "apply", defects.find_what_is_gone, plays.a_shard_is_not_told),
    Mutant(
        "a gap given up by one shard",
        ShardReplica,
        "counts_nowhere",
        defects.nobody_asked,
        plays.a_shard_lacks_what_the_other_has,
    ),
    Mutant(
        "a stamp beyond in another shard",
        LogEntry,
        "is_within",
        defects.within_own,
        plays.a_stamp_is_beyond_in_another_shard,
    ),
    Mutant(
        "FOUND beyond the last numbers",
        HydraShardOrdering,
        "is_void",
        defects.never_void,
        plays.what_is_found_is_beyond,
    ),
    Mutant(
        "FOUND taken beyond the last numbers",
        HydraShardOrdering,
        "is_void",
        defects.never_void,
        plays.what_is_found_is_beyond,
        also=((lane, "_within", lambda packet, final: True),),
    ),
    Mutant(
        "a void slot passed in silence",
        ShardGaps,
        "give_up_passed",
        defects.pass_in_silence,
        plays.a_stamp_is_beyond_in_another_shard,
    ),
    Mutant(
        "a promise of what is here",
        ShardReplica,
        "_find_mark",
        defects.promise_what_is_here,
        plays.a_shard_lacks_what_the_other_has,
    ),
    Mutant(
        "a promise not kept", ShardReplica, "is_promised", defects.take_promised, plays.a_shard_is_not_told
    ),
)
