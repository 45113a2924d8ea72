"""Roles that are given or computed once: the static hybrid protocol (hybrid paper, section 4)."""

from ordercast.protocols.static_hybrid.options import StaticHybridOptions
from ordercast.protocols.static_hybrid.protocol import PROTOCOL, deploy

__all__ = ["PROTOCOL", "StaticHybridOptions", "deploy"]
