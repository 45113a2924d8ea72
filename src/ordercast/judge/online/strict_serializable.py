"""Strict serializable: and a transaction that was answered comes before all that are called later."""

from ordercast.judge.online.shard_orders import ShardOrders


class StrictSerializable(ShardOrders):
    """The orders of shards and real time have no cycle."""

    strict = True
