"""Options of Multi-Paxos."""

from ordercast.components.logged_service.options import BatchOptions


class MultiPaxosOptions(BatchOptions, frozen=True):
    """How clients call, how calls are put into the log, and how the log is kept."""
