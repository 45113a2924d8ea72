"""Genuine atomic multicast, the baseline of Hydra section 7.1, made fault tolerant."""

from ordercast.protocols.atomic_multicast.options import AtomicMulticastOptions
from ordercast.protocols.atomic_multicast.protocol import GUARANTEES, PROTOCOL, deploy

__all__ = ["GUARANTEES", "PROTOCOL", "AtomicMulticastOptions", "deploy"]
