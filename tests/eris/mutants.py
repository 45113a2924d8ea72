"""Epoch changes that are broken on purpose, and the play in which each breaks a promise."""

from ordercast.components.cross_shard.replica import ShardReplica
from ordercast.protocols.hydra import lane
from ordercast.protocols.hydra.lane import Lane
from ordercast.protocols.hydra.reports import Reports
from ordercast.protocols.hydra.shard_ordering import HydraShardOrdering
from ordercast.transactions.eris.coordinator import EpochCoordinator
from ordercast.transactions.eris.epochs import Epochs
from ordercast.transactions.eris.ordering import EpochOrdering
from tests.eris import defects, plays
from tests.play_mutants import Mutant

MUTANTS = (
    Mutant(
        "an epoch begun without the coordinator",
        EpochOrdering,
        "_end_epoch",
        defects.begin_alone,
        plays.one_shard_has_it,
    ),
    Mutant(
        "a call executed before the epoch began",
        EpochOrdering,
        "_end_epoch",
        defects.go_on_meanwhile,
        plays.nothing_is_executed_before_the_decision,
    ),
    Mutant(
        "the end decided by one shard",
        Reports,
        "has_quorums",
        defects.one_shard_is_enough,
        plays.a_shard_without_majority,
    ),
    Mutant(
        "the end decided by a minority",
        Reports,
        "has_quorums",
        defects.one_report_is_enough,
        plays.a_shard_without_majority,
    ),
    Mutant(
        "decisions forgotten",
        EpochCoordinator,
        "begin_office",
        defects.forget_epochs,
        plays.the_coordinator_loses_its_leader,
    ),
    Mutant("the own number reported alone", Lane, "report", defects.own_number_alone, plays.one_shard_has_it),
    Mutant(
        "taken after the report",
        Lane,
        "freeze",
        defects.go_on_after_the_report,
        plays.it_comes_while_replicas_wait,
    ),
    Mutant(
        "reports of earlier lives",
        Epochs,
        "apply",
        defects.trust_earlier_lives,
        plays.a_replica_forgets_what_it_reported,
        also=((EpochCoordinator, "decided", defects.keep_reports),),
    ),
    Mutant(
        "FOUND beyond the end of its epoch",
        HydraShardOrdering,
        "is_void",
        defects.never_void,
        plays.what_is_found_is_beyond,
        also=((lane, "_within", lambda packet, final: True),),
    ),
    Mutant(
        "reports lost in a restart",
        ShardReplica,
        "save_ordering",
        defects.save_nothing,
        plays.all_restart_after_their_reports,
    ),
)
