"""Members that adapt to rates and delays: the dynamic hybrid protocol (hybrid paper, sections 5 and 6)."""

from ordercast.protocols.hybrid.protocol import PROTOCOL, HybridOptions, deploy

__all__ = ["PROTOCOL", "HybridOptions", "deploy"]
