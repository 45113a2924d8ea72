"""Protocols for transactions over shards: each group of a deployment is a shard, with replicas of its own."""
