"""Serializable: some order explains what all shards did, and keeps that of each client."""

from ordercast.judge.online.shard_orders import ShardOrders


class Serializable(ShardOrders):
    """The orders of shards and of clients have no cycle."""

    strict = False
