"""Eris: transactions over shards in one round trip, behind one sequencer at a time (SOSP 2017)."""

from ordercast.transactions.eris.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
