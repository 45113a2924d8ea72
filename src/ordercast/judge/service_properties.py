"""The properties of replicated services and of transactions over shards, for the registry."""

from ordercast.core import Consistency, Partition
from ordercast.judge.columns.all_or_nothing import all_or_nothing
from ordercast.judge.columns.answers import answers
from ordercast.judge.columns.branches import branches
from ordercast.judge.columns.linearizable import linearizable
from ordercast.judge.columns.locks import locks
from ordercast.judge.columns.replica_state import replica_state
from ordercast.judge.columns.serializable import serializable
from ordercast.judge.columns.strict_serializable import strict_serializable
from ordercast.judge.online.all_or_nothing import AllOrNothing
from ordercast.judge.online.answers import Answers
from ordercast.judge.online.branches import Branches
from ordercast.judge.online.linearizable import Linearizable
from ordercast.judge.online.locks import LocksLeft
from ordercast.judge.online.replica_state import ReplicaState
from ordercast.judge.online.serializable import Serializable
from ordercast.judge.online.strict_serializable import StrictSerializable
from ordercast.judge.property import Property
from ordercast.trace import RunDescription


def _at_end_of_shards(run: RunDescription) -> bool:
    return run.complete and run.guarantees.consistency in (
        Consistency.SERIALIZABLE,
        Consistency.STRICT_SERIALIZABLE,
    )


SERVICE_PROPERTIES: tuple[Property, ...] = (
    Property(
        "linearizable",
        "An operation of a service is answered with the place at which replicas deliver it, and a read"
        " with the place behind which it was executed. In the order of these places, no operation was"
        " answered before one with an earlier place was invoked. A client gets one answer to an"
        " operation, or the same again, and only to what it invoked.",
        "`consistency` is `linearizable`; that answered operations are delivered, at the end of a"
        " complete run",
        lambda run: run.guarantees.consistency is Consistency.LINEARIZABLE,
        Linearizable,
        linearizable,
    ),
    Property(
        "strict-serializable",
        "Transactions are answered with the place at which a shard delivers them. The orders of all"
        " shards and real time together have no cycle: a transaction that was answered comes before all"
        " that are called later. Where shards lock keys and each has an order of its own, a transaction is at"
        " all places at which it held its locks.",
        "`consistency` is `strict-serializable`",
        lambda run: run.guarantees.consistency is Consistency.STRICT_SERIALIZABLE,
        StrictSerializable,
        strict_serializable,
    ),
    Property(
        "serializable",
        "The same without real time: the orders of all shards and those of all clients together have no"
        " cycle.",
        "`consistency` is `serializable`",
        lambda run: run.guarantees.consistency is Consistency.SERIALIZABLE,
        Serializable,
        serializable,
    ),
    Property(
        "replica-state",
        "Replicas of a service have equal states at equal places. A replica delivers nothing for which a"
        " state stands that it has taken over from another one.",
        "`consistency` is promised",
        lambda run: run.guarantees.consistency is not Consistency.NONE,
        ReplicaState,
        replica_state,
    ),
    Property(
        "branches",
        "Each primary view has one primary, one view before it and one beginning, and along a branch"
        " numbers and precedences grow. At the end of a complete run, all receivers that are up are in"
        " the last view of the branch that survives, and each node was told that what it delivered or was"
        " answered on another branch is undone. Nobody is told so of what survives.",
        "`partition` is `side-branches-discarded`; who is in which view, and who was told, at the end of"
        " a complete run",
        lambda run: run.guarantees.partition is Partition.SIDE_BRANCHES_DISCARDED,
        Branches,
        branches,
    ),
    Property(
        "answers",
        "A fresh service that executes the operations in the order of their places gives the same answers.",
        "the run has a service, whose replicas began with the run, and the bytes of its operations are known",
        lambda run: bool(run.service),
        Answers,
        answers,
        of_services=True,
    ),
    Property(
        "all-or-nothing",
        "What one shard of a transaction delivers, all its shards deliver. If one shard commits a"
        " transaction for which it held locks, all its shards do.",
        "at the end of a complete run, `consistency` is `serializable` or `strict-serializable`",
        _at_end_of_shards,
        AllOrNothing,
        all_or_nothing,
    ),
    Property(
        "locks",
        "No replica that is up holds locks for a transaction.",
        "at the end of a complete run, `consistency` is `serializable` or `strict-serializable`",
        _at_end_of_shards,
        LocksLeft,
        locks,
    ),
)
"""In the order of the registry."""
