"""Unordered multicast: the baseline of Hydra section 7.1, deliver at once and promise nothing more."""

from ordercast.protocols.unordered.protocol import PROTOCOL

__all__ = ["PROTOCOL"]
