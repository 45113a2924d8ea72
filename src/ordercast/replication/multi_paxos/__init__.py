"""Multi-Paxos: a service that a consensus log replicates, the baseline of Hydra section 7.2."""

from ordercast.replication.multi_paxos.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
