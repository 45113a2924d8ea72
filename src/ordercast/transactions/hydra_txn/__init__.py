"""HydraTxn: transactions over shards in one round trip (Hydra, NSDI 2023, section 6)."""

from ordercast.transactions.hydra_txn.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
