"""Sequencing atoms: consistent order for overlapping groups, without a centre (Lumezanu)."""

from ordercast.protocols.atoms.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
