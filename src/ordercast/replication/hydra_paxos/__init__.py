"""HydraPaxos: replication over Hydra's order, in one round trip (Hydra section 6)."""

from ordercast.replication.hydra_paxos.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
