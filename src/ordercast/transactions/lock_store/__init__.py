"""Lock-Store: transactions by two-phase commit and two-phase locking over Multi-Paxos, the baseline of Hydra
section 7.3."""

from ordercast.transactions.lock_store.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
