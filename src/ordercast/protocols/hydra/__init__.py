"""Hydra: network ordering with many active sequencers (Choi et al., NSDI 2023).

Senders give each message to one of several sequencers, which stamp it with their clock and with a number for
each of its groups. Receivers merge the streams of all sequencers by clock, and notice what is missing by the
numbers. A configuration service adds and removes sequencers.
"""

from ordercast.protocols.hydra.options import HydraOptions
from ordercast.protocols.hydra.protocol import PROTOCOL

__all__ = ["PROTOCOL", "HydraOptions"]
