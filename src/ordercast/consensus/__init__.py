"""Multi-Paxos: a replicated log that a process embeds."""

from ordercast.consensus.messages import MESSAGES, VALUE_BYTES_MAX
from ordercast.consensus.options import LIVE_TIMEOUTS, ConsensusOptions
from ordercast.consensus.replica import Replica

__all__ = ["LIVE_TIMEOUTS", "MESSAGES", "VALUE_BYTES_MAX", "ConsensusOptions", "Replica"]
