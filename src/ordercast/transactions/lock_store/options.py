"""Options of Lock-Store."""

from ordercast.components.logged_shards import ShardsOptions


class LockStoreOptions(ShardsOptions, frozen=True):
    """How clients call, how commands are put into the logs of the shards, and when clients count as dead."""
