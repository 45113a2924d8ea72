"""Groups of replicas that have messages in common: all or none of them take a message.

Each group replicates by itself (`network_ordered`). What a whole group has lost, a failure coordinator
decides on, for all groups alike (Hydra section 6; Eris, SOSP 2017, sections 6 and 7).
"""

from ordercast.components.cross_shard.coordinator import FailureCoordinator
from ordercast.components.cross_shard.messages import MESSAGES
from ordercast.components.cross_shard.options import CoordinatorOptions
from ordercast.components.cross_shard.ordering import ShardOrdering, ShardOwner
from ordercast.components.cross_shard.replica import ShardReplica

__all__ = [
    "MESSAGES",
    "FailureCoordinator",
    "CoordinatorOptions",
    "ShardOrdering",
    "ShardOwner",
    "ShardReplica",
]
