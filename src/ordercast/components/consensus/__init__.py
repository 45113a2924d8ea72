"""Multi-Paxos: a replicated log that a process embeds."""

from ordercast.components.consensus.messages import MESSAGES, VALUE_BYTES_MAX
from ordercast.components.consensus.options import LIVE_TIMEOUTS, ConsensusOptions
from ordercast.components.consensus.replica import Replica

__all__ = ["LIVE_TIMEOUTS", "MESSAGES", "VALUE_BYTES_MAX", "ConsensusOptions", "Replica"]
