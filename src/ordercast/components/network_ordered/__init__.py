"""Replication over a network that orders: replicas and clients of NOPaxos (OSDI 2016), over any ordering.

The network numbers and orders what clients send, and may lose it. Replicas agree on what was lost (gap
agreement), change their leader (view change), and make prefixes of their logs certain (synchronisation).
"""

from ordercast.components.network_ordered.client import Replies
from ordercast.components.network_ordered.messages import MESSAGES
from ordercast.components.network_ordered.options import ReplicaOptions
from ordercast.components.network_ordered.ordering import NetworkOrdering, OrderingOwner
from ordercast.components.network_ordered.place import LogEntry, LogPlace
from ordercast.components.network_ordered.replica import NetworkReplica

__all__ = [
    "MESSAGES",
    "LogEntry",
    "LogPlace",
    "NetworkOrdering",
    "NetworkReplica",
    "OrderingOwner",
    "ReplicaOptions",
    "Replies",
]
