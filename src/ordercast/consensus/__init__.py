"""Multi-Paxos: a replicated log that a process embeds."""

from ordercast.consensus.messages import MESSAGES, VALUE_BYTES_MAX
from ordercast.consensus.options import ConsensusOptions
from ordercast.consensus.replica import Replica

__all__ = ["MESSAGES", "VALUE_BYTES_MAX", "ConsensusOptions", "Replica"]
