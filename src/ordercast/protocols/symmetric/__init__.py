"""Every member orders its own messages: the rate-synchronised symmetric protocol of the hybrid paper."""

from ordercast.protocols.symmetric.protocol import PROTOCOL, SymmetricOptions, deploy

__all__ = ["PROTOCOL", "SymmetricOptions", "deploy"]
