"""Granola: transactions ordered by timestamps that shards propose and vote on (Cowling and Liskov, USENIX ATC
2012), the baseline of Hydra section 7.3."""

from ordercast.transactions.granola.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
