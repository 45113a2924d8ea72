"""Fast Paxos: clients send to all replicas, and a call needs one message delay less (Hydra section 7.2)."""

from ordercast.replication.fast_paxos.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
