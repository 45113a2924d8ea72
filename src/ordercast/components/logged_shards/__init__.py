"""Transactions over shards that are logs, tried again if a lock is taken: for Lock-Store and Granola."""

from ordercast.components.logged_shards.client import Round, ShardsClient
from ordercast.components.logged_shards.deployment import deploy_shards
from ordercast.components.logged_shards.options import ShardsOptions, vary_shards
from ordercast.components.logged_shards.subjects import generals_of, halves_of

__all__ = [
    "Round",
    "ShardsClient",
    "ShardsOptions",
    "deploy_shards",
    "generals_of",
    "halves_of",
    "vary_shards",
]
