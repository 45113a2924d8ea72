"""LLFT: low-latency fault tolerance by leader-follower replication."""

from ordercast.replication.llft.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
