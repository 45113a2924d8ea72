"""Options of Fast Paxos."""

from ordercast.components.logged_service import LogOptions


class FastPaxosOptions(LogOptions, frozen=True):
    """How clients call, and how the log is kept.

    A slot that no fast quorum has decided within `consensus.retry_ns` is decided like one of Multi-Paxos.
    """
