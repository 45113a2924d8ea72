"""Active replication: replicas execute what any protocol with total order and agreement delivers."""

from ordercast.replication.active.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
