"""One server without replication (Hydra section 7.2): the ceiling that replication is measured against."""

from ordercast.replication.unreplicated.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
